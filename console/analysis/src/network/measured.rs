//! Which values of a visit go into its cell, and which metrics are judged?

use std::collections::{BTreeMap, BTreeSet};

use muster_wire::Direction;

use super::{Matrix, Topology, topology};

/// Share of segments sent again that is as good as none: a congested but sound path has as much.
pub const LOSS_FLOOR: f32 = 1e-3;
/// Metric whose values are such shares.
pub const LOSS: &str = "retransmits";
/// Loss from which on [`health`] falls: one visit alone tells nothing about less.
const TELLING_LOSS: f64 = 3e-3;
/// Metrics that faults are looked for in. Round trips depend on how busy the two nodes are, so they only tell distances.
const JUDGED: [&str; 3] = ["throughput", LOSS, "allreduce"];

/// Whether faults are looked for in a metric unasked.
#[must_use]
pub fn judged(metric: &str) -> bool {
    JUDGED.contains(&metric)
}

/// One number for a visit that falls with its throughput and with its losses, so that an adaptive scan follows both:
/// the median throughput, over the loss in units of 0.3 % where it is more. `None` where the visit failed.
#[must_use]
pub fn health(series: &BTreeMap<&str, &[f64]>) -> Option<f64> {
    let mut flow = series.get("throughput").or_else(|| series.get("allreduce"))?.to_vec();
    flow.sort_unstable_by(f64::total_cmp);
    let median = *flow.get(flow.len() / 2)?;
    let loss = series.get(LOSS).and_then(|values| values.first()).copied().unwrap_or(0.0);
    Some(median / (loss / TELLING_LOSS).max(1.0))
}

/// The topology that the latencies among some matrices suggest; all nodes under one leaf where they form no groups.
#[must_use]
pub fn guess<'a>(matrices: impl Iterator<Item = &'a Matrix> + Clone) -> Topology {
    let latencies = matrices.clone().filter(|m| m.direction() == Direction::LowerIsBetter && m.metric() != LOSS);
    // A large message takes as long as the slowest NIC on its way lets it: only the smallest tell distances.
    let smallest = latencies.clone().map(|m| message_bytes(m.metric())).min();
    let latencies = latencies.filter(|m| Some(message_bytes(m.metric())) == smallest);
    let inferred = latencies.filter_map(|matrix| {
        let rows: Vec<(u32, u32, f64)> = matrix
            .cells()
            .iter()
            .enumerate()
            .filter_map(|(at, cell)| Some((cell.src, cell.dst, f64::from(*matrix.values(at).first()?))))
            .collect();
        topology::infer(matrix.endpoints(), &rows)
    });
    let names: BTreeSet<&String> = matrices.flat_map(Matrix::endpoints).collect();
    inferred.max_by_key(Topology::len).unwrap_or_else(|| Topology::flat(&names.into_iter().collect::<Vec<_>>()))
}

/// Size of the message that `rtt-64` and its like time; 0 where the name tells none.
fn message_bytes(metric: &str) -> u64 {
    metric.rsplit_once('-').and_then(|(_, size)| size.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_falls_with_loss_and_with_throughput_and_not_with_harmless_loss() {
        let of = |flow: &[f64], loss: &[f64]| health(&BTreeMap::from([("throughput", flow), (LOSS, loss)]));
        assert_eq!(of(&[90.0, 100.0, 110.0], &[0.0]), Some(100.0));
        assert_eq!(of(&[100.0], &[0.0025]), Some(100.0));
        assert!(of(&[100.0], &[0.03]).is_some_and(|value| (value - 10.0).abs() < 1e-9));
        assert_eq!((of(&[], &[0.0]), health(&BTreeMap::new())), (None, None));
    }

    #[test]
    fn a_slow_nic_that_only_large_messages_feel_is_no_leaf_of_its_own() {
        let matrix = |metric: &str, slow: f64| {
            let mut matrix = Matrix::new(metric, Direction::LowerIsBetter);
            for (a, b) in (0..8).flat_map(|a| (0..8).map(move |b| (a, b))).filter(|(a, b)| a != b) {
                let value = if a == 5 || b == 5 { slow } else { 1.0 } * (1.0 + 0.01 * f64::from((a * 3 + b) % 5));
                matrix.push_named(&format!("n{a}"), &format!("n{b}"), &[value], None);
            }
            matrix
        };
        let guessed = |matrices: &[Matrix]| guess(matrices.iter()).source();
        assert_eq!(guessed(&[matrix("rtt-16384", 3.0)]), topology::Source::Latency);
        assert_eq!(guessed(&[matrix("rtt-16384", 3.0), matrix("rtt-64", 1.0)]), topology::Source::Flat);
    }
}

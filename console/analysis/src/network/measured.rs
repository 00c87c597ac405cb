//! Which values of a visit go into its cell, and which metrics are judged?

use std::collections::{BTreeMap, BTreeSet};

use muster_wire::Direction;

use super::{Matrix, Topology, topology};

/// Share of segments sent again below which loss is not worth a word: a congested but sound path has as much.
pub const LOSS_FLOOR: f64 = 1e-3;
/// Metric whose values are such shares.
const LOSS: &str = "retransmits";
/// Metrics that faults are looked for in. Round trips depend on how busy the two nodes are, so they only tell distances.
const JUDGED: [&str; 3] = ["throughput", LOSS, "allreduce"];

/// Whether faults are looked for in a metric unasked.
#[must_use]
pub fn judged(metric: &str) -> bool {
    JUDGED.contains(&metric)
}

/// The values of a visit as its cell has them: losses at [`LOSS_FLOOR`] or below are all the same.
#[must_use]
pub fn matrix_values(metric: &str, values: &[f64]) -> Vec<f64> {
    let floor = if metric == LOSS { LOSS_FLOOR } else { 0.0 };
    values.iter().map(|value| value.max(floor)).collect()
}

/// One number for a visit that falls with its throughput and with its losses, so that an adaptive scan follows both:
/// the median throughput over the loss in units of [`LOSS_FLOOR`]. `None` where the visit failed.
#[must_use]
pub fn health(series: &BTreeMap<&str, &[f64]>) -> Option<f64> {
    let mut flow = series.get("throughput").or_else(|| series.get("allreduce"))?.to_vec();
    flow.sort_unstable_by(f64::total_cmp);
    let median = *flow.get(flow.len() / 2)?;
    let loss = series.get(LOSS).and_then(|values| values.first()).copied().unwrap_or(0.0);
    Some(median / (loss / LOSS_FLOOR).max(1.0))
}

/// The topology that the latencies among some matrices suggest; all nodes under one leaf where they form no groups.
#[must_use]
pub fn guess<'a>(matrices: impl Iterator<Item = &'a Matrix> + Clone) -> Topology {
    let latencies = matrices.clone().filter(|m| m.direction() == Direction::LowerIsBetter && m.metric() != LOSS);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_falls_with_loss_and_with_throughput_and_not_with_harmless_loss() {
        let of = |flow: &[f64], loss: &[f64]| health(&BTreeMap::from([("throughput", flow), (LOSS, loss)]));
        assert_eq!(of(&[90.0, 100.0, 110.0], &[0.0]), Some(100.0));
        assert_eq!(of(&[100.0], &[0.0008]), Some(100.0));
        assert!(of(&[100.0], &[0.01]).is_some_and(|value| (value - 10.0).abs() < 1e-9));
        assert_eq!((of(&[], &[0.0]), health(&BTreeMap::new())), (None, None));
    }

    #[test]
    fn losses_below_the_floor_are_all_the_same() {
        assert_eq!(matrix_values(LOSS, &[0.0, 0.0005, 0.02]), [LOSS_FLOOR, LOSS_FLOOR, 0.02]);
        assert_eq!(matrix_values("throughput", &[0.0, 5.0]), [0.0, 5.0]);
    }
}

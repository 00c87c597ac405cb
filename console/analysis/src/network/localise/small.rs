//! Fabrics of two to four nodes: too small to tell a fault from chance, and too small to pass what is slow.

use muster_wire::Direction;

use super::found::{Candidate, Undecided};
use super::{Kind, Localisation, Matrix};
use crate::sample::median_of_sorted;

/// Nodes up to which nothing is accused unless it is overwhelming.
const SMALL: usize = 4;

/// Leaves open what pairs of a small fabric neither accuse nor vouch for: nodes whose pairs are slower by `loss` or more than the
/// pairs without them, and a single pair.
pub(super) fn open(matrix: &Matrix, loss: f64, out: &mut Localisation) {
    let nodes = matrix.endpoints().len();
    let said = !(out.suspects.is_empty() && out.undecided.is_empty() && out.contested.is_empty());
    if nodes > SMALL || said {
        return;
    }
    let costs: Vec<(u32, u32, f64)> = matrix
        .cells()
        .iter()
        .enumerate()
        .filter_map(|(at, cell)| Some((cell.src, cell.dst, cost(matrix, at)?)))
        .collect();
    if nodes == 2 && !costs.is_empty() {
        let [a, b] = [&matrix.endpoints()[0], &matrix.endpoints()[1]];
        let reason = format!("{a} and {b} were measured with each other only: measure with more nodes");
        out.undecided.push(undecided(&[a, b], reason, costs.len()));
        return;
    }
    for (node, name) in (0..).zip(matrix.endpoints()) {
        let of = |own: bool| middle(costs.iter().filter(|(a, b, _)| (*a == node || *b == node) == own));
        let (Some(with), Some(without)) = (of(true), of(false)) else { continue };
        let lost = 1.0 - (without - with).exp();
        if lost >= loss {
            let reason = format!(
                "{name} is {}, but {nodes} nodes are too few to tell a fault from how nodes and visits differ anyway: measure \
                 again, or with more nodes",
                apart(matrix.direction(), with - without)
            );
            let pairs = costs.iter().filter(|(a, b, _)| *a == node || *b == node).count();
            out.undecided.push(undecided(&[name], reason, pairs));
        }
    }
}

/// How the metric of a node stands to the others', by the logarithm of its cost over theirs.
fn apart(direction: Direction, worse: f64) -> String {
    match direction {
        Direction::HigherIsBetter => format!("{:.0} % below the pairs without it", -(-worse).exp_m1() * 100.0),
        Direction::LowerIsBetter if worse.exp() > 2.0 => format!("{:.1}x that of the pairs without it", worse.exp()),
        Direction::LowerIsBetter => format!("{:.0} % above the pairs without it", worse.exp_m1() * 100.0),
    }
}

fn undecided(nodes: &[&String], reason: String, pairs: usize) -> Undecided {
    let candidate = |name: &&String| Candidate { kind: Kind::Node, element: (*name).clone() };
    Undecided { candidates: nodes.iter().map(candidate).collect(), reason, pairs, slow: 0 }
}

/// Log cost of one visit: its time, or the reciprocal of its rate. `None` for zero counts and failed pairs.
fn cost(matrix: &Matrix, at: usize) -> Option<f64> {
    let mut values: Vec<f64> = matrix.values(at).iter().map(|value| f64::from(*value)).collect();
    values.sort_unstable_by(f64::total_cmp);
    let value = (!values.is_empty()).then(|| median_of_sorted(&values)).filter(|value| *value > 0.0)?;
    Some(if matrix.direction() == Direction::HigherIsBetter { -value.ln() } else { value.ln() })
}

fn middle<'a>(costs: impl Iterator<Item = &'a (u32, u32, f64)>) -> Option<f64> {
    let mut costs: Vec<f64> = costs.map(|(.., cost)| *cost).collect();
    costs.sort_unstable_by(f64::total_cmp);
    (!costs.is_empty()).then(|| median_of_sorted(&costs))
}

#[cfg(test)]
mod tests {
    use super::super::localise;
    use super::*;
    use crate::Params;
    use crate::network::Topology;

    /// What is left open where the last of `nodes` runs at a share of the others' speed.
    fn opened(nodes: usize, share: f64) -> Vec<String> {
        let mut matrix = Matrix::new("goodput", Direction::HigherIsBetter);
        for (a, b) in (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let speed = if a == nodes - 1 || b == nodes - 1 { share } else { 1.0 };
            let values = [0.99, 1.0, 1.01].map(|step| step * speed * (1.0 + 0.003 * (a + 2 * b) as f64));
            matrix.push_named(&format!("n{a}"), &format!("n{b}"), &values, None);
        }
        let found = localise(&matrix, &Topology::flat(&["n0"]), &Params::default());
        let slow = format!("n{}", nodes - 1);
        assert!(found.suspects.iter().all(|suspect| suspect.element == slow), "{:?}", found.suspects);
        let named = found.suspects.iter().map(|suspect| suspect.element.clone());
        named.chain(found.undecided.iter().map(|undecided| undecided.reason.clone())).collect()
    }

    #[test]
    fn a_slow_node_among_three_or_four_is_never_said_to_be_sound() {
        for nodes in [3, 4] {
            assert_eq!(opened(nodes, 1.0), [""; 0]);
            for share in [0.9, 0.7, 0.5] {
                assert!(!opened(nodes, share).is_empty(), "{nodes} nodes, one at {share}");
            }
        }
    }

    #[test]
    fn more_retransmits_are_said_to_be_above() {
        assert_eq!(apart(Direction::LowerIsBetter, (0.043_f64 / 0.0327).ln()), "31 % above the pairs without it");
        assert_eq!(apart(Direction::LowerIsBetter, 50.0_f64.ln()), "50.0x that of the pairs without it");
        assert_eq!(apart(Direction::HigherIsBetter, 2.0_f64.ln()), "50 % below the pairs without it");
    }

    #[test]
    fn one_pair_has_nothing_to_be_compared_with() {
        assert!(opened(2, 1.0)[0].starts_with("n0 and n1 were measured with each other only"));
    }
}

//! Which pairs deserve a second look, because the scan left them in doubt?

use std::collections::BTreeSet;

use crate::judge::pairs::Found;
use muster_analysis::network::Topology;
use muster_analysis::network::localise::{Kind, SURE, Suspect, crossing};
use muster_analysis::network::schedule::Pair;

/// Directions of a pair that was visited once: what held up its nodes for a moment held up both.
const ONCE: usize = 2;
/// A node, leaf or uplink accused by at most so many directions of pairs is looked at again: where machines stand still now and
/// then, one of many nodes has only slow visits by chance.
const FEW: usize = 8;
/// Pairs of each of these.
const EACH: usize = 3;

/// At most `most` rounds of pairs that would decide what the report leaves open, and of pairs that cross what it accuses by few
/// visits. No node is twice in a round. The most useful pairs are in the last round: take the rounds from the end.
pub(super) fn rounds(found: &Found, topology: &Topology, most: usize) -> Vec<Vec<Pair>> {
    let report = &found.report;
    let doubtful = |suspect: &Suspect| suspect.confidence < SURE || suspect.kind == Kind::Pair && suspect.pairs <= ONCE;
    let open = report.suspects.iter().any(|suspect| doubtful(&suspect.found)) || !report.undecided.is_empty();
    let next = report.next_pairs.iter().filter(|_| open).map(|[a, b]| [a.as_str(), b.as_str()]);
    let mut rounds: Vec<Vec<Pair>> = vec![Vec::new(); most];
    let mut met = BTreeSet::new();
    for [a, b] in next.chain(hasty(found, topology)) {
        let (Some(a), Some(b)) = (topology.endpoint(a), topology.endpoint(b)) else { continue };
        if a == b || !met.insert((a.min(b), a.max(b))) {
            continue;
        }
        let apart = |(c, d): &Pair| [a, b].iter().all(|node| node != c && node != d);
        if let Some(pairs) = rounds.iter_mut().find(|pairs| pairs.iter().all(apart)) {
            pairs.push((a, b));
        }
    }
    rounds.into_iter().rev().filter(|pairs| !pairs.is_empty()).collect()
}

/// Pairs that cross what is accused by few visits: a fault shows again, a hiccup does not.
fn hasty<'f>(found: &'f Found, topology: &Topology) -> Vec<[&'f str; 2]> {
    let few = |suspect: &Suspect| suspect.kind != Kind::Pair && suspect.pairs <= FEW;
    let mut pairs = Vec::new();
    for suspect in found.report.suspects.iter().filter(|suspect| few(&suspect.found)) {
        let Some(matrix) = found.matrices.get(&suspect.metric) else { continue };
        let crosses = crossing(matrix, topology, std::slice::from_ref(&suspect.found));
        let crossed = matrix.cells().iter().zip(crosses).filter(|(_, crosses)| *crosses);
        let ends: BTreeSet<(u32, u32)> = crossed.map(|(c, _)| (c.src.min(c.dst), c.src.max(c.dst))).collect();
        let name = |end: u32| matrix.endpoints()[end as usize].as_str();
        pairs.extend(ends.into_iter().take(EACH).map(|(a, b)| [name(a), name(b)]));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use muster_analysis::network::topology::Source;
    use muster_analysis::network::{Matrix, Of, PairsReport};
    use muster_wire::Direction;

    fn suspect(kind: Kind, element: &str, (confidence, pairs): (f64, usize)) -> Of<Suspect> {
        let (effect, interval, slow) = (0.5, [0.4, 0.6], 1);
        let element = element.to_owned();
        let metric = "throughput".to_owned();
        Of { metric, found: Suspect { kind, element, effect, interval, pairs, slow, confidence } }
    }

    fn found(names: &[&str]) -> Found {
        Found {
            matrices: BTreeMap::new(),
            topology: Topology::flat(names),
            localised: BTreeMap::new(),
            report: PairsReport::new(Source::Labels),
        }
    }

    #[test]
    fn doubtful_pairs_are_looked_at_again_with_no_node_twice_in_a_round_and_sure_ones_are_not() {
        let mut found = found(&["a", "b", "c", "d"]);
        let topology = found.topology.clone();
        let pair = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        found.report.next_pairs =
            vec![pair("a", "b"), pair("b", "a"), pair("a", "c"), pair("c", "d"), pair("a", "gone")];
        assert!(rounds(&found, &topology, 3).is_empty(), "nothing is in doubt");
        found.report.suspects = vec![suspect(Kind::Pair, "a-b", (0.99, 4))];
        assert!(rounds(&found, &topology, 3).is_empty(), "what is sure needs no second look");
        found.report.suspects = vec![suspect(Kind::Pair, "a-b", (0.99, 2))];
        assert_eq!(rounds(&found, &topology, 3).len(), 2, "one visit alone is looked at again");
        found.report.suspects.push(suspect(Kind::Pair, "a-b", (0.6, 4)));
        assert_eq!(rounds(&found, &topology, 3), [vec![(0, 2)], vec![(0, 1), (2, 3)]]);
        assert_eq!(rounds(&found, &topology, 1), [vec![(0, 1), (2, 3)]]);
    }

    #[test]
    fn what_is_accused_by_few_visits_is_visited_again() {
        let topology = Topology::flat(&["a", "b", "c", "d", "e"]);
        let again = |kind, pairs| {
            let mut matrix = Matrix::new("throughput", Direction::HigherIsBetter);
            for (src, dst) in [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), ("a", "c"), ("a", "d"), ("a", "e")] {
                matrix.push_named(src, dst, &[1e6], None);
            }
            let mut found = found(&["a", "b", "c", "d", "e"]);
            found.matrices.insert("throughput".to_owned(), matrix);
            found.report.suspects = vec![suspect(kind, "a", (0.99, pairs))];
            rounds(&found, &topology, 3)
        };
        assert_eq!(again(Kind::Node, 8), [vec![(0, 3)], vec![(0, 2)], vec![(0, 1)]], "three of its pairs");
        assert_eq!(again(Kind::NodeRx, 1), [vec![(0, 1)]], "what it receives alone");
        assert!(again(Kind::Node, 9).is_empty(), "by so many visits it is sure");
    }
}

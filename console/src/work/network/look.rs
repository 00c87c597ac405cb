//! Which pairs deserve a second look, because the scan left them in doubt?

use std::collections::BTreeSet;

use muster_analysis::network::Topology;
use muster_analysis::network::localise::{Kind, SURE, Suspect};
use muster_analysis::network::schedule::Pair;
use muster_playbook::report::PairsReport;

/// Directions of a pair that was visited once: what held up its nodes for a moment held up both.
const ONCE: usize = 2;

/// Rounds, `most` at most, over the pairs that would decide what `report` leaves open; no node is twice in one. The most
/// useful pairs are in the last, so that the rounds are taken from the end.
pub(super) fn rounds(report: &PairsReport, topology: &Topology, most: usize) -> Vec<Vec<Pair>> {
    let doubtful = |suspect: &Suspect| suspect.confidence < SURE || suspect.kind == Kind::Pair && suspect.pairs <= ONCE;
    if !report.suspects.iter().any(|suspect| doubtful(&suspect.found)) && report.undecided.is_empty() {
        return Vec::new();
    }
    let mut rounds: Vec<Vec<Pair>> = vec![Vec::new(); most];
    let mut met = BTreeSet::new();
    for [a, b] in &report.next_pairs {
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

#[cfg(test)]
mod tests {
    use super::*;
    use muster_analysis::network::topology::Source;
    use muster_playbook::report::Of;

    #[test]
    fn doubtful_pairs_are_looked_at_again_with_no_node_twice_in_a_round_and_sure_ones_are_not() {
        let topology = Topology::flat(&["a", "b", "c", "d"]);
        let mut report = PairsReport::new(Source::Labels);
        let pair = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        report.next_pairs = vec![pair("a", "b"), pair("b", "a"), pair("a", "c"), pair("c", "d"), pair("a", "gone")];
        assert!(rounds(&report, &topology, 3).is_empty(), "nothing is in doubt");
        let suspect = |confidence, pairs| Of {
            metric: "throughput".to_owned(),
            found: Suspect {
                kind: Kind::Pair,
                element: "a-b".to_owned(),
                effect: 0.5,
                interval: [0.4, 0.6],
                pairs,
                slow: 1,
                confidence,
            },
        };
        report.suspects = vec![suspect(0.99, 4)];
        assert!(rounds(&report, &topology, 3).is_empty(), "what is sure needs no second look");
        report.suspects = vec![suspect(0.99, 2)];
        assert_eq!(rounds(&report, &topology, 3).len(), 2, "one visit alone is looked at again");
        report.suspects.push(suspect(0.6, 4));
        assert_eq!(rounds(&report, &topology, 3), [vec![(0, 2)], vec![(0, 1), (2, 3)]]);
        assert_eq!(rounds(&report, &topology, 1), [vec![(0, 1), (2, 3)]]);
    }
}

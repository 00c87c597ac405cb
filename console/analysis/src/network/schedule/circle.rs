//! In which rounds does every node meet every other exactly once?
//!
//! The circle method of round-robin tournaments (Kirkman 1847; SuperBench, ATC'24, section 4): one node stays, the
//! others rotate. Rounds are computed, not stored, so any round of any fleet costs nothing to reach.

use super::Pair;

/// All pairs of `n` nodes in `n - 1` rounds, `n` rounds if `n` is odd (one node rests in each).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullScan {
    nodes: u32,
}

impl FullScan {
    /// A scan over nodes `0..nodes`; fewer than two have no rounds.
    #[must_use]
    pub fn new(nodes: u32) -> Self {
        Self { nodes }
    }

    /// How many rounds.
    #[must_use]
    pub fn len(self) -> u32 {
        if self.nodes < 2 { 0 } else { self.ring() }
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// How many pairs in all rounds.
    #[must_use]
    pub fn pairs(self) -> u64 {
        u64::from(self.nodes) * u64::from(self.nodes.saturating_sub(1)) / 2
    }

    /// Round `index`, `None` past the last.
    #[must_use]
    pub fn round(self, index: u32) -> Option<Round> {
        (index < self.len()).then_some(Round { nodes: self.nodes, ring: self.ring(), index })
    }

    /// All rounds in turn, computed as they are asked for.
    pub fn rounds(self) -> impl ExactSizeIterator<Item = Round> {
        (0..self.len()).map(move |index| Round { nodes: self.nodes, ring: self.ring(), index })
    }

    /// Nodes that rotate: all but one, made odd by a seat that stays empty.
    fn ring(self) -> u32 {
        if self.nodes.is_multiple_of(2) { self.nodes.saturating_sub(1) } else { self.nodes }
    }
}

/// One round: a perfect matching of all nodes, of all but one if their number is odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    nodes: u32,
    ring: u32,
    index: u32,
}

impl Round {
    /// Position in the scan, from 0.
    #[must_use]
    pub fn index(self) -> u32 {
        self.index
    }

    /// The node that rests, if the number of nodes is odd.
    #[must_use]
    pub fn idle(self) -> Option<u32> {
        (self.nodes % 2 == 1).then_some(self.index)
    }

    /// The pairs. Over a whole scan every node comes first in about half of its pairs.
    pub fn pairs(self) -> impl Iterator<Item = Pair> {
        let Self { nodes, ring, index } = self;
        let fixed = nodes
            .is_multiple_of(2)
            .then(|| if index.is_multiple_of(2) { (index, nodes - 1) } else { (nodes - 1, index) });
        let wrap = move |seat: u32| if seat >= ring { seat - ring } else { seat };
        fixed.into_iter().chain((1..=ring / 2).map(move |step| (wrap(index + step), wrap(index + ring - step))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn tiny_fleets() {
        assert!(FullScan::new(0).is_empty() && FullScan::new(1).is_empty());
        let pairs = |n| FullScan::new(n).rounds().map(|r| r.pairs().collect::<Vec<_>>()).collect::<Vec<_>>();
        assert_eq!(pairs(2), [[(0, 1)]]);
        assert_eq!(pairs(3), [[(1, 2)], [(2, 0)], [(0, 1)]]);
        assert_eq!(FullScan::new(4).round(3), None);
    }

    proptest! {
        #[test]
        fn every_round_is_a_perfect_matching_and_every_pair_comes_once(nodes in 2u32..140) {
            let scan = FullScan::new(nodes);
            let mut met = BTreeSet::new();
            let mut first = vec![0u32; nodes as usize];
            prop_assert_eq!(scan.rounds().len() as u32, nodes - 1 + nodes % 2);
            for round in scan.rounds() {
                let mut busy: BTreeSet<u32> = round.idle().into_iter().collect();
                for (a, b) in round.pairs() {
                    prop_assert!(busy.insert(a) && busy.insert(b), "{round:?}");
                    prop_assert!(met.insert((a.min(b), a.max(b))));
                    first[a as usize] += 1;
                }
                prop_assert_eq!(busy.len() as u32, nodes);
                prop_assert!(busy.iter().all(|&x| x < nodes));
            }
            prop_assert_eq!(met.len() as u64, scan.pairs());
            prop_assert!(first.iter().all(|f| f.abs_diff(nodes / 2) <= 1), "{first:?}");
        }
    }
}

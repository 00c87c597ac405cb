//! Which pairs are measured when there is no time for all, and how much do they cover?

use std::collections::BTreeMap;

use super::{FullScan, Pair};
use crate::Chance;
use crate::network::Topology;

/// Some rounds of a full scan over nodes in random order: no pair comes twice, and every node is measured in every
/// round (all but one if their number is odd).
#[derive(Clone, Debug)]
pub struct SampledScan {
    seats: Vec<u32>,
    chosen: Vec<u32>,
    scan: FullScan,
}

impl SampledScan {
    /// `rounds` rounds at most over nodes `0..nodes`. The same seed gives the same scan in every version, so that an
    /// interrupted run goes on with its own plan.
    #[must_use]
    pub fn new(nodes: u32, rounds: u32, seed: u64) -> Self {
        let scan = FullScan::new(nodes);
        let mut chance = Chance::plain(seed);
        let seats = shuffled(&mut chance, nodes);
        let mut chosen = shuffled(&mut chance, scan.len());
        chosen.truncate(rounds as usize);
        Self { seats, chosen, scan }
    }

    /// The rounds in turn.
    pub fn rounds(&self) -> impl ExactSizeIterator<Item = Vec<Pair>> {
        self.chosen.iter().map(|&index| {
            let pairs = self.scan.round(index).into_iter().flat_map(super::Round::pairs);
            pairs.map(|(a, b)| (self.seats[a as usize], self.seats[b as usize])).collect()
        })
    }

    /// Pairs measured, of all there are.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        let each = self.scan.round(0).map_or(0, |r| r.pairs().count() as u64);
        Coverage { pairs: each * self.chosen.len() as u64, of: self.scan.pairs() }
    }
}

/// How many unordered pairs a set of rounds measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Distinct pairs measured.
    pub pairs: u64,
    /// Pairs there are.
    pub of: u64,
}

impl Coverage {
    /// Share measured, 0 to 1; 1 where there is nothing to measure.
    #[must_use]
    pub fn share(self) -> f64 {
        if self.of == 0 { 1.0 } else { self.pairs as f64 / self.of as f64 }
    }

    /// Coverage of every hop distance by `pairs`, repeated ones counted once. O(pairs log pairs + leaves²).
    #[must_use]
    pub fn by_hops(pairs: impl IntoIterator<Item = Pair>, topology: &Topology) -> BTreeMap<u16, Self> {
        let mut members = vec![0_u64; topology.leaves().len()];
        (0..topology.len() as u32).for_each(|node| members[topology.leaf(node) as usize] += 1);
        let mut out: BTreeMap<u16, Self> = BTreeMap::new();
        for a in 0..members.len() {
            for b in a..members.len() {
                let of = if a == b { members[a] * members[a].saturating_sub(1) / 2 } else { members[a] * members[b] };
                if let Some(hops) = topology.leaf_hops(a as u32, b as u32).filter(|_| of > 0) {
                    out.entry(hops).or_default().of += of;
                }
            }
        }
        let mut distinct: Vec<Pair> = pairs.into_iter().map(|(a, b)| (a.min(b), a.max(b))).collect();
        distinct.sort_unstable();
        distinct.dedup();
        for (a, b) in distinct {
            if let Some(tier) = topology.hops(a, b).and_then(|hops| out.get_mut(&hops)) {
                tier.pairs += 1;
            }
        }
        out
    }
}

/// `0..n` in random order.
pub(super) fn shuffled(chance: &mut Chance, n: u32) -> Vec<u32> {
    let mut all: Vec<u32> = (0..n).collect();
    chance.shuffle(&mut all);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn coverage_by_hops_counts_each_pair_once() {
        let topology = crate::network::topology::from_csv("a,l1\nb,l1\nc,l2\nd,l2\n").unwrap();
        let covered = Coverage::by_hops([(0, 1), (1, 0), (0, 2)], &topology);
        assert_eq!(covered[&2], Coverage { pairs: 1, of: 2 });
        assert_eq!(covered[&4], Coverage { pairs: 1, of: 4 });
        assert_eq!(covered[&4].share(), 0.25);
    }

    proptest! {
        #[test]
        fn sampled_rounds_are_matchings_of_distinct_pairs(nodes in 0u32..60, rounds in 0u32..70, seed: u64) {
            let scan = SampledScan::new(nodes, rounds, seed);
            let mut met = BTreeSet::new();
            for round in scan.rounds() {
                let busy: BTreeSet<u32> = round.iter().flat_map(|(a, b)| [*a, *b]).collect();
                prop_assert_eq!(busy.len(), 2 * round.len());
                prop_assert_eq!(round.len() as u32, nodes / 2);
                for (a, b) in round {
                    prop_assert!(a.max(b) < nodes && met.insert((a.min(b), a.max(b))));
                }
            }
            prop_assert_eq!(met.len() as u64, scan.coverage().pairs);
            prop_assert!(scan.coverage().share() <= 1.0);
        }
    }
}

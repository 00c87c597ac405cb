//! Which NIC of one node talks to which NIC of the other?

use super::{FullScan, Round};

/// One NIC of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// Node number.
    pub node: u32,
    /// NIC (rail) number on that node, from 0.
    pub nic: u16,
}

/// A full scan of nodes with several NICs each: all NICs of all nodes are busy in every round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rails {
    scan: FullScan,
    nics: u16,
    crossed: bool,
}

impl Rails {
    /// NIC `k` meets NIC `k` of every other node, as in rail-optimised fabrics, in as many rounds as nodes need.
    #[must_use]
    pub fn aligned(nodes: u32, nics: u16) -> Self {
        Self { scan: FullScan::new(nodes), nics, crossed: false }
    }

    /// Every NIC meets every NIC of every other node, in `nics` times as many rounds.
    #[must_use]
    pub fn crossed(nodes: u32, nics: u16) -> Self {
        Self { scan: FullScan::new(nodes), nics, crossed: true }
    }

    /// All rounds in turn, each a matching of endpoints, computed as they are asked for.
    pub fn rounds(self) -> impl Iterator<Item = RailRound> {
        let shifts = match (self.nics, self.crossed) {
            (0, _) => 0,
            (nics, true) => nics,
            (_, false) => 1,
        };
        let of_shift = move |shift| self.scan.rounds().map(move |round| RailRound { round, shift, nics: self.nics });
        (0..shifts).flat_map(of_shift)
    }
}

/// One round of a [`Rails`] scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RailRound {
    /// Who meets whom.
    pub round: Round,
    /// NIC `k` of the first node meets NIC `k + shift` of the second, modulo their number.
    pub shift: u16,
    nics: u16,
}

impl RailRound {
    /// The pairs of endpoints.
    pub fn pairs(self) -> impl Iterator<Item = (Endpoint, Endpoint)> {
        let Self { round, shift, nics } = self;
        round.pairs().flat_map(move |(a, b)| {
            let other = move |nic: u16| ((u32::from(nic) + u32::from(shift)) % u32::from(nics)) as u16;
            (0..nics).map(move |nic| (Endpoint { node: a, nic }, Endpoint { node: b, nic: other(nic) }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn endpoints_meet_once_and_never_twice_in_a_round(nodes in 2u32..20, nics in 0u16..5, crossed: bool) {
            let rails = if crossed { Rails::crossed(nodes, nics) } else { Rails::aligned(nodes, nics) };
            let mut met = BTreeSet::new();
            for round in rails.rounds() {
                let mut busy = BTreeSet::new();
                for (a, b) in round.pairs() {
                    prop_assert!(a.node != b.node && busy.insert(a) && busy.insert(b));
                    prop_assert!(crossed || a.nic == b.nic);
                    prop_assert!(met.insert((a.min(b), a.max(b))));
                }
            }
            let each = if crossed { u64::from(nics) * u64::from(nics) } else { u64::from(nics) };
            prop_assert_eq!(met.len() as u64, FullScan::new(nodes).pairs() * each);
        }
    }
}

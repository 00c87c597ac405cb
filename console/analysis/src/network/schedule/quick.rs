//! Which pairs measure every node once at every hop distance?
//!
//! The quick scan of SuperBench (ATC'24, section 4), with a maximum matching per distance where its code pairs the
//! first free nodes it meets and loses some.

use super::{Pair, matching};
use crate::network::Topology;

/// The round of one hop distance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Links between the two nodes of every pair.
    pub hops: u16,
    /// As many pairs as any round of this distance can have.
    pub pairs: Vec<Pair>,
    /// Nodes left over although some other node is this far away; no round of this distance can hold them all.
    pub unpaired: Vec<u32>,
    /// Nodes without any other at this distance.
    pub alone: Vec<u32>,
}

/// One round per hop distance, nearest first. Partners are spread over leaves. Well under two seconds for 10,000 nodes
/// under 500 leaves; memory is one number per node and leaf.
#[must_use]
pub fn quick_scan(topology: &Topology) -> Vec<Tier> {
    topology.tiers().into_iter().map(|hops| tier(topology, hops)).collect()
}

fn tier(topology: &Topology, hops: u16) -> Tier {
    let leaves = topology.leaves().len();
    let mut free: Vec<Vec<u32>> = vec![Vec::new(); leaves];
    for node in (0..topology.len() as u32).rev() {
        free[topology.leaf(node) as usize].push(node);
    }
    let sizes: Vec<u32> = free.iter().map(|nodes| nodes.len() as u32).collect();
    let table: Vec<bool> = (0..leaves * leaves)
        .map(|at| topology.leaf_hops((at / leaves) as u32, (at % leaves) as u32) == Some(hops))
        .collect();
    let adjacent = |a: u32, b: u32| table[a as usize * leaves + b as usize];
    let mut pairs = Vec::new();
    for ((a, b), count) in matching::maximum(&sizes, &adjacent) {
        for _ in 0..count {
            let taken = (free[a as usize].pop(), free[b as usize].pop());
            if let (Some(x), Some(y)) = taken {
                pairs.push((x, y));
            }
        }
    }
    pairs.sort_unstable();
    let (mut unpaired, mut alone) = (Vec::new(), Vec::new());
    for (leaf, nodes) in free.into_iter().enumerate().filter(|(_, nodes)| !nodes.is_empty()) {
        let partner = |other: usize| table[leaf * leaves + other] && sizes[other] > u32::from(other == leaf);
        let list = if (0..leaves).any(partner) { &mut unpaired } else { &mut alone };
        list.extend(nodes);
    }
    unpaired.sort_unstable();
    alone.sort_unstable();
    Tier { hops, pairs, unpaired, alone }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::topology::from_csv;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tiers_hold_every_node_once_and_leave_over_what_no_tree_can_pair(
            leaves in proptest::collection::vec((1usize..7, 0u8..3), 1..8),
        ) {
            let text: String = leaves
                .iter()
                .enumerate()
                .flat_map(|(l, (n, pod))| (0..*n).map(move |i| format!("n{l}-{i},l{l},p{pod}\n")))
                .collect();
            let t = from_csv(&text).unwrap();
            for tier in quick_scan(&t) {
                let mut seen: Vec<u32> = tier.pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
                prop_assert!(tier.pairs.iter().all(|&(a, b)| t.hops(a, b) == Some(tier.hops)));
                seen.extend(tier.unpaired.iter().chain(&tier.alone));
                seen.sort_unstable();
                prop_assert_eq!(seen, (0..t.len() as u32).collect::<Vec<_>>());
            }
        }
    }
}

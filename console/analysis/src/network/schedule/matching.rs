//! How many pairs can be formed at most, where only the groups of two nodes decide whether they may pair?
//!
//! Nodes under one leaf are equally far from everyone, so groups of twins are matched instead of nodes. Always pairing
//! the two largest groups is already maximum in a tree of switches. For other fabrics the rest is settled exactly
//! by Edmonds' algorithm on a small graph: a shortest augmenting path passes each group at most once outwards and once
//! inwards (two outward visits could be joined, the twins having the same neighbours), so two unmatched nodes of each
//! group and two pairs of each kind show every augmentation there is.

use std::collections::{BTreeMap, BinaryHeap};

use petgraph::algo::matching::maximum_matching;
use petgraph::graph::{NodeIndex, UnGraph};

/// Pairs of groups (smaller number first) and how many pairs of nodes they give. `sizes` counts the nodes of each
/// group, `adjacent` tells whether nodes of two groups, or two of one, may pair; it must be symmetric.
pub(super) fn maximum(sizes: &[u32], adjacent: &impl Fn(u32, u32) -> bool) -> BTreeMap<(u32, u32), u32> {
    let mut state = State { left: sizes.to_vec(), pairs: BTreeMap::new() };
    state.pair_largest(adjacent);
    if state.may_grow(adjacent) {
        while state.augment(adjacent) {}
    }
    state.pairs
}

struct State {
    left: Vec<u32>,
    pairs: BTreeMap<(u32, u32), u32>,
}

/// Copies kept of everything that is interchangeable; see the head of this file.
const COPIES: u32 = 2;

impl State {
    fn add(&mut self, a: u32, b: u32, count: u32) {
        *self.pairs.entry((a.min(b), a.max(b))).or_default() += count;
        self.left[a as usize] -= count;
        self.left[b as usize] -= count;
    }

    fn pair_largest(&mut self, adjacent: &impl Fn(u32, u32) -> bool) {
        let groups = self.left.len() as u32;
        // Where nodes of one group pair among themselves, no other group is needed.
        for group in 0..groups {
            if self.left[group as usize] > 1 && adjacent(group, group) {
                self.add(group, group, self.left[group as usize] / 2);
            }
        }
        let mut queue: BinaryHeap<(u32, u32)> =
            (0..groups).map(|g| (self.left[g as usize], groups - g)).filter(|(size, _)| *size > 0).collect();
        while let Some((size, rank)) = queue.pop() {
            let own = groups - rank;
            if size != self.left[own as usize] || size == 0 {
                continue;
            }
            let free = |g: &u32| *g != own && self.left[*g as usize] > 0 && adjacent(own, *g);
            let Some(other) = (0..groups).filter(free).max_by_key(|g| (self.left[*g as usize], groups - g)) else {
                continue;
            };
            self.add(own, other, 1);
            queue.push((self.left[own as usize], rank));
            queue.push((self.left[other as usize], groups - other));
        }
    }

    /// Whether some connected set of groups has two nodes left over; one may be a matter of parity.
    fn may_grow(&self, adjacent: &impl Fn(u32, u32) -> bool) -> bool {
        let groups = self.left.len() as u32;
        let mut seen = vec![false; groups as usize];
        for start in (0..groups).filter(|g| self.left[*g as usize] > 0) {
            if seen[start as usize] {
                continue;
            }
            let (mut open, mut over, mut members) = (vec![start], 0, 0_u32);
            seen[start as usize] = true;
            while let Some(at) = open.pop() {
                over += self.left[at as usize];
                members += 1;
                for next in 0..groups {
                    if !seen[next as usize] && adjacent(at, next) {
                        seen[next as usize] = true;
                        open.push(next);
                    }
                }
            }
            if over > 1 && members > 1 {
                return true;
            }
        }
        false
    }

    /// Finds a larger matching on the small graph; `false` when the matching is maximum.
    fn augment(&mut self, adjacent: &impl Fn(u32, u32) -> bool) -> bool {
        let mut groups: Vec<u32> = Vec::new();
        let mut kept: Vec<(u32, u32, u32)> = Vec::new();
        for (group, &left) in self.left.iter().enumerate() {
            groups.extend((0..left.min(COPIES)).map(|_| group as u32));
        }
        for (&(a, b), &count) in &self.pairs {
            let count = count.min(COPIES);
            kept.push((a, b, count));
            groups.extend((0..count).flat_map(|_| [a, b]));
        }
        let before: u32 = kept.iter().map(|k| k.2).sum();
        let n = groups.len();
        let edges = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).filter(|&(i, j)| adjacent(groups[i], groups[j]));
        let mut graph: UnGraph<(), ()> = UnGraph::with_capacity(n, n * 8);
        (0..n).for_each(|_| {
            graph.add_node(());
        });
        edges.for_each(|(i, j)| {
            graph.add_edge(NodeIndex::new(i), NodeIndex::new(j), ());
        });
        let found = maximum_matching(&graph);
        if found.len() <= before as usize {
            return false;
        }
        for (a, b, count) in kept {
            if let Some(pairs) = self.pairs.get_mut(&(a, b)) {
                *pairs -= count;
            }
            self.left[a as usize] += count;
            self.left[b as usize] += count;
        }
        for (i, j) in found.edges() {
            self.add(groups[i.index()], groups[j.index()], 1);
        }
        self.pairs.retain(|_, count| *count > 0);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Largest number of pairs by trying everything.
    fn brute(group_of: &[u32], adjacent: &impl Fn(u32, u32) -> bool, used: u32) -> u32 {
        let Some(first) = (0..group_of.len()).find(|i| used & (1 << i) == 0) else { return 0 };
        let without = brute(group_of, adjacent, used | 1 << first);
        let with = (first + 1..group_of.len())
            .filter(|&j| used & (1 << j) == 0 && adjacent(group_of[first], group_of[j]))
            .map(|j| 1 + brute(group_of, adjacent, used | 1 << first | 1 << j))
            .max();
        with.unwrap_or(0).max(without)
    }

    #[test]
    fn a_path_of_groups_needs_the_middle_to_be_shared_out() {
        // Greedy alone pairs the two groups in the middle and strands the ends.
        let adjacent = |a: u32, b: u32| a.abs_diff(b) == 1;
        let pairs = maximum(&[3, 4, 4, 3], &adjacent);
        assert_eq!(pairs.values().sum::<u32>(), 7);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn as_many_pairs_as_trying_everything_finds(
            sizes in proptest::collection::vec(0u32..4, 1..7), bits in proptest::collection::vec(any::<bool>(), 28),
        ) {
            let adjacent = |a: u32, b: u32| {
                let (low, high) = (a.min(b), a.max(b));
                bits[(high * (high + 1) / 2 + low) as usize]
            };
            let group_of: Vec<u32> =
                sizes.iter().enumerate().flat_map(|(g, &n)| (0..n).map(move |_| g as u32)).collect();
            prop_assume!(group_of.len() <= 11);
            let pairs = maximum(&sizes, &adjacent);
            let mut used = vec![0; sizes.len()];
            for (&(a, b), &count) in &pairs {
                prop_assert!(adjacent(a, b));
                used[a as usize] += count;
                used[b as usize] += count;
            }
            prop_assert!(used.iter().zip(&sizes).all(|(u, s)| u <= s));
            prop_assert_eq!(pairs.values().sum::<u32>(), brute(&group_of, &adjacent, 0));
        }
    }
}

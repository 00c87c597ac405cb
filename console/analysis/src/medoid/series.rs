//! Many values per node: the raw distance to all others, summed in one sweep over all steps, O(S log m).
//!
//! At a fixed place on the axis a node on level `a > 0` is `N - A/a - a B` away from the fleet, `A` the sum of the
//! levels at or below its own and `B` the sum of the reciprocals of those above. Each step moves one node by one
//! level; [`TimeTree`] integrates `A` and `B` of every level along the axis ("time"). With a tail floor the
//! levels below it need a count as well.

use muster_wire::Direction;

use super::chunks::in_order;
use super::fenwick::{Pair, TimeTree};
use super::levels::Levels;
use crate::Sample;

/// For every sample the sum of its raw distances to all samples (see [`crate::parts`]), exactly, without looking
/// at pairs. Lengths may differ.
#[must_use]
pub fn raw_sums(samples: &[&Sample], dir: Direction, tau: f64) -> Vec<f64> {
    let lengths: Vec<usize> = samples.iter().map(|s| s.len()).collect();
    let levels = Levels::of(&lengths);
    let mut sweep = Sweep::new(&levels, samples.len(), tau);
    let mut taken = vec![0_usize; samples.len()];
    let mut origin = None;
    in_order(samples, dir, |at, node| {
        let now = at - *origin.get_or_insert(at);
        taken[node] += 1;
        sweep.step(node, levels.rank(node, taken[node]), now);
    });
    sweep.finish()
}

struct Sweep<'a> {
    levels: &'a Levels,
    tau: f64,
    /// Highest rank whose level is not above tau.
    floor: usize,
    now: f64,
    nodes: Vec<Node>,
    tree: TimeTree,
    /// Counts of nodes by rank up to the floor.
    counts: TimeTree,
    low: Low,
}

#[derive(Clone, Copy, Default)]
struct Node {
    rank: u32,
    sum: f64,
    base: f64,
}

/// Sums over nodes that every level needs, and their integrals.
#[derive(Default)]
struct Low {
    /// Nodes at or below the floor, and their levels.
    count: f64,
    level: f64,
    /// Reciprocal levels of the nodes above the floor.
    high_reciprocal: f64,
    count_time: f64,
    level_time: f64,
    high_reciprocal_time: f64,
    /// All levels, and their integral.
    all: f64,
    all_time: f64,
}

impl<'a> Sweep<'a> {
    fn new(levels: &'a Levels, n: usize, tau: f64) -> Self {
        let floor = levels.level.partition_point(|&l| l <= tau) - 1;
        Self {
            levels,
            tau,
            floor,
            now: 0.0,
            nodes: vec![Node::default(); n],
            tree: TimeTree::new(levels.ranks()),
            counts: TimeTree::new(floor),
            low: Low { count: n as f64, ..Low::default() },
        }
    }

    /// Lifts `node` to `rank` at `now`. Mass moved now has no integral yet, so both are read before the move.
    fn step(&mut self, node: usize, rank: usize, now: f64) {
        self.advance(now);
        let old = self.nodes[node].rank as usize;
        let (above_old, above_new) = self.tree.above_both(old, rank, self.now);
        let gained = self.integral(old, above_old) - self.nodes[node].base;
        let base = self.integral(rank, above_new);
        self.lift(old, rank);
        let entry = &mut self.nodes[node];
        entry.sum += gained;
        entry.base = base;
        entry.rank = rank as u32;
    }

    fn finish(mut self) -> Vec<f64> {
        for i in 0..self.nodes.len() {
            let node = self.nodes[i];
            let rank = node.rank as usize;
            self.nodes[i].sum += self.integral(rank, self.tree.above(rank, self.now)) - node.base;
        }
        self.nodes.into_iter().map(|n| n.sum.max(0.0)).collect()
    }

    fn advance(&mut self, now: f64) {
        let passed = now - self.now;
        if passed > 0.0 {
            let low = &mut self.low;
            low.count_time += low.count * passed;
            low.level_time += low.level * passed;
            low.all_time += low.all * passed;
            low.high_reciprocal_time += low.high_reciprocal * passed;
            self.now = now;
        }
    }

    fn lift(&mut self, old: usize, new: usize) {
        let levels = self.levels;
        let mass = |rank: usize| Pair { a: levels.level[rank], b: levels.reciprocal[rank] };
        self.tree.lift((old, mass(old)), (new, mass(new)), self.now);
        // Not by the difference: what was added must leave exactly as it came.
        self.low.all -= levels.level[old];
        self.low.all += levels.level[new];
        for (rank, sign) in [(old, -1.0), (new, 1.0)] {
            if rank <= self.floor {
                self.counts.add(rank, Pair { a: sign, b: 0.0 }, self.now);
                self.low.count += sign;
                self.low.level += sign * levels.level[rank];
            } else {
                self.low.high_reciprocal += sign * levels.reciprocal[rank];
            }
        }
    }

    /// Integral so far of the distance to the fleet that a node on `rank` would have had all along.
    /// `above` is the tree's answer for the rank.
    fn integral(&self, rank: usize, above: Pair) -> f64 {
        let n = self.nodes.len() as f64;
        let low = &self.low;
        let high_count = n * self.now - low.count_time;
        if rank == 0 {
            let beside = if self.tau > 0.0 { low.level_time / self.tau } else { 0.0 };
            return beside + high_count;
        }
        let level = self.levels.level[rank];
        let below = low.all_time - above.a;
        if rank > self.floor {
            return n * self.now - below * self.levels.reciprocal[rank] - level * above.b;
        }
        // The level lies under the floor: differences count by 1/tau up to the floor, in full share above it.
        let between_count = self.counts.above(rank, self.now).a;
        let between = low.level_time - below - level * between_count;
        let beneath = level * (low.count_time - between_count) - below;
        (beneath + between) / self.tau + high_count - level * low.high_reciprocal_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts;
    use proptest::prelude::*;

    fn check(fleet: &[Vec<f64>], dir: Direction, tau: f64) -> Result<(), TestCaseError> {
        let samples: Vec<Sample> = fleet.iter().map(|v| Sample::new(v).unwrap()).collect();
        let samples: Vec<&Sample> = samples.iter().collect();
        let fast = raw_sums(&samples, dir, tau);
        let size = samples.iter().map(|s| s.values()[s.len() - 1]).fold(1e-300, f64::max) * samples.len() as f64;
        for (i, a) in samples.iter().enumerate() {
            let slow: f64 = samples.iter().map(|b| parts(a, b, dir, tau).raw()).sum();
            prop_assert!((fast[i] - slow).abs() <= 1e-9 * slow.max(1e-3 * size), "node {i}: {} {slow}", fast[i]);
        }
        Ok(())
    }

    fn values(max: usize) -> impl Strategy<Value = Vec<f64>> {
        prop_oneof![
            proptest::collection::vec((0u8..6).prop_map(f64::from), 1..max),
            proptest::collection::vec(0.0f64..1e6, 1..max),
            proptest::collection::vec((-3.0f64..3.0).prop_map(|x| 100.0 + x.tan().abs()), 1..max),
        ]
    }

    fn direction() -> impl Strategy<Value = Direction> {
        prop_oneof![Just(Direction::HigherIsBetter), Just(Direction::LowerIsBetter)]
    }

    proptest! {
        #[test]
        fn unequal_lengths_and_ties_equal_the_definition(
            fleet in proptest::collection::vec(values(14), 1..12), dir in direction(),
            tau in prop_oneof![Just(0.0), Just(0.01), 0.0f64..0.7, Just(0.5)],
        ) {
            check(&fleet, dir, tau)?;
        }

        #[test]
        fn long_equal_lengths_equal_the_definition(
            fleet in proptest::collection::vec(proptest::collection::vec(90.0f64..110.0, 200), 2..10),
            dir in direction(), tau in prop_oneof![Just(0.0), Just(0.01), Just(0.05)],
        ) {
            check(&fleet, dir, tau)?;
        }
    }
}

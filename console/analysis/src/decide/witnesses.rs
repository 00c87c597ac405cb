//! Slow metrics of few steps, weighed together node by node.

use super::cell::FEW;
use super::decision::{Cell, Why};
use super::few::{Witnesses, stalled, upper_rate};
use super::measured::Measured;
use super::{Fleet, Settings};
use crate::State;

/// A metric that sees no slower node than this counts for nothing.
const SEEING: f64 = 0.1;
/// Of a node's metrics, the share beyond which it is slow and not stalled.
const BROAD: f64 = 0.5;
/// No rate of stalls is believed to be higher.
const HIGHEST: f64 = 0.5;

/// A slow cell of few steps.
struct Flag {
    metric: usize,
    named: bool,
    contested: bool,
}

/// Raises cells to warnings and fails where their node has enough of them.
pub(super) fn raise(fleet: &Fleet<'_>, settings: &Settings, measured: &[Measured], cells: &mut [Vec<Cell>]) {
    let mut flags: Vec<Vec<Flag>> = (0..fleet.nodes).map(|_| Vec::new()).collect();
    for (metric, of) in measured.iter().enumerate() {
        for slow in &of.slow {
            flags[slow.node as usize].push(Flag { metric, named: slow.named, contested: slow.contested });
        }
    }
    let mut stalls = Stalls { fleet, settings, measured, seen: vec![0; fleet.nodes], index: vec![0; measured.len()] };
    for (node, flags) in flags.iter().enumerate().filter(|(_, flags)| !flags.is_empty()) {
        stalls.raise(node, flags, cells);
    }
}

struct Stalls<'a> {
    fleet: &'a Fleet<'a>,
    settings: &'a Settings,
    measured: &'a [Measured],
    /// Per node, metrics in which it is beyond the judged node's limits; all 0 between calls.
    seen: Vec<u32>,
    /// Index of the judged node in each column; grows with the node.
    index: Vec<usize>,
}

impl Stalls<'_> {
    fn raise(&mut self, node: usize, flags: &[Flag], cells: &mut [Vec<Cell>]) {
        let counted = self.counted(node, cells);
        let counts = |flag: &&Flag| counted.binary_search(&flag.metric).is_ok();
        let slow = flags.iter().filter(counts).count();
        let named = flags.iter().filter(counts).filter(|flag| flag.named).count();
        let rate = self.rate(node, &counted, cells);
        let nodes = self.fleet.run_nodes.max(self.fleet.nodes);
        let all = Witnesses { metrics: counted.len(), rate };
        let needed = [self.settings.fail, self.settings.warn].map(|chance| all.needed(nodes, chance));
        for flag in flags {
            let convicted = flag.named && named >= needed[0];
            let doubted = slow >= needed[1] || named >= needed[1];
            let cell = &mut cells[flag.metric][node];
            (cell.state, cell.why) = match (convicted, doubted) {
                (true, _) if flag.contested => (State::Warn, contested(cell.why)),
                (true, _) => (State::Fail, Why::Beyond),
                (false, true) if flag.contested => (State::Warn, contested(cell.why)),
                (false, true) => (State::Warn, Why::BeyondWarning),
                (false, false) => {
                    let [witnesses, needed] = [slow, needed[1]].map(|n| u32::try_from(n).unwrap_or(u32::MAX));
                    (State::Unknown, Why::FewSteps { witnesses, needed })
                }
            };
        }
    }

    /// Metrics of few steps in which `node` would have been seen slow.
    fn counted(&mut self, node: usize, cells: &[Vec<Cell>]) -> Vec<usize> {
        let bound = self.settings.coarsest + SEEING;
        let mut counted = Vec::new();
        for (metric, of) in self.measured.iter().enumerate() {
            let cell = &cells[metric][node];
            if cell.state == State::NotRun || cell.resolution > bound || self.fleet.metrics[metric].aggregated {
                continue;
            }
            let nodes = &of.column.median.nodes;
            while nodes[self.index[metric]] < node as u32 {
                self.index[metric] += 1;
            }
            if of.column.steps[self.index[metric]] < FEW {
                counted.push(metric);
            }
        }
        counted
    }

    /// Chance that a metric of `node` is slow by a stall, as the others' isolated slow values show it.
    fn rate(&mut self, node: usize, counted: &[usize], cells: &[Vec<Cell>]) -> f64 {
        let steps = counted.iter().map(|&metric| self.measured[metric].column.steps[self.index[metric]]);
        let Some(middle) = middle(steps.collect()) else { return HIGHEST };
        let rate = match middle {
            0..=2 => stalled_value(self.isolated(node, counted, cells), self.settings.glitch, middle),
            steps => 2.0 * stalled(steps, self.settings.glitch),
        };
        rate.min(HIGHEST)
    }

    /// Slow values of other nodes that are not slow throughout, and how many values were looked at.
    fn isolated(&mut self, node: usize, counted: &[usize], cells: &[Vec<Cell>]) -> (usize, usize) {
        let (mut touched, mut looks) = (Vec::new(), 0);
        for &metric in counted {
            let of = &self.measured[metric];
            let view = &of.column.median;
            looks += view.len() - 1;
            let peers = &of.peers[self.index[metric]];
            let limit = peers.centre * (1.0 - cells[metric][node].warn_limit);
            for &index in &view.sorted.order()[..view.sorted.up_to(limit, &mut 0)] {
                let other = view.nodes[index as usize] as usize;
                if other != node {
                    if self.seen[other] == 0 {
                        touched.push(other);
                    }
                    self.seen[other] += 1;
                }
            }
        }
        let slow = |other: usize| {
            let seen = std::mem::take(&mut self.seen[other]) as usize;
            (seen, counted.iter().filter(|&&metric| cells[metric][other].state != State::NotRun).count())
        };
        (isolated(touched.into_iter().map(slow)), looks)
    }
}

/// How many slow values are of nodes that are not slow throughout, by each node's slow values and all that it has.
fn isolated(nodes: impl Iterator<Item = (usize, usize)>) -> usize {
    nodes.filter(|(slow, has)| *slow as f64 <= (BROAD * *has as f64).max(1.0)).map(|(slow, _)| slow).sum()
}

/// Chance that a value of so many steps is slow, where others had `seen` slow ones in `looks`.
fn stalled_value((seen, looks): (usize, usize), glitch: f64, steps: u32) -> f64 {
    upper_rate(seen, looks, glitch) * f64::from(steps)
}

/// Why a slow node is not the only one: the whole run is slower than its criterion, or the fleet is of two kinds.
fn contested(why: Why) -> Why {
    if matches!(why, Why::TwoClusters | Why::WholeRunSlow) { why } else { Why::Contested }
}

/// Median of numbers of steps, rounded down; `None` of none.
fn middle(mut steps: Vec<u32>) -> Option<u32> {
    steps.sort_unstable();
    let last = steps.len().checked_sub(1)?;
    Some(u32::midpoint(steps[last / 2], steps[steps.len() / 2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_values_of_a_node_that_is_slow_throughout_are_no_stalls() {
        assert_eq!(isolated([(1, 1), (1, 20), (2, 20), (19, 20)].into_iter()), 4);
        assert_eq!(isolated([(2, 2), (7, 8)].into_iter()), 0);
    }

    #[test]
    fn a_value_of_two_steps_is_slow_by_either() {
        assert_eq!([0, 1, 2].map(|steps| stalled_value((0, 100), 0.003, steps)), [0.0, 0.003, 0.006]);
        // 4 of 100, and 1.65 standard deviations more.
        assert!((stalled_value((4, 100), 0.003, 2) - 0.146).abs() < 1e-12);
    }

    #[test]
    fn the_middle_of_steps_is_their_median() {
        let middle = |steps: &[u32]| middle(steps.to_vec());
        assert_eq!(middle(&[]), None);
        assert_eq!([middle(&[5]), middle(&[2, 9]), middle(&[9, 1, 2])], [Some(5), Some(5), Some(2)]);
        assert_eq!([middle(&[1, 1, 5, 5]), middle(&[7, 1, 1, 1, 6, 6])], [Some(3), Some(3)]);
    }
}

//! A node that is slow in many steps of each of several metrics of few steps: too few for a mean that leaves out stalls, and less
//! than half of them, so that no median shows it.
//!
//! Three of seven steps at half the speed are three stalls or a slow node; the same in each of eight metrics, where no other node
//! has a single such step, is a slow node. Where a metric is so noisy that any other node has such a step, it says nothing. It may
//! warn, never fail. Averages hold no stalls: there the mean tells.

use std::ops::RangeInclusive;

use muster_wire::Direction;

use super::budget;
use super::cell::Scene;
use super::decision::{Cell, View as Look, Why};
use super::few::at_least;
use super::measured::Measured;
use super::parts::Parts;
use super::tails::slower_steps;
use super::views::speed;
use super::{Fleet, Settings};
use crate::{Sample, State};

/// Share of speed that a slow step loses: less occurs in noise that no other node happens to show.
const LOSS: f64 = 0.4;
/// Steps of a series: more have a mean.
const STEPS: RangeInclusive<u32> = 3..=7;
/// Slow steps that make a metric count.
const SLOW: usize = 2;
/// What none of so many steps of the others shows has at most this rate over their number, with probability 0.95.
const NONE_SEEN: f64 = 3.0;

/// Warns about nodes with slow steps in so many of a component's metrics that stalls do not explain them.
pub(super) fn warn(
    fleet: &Fleet<'_>,
    settings: &Settings,
    parts: &Parts,
    measured: &[Measured],
    cells: &mut [Vec<Cell>],
) {
    let of = Of { fleet, measured };
    for (_, metrics) in &parts.components {
        let short: Vec<Short> = metrics.iter().filter_map(|metric| of.short(*metric)).collect();
        let mut suspects: Vec<u32> = short.iter().flat_map(|one| of.slow_nodes(one.metric)).collect();
        suspects.sort_unstable();
        suspects.dedup();
        for node in suspects {
            let counted: Vec<Counted> = short.iter().filter_map(|one| of.counted(one, node, settings.glitch)).collect();
            let nodes = short.iter().map(|one| measured[one.metric].column.median.len()).max().unwrap_or(0);
            let [_, chance] = Scene::chances(settings, budget::STOPS, nodes, fleet.run_nodes.max(fleet.nodes));
            if !more_than_stalls(&counted, 10_f64.powf(chance)) {
                continue;
            }
            for of in counted.iter().filter(|of| of.slow) {
                let cell = &mut cells[of.metric][node as usize];
                if cell.state < State::Warn {
                    *cell = Cell { state: State::Warn, why: Why::SlowSteps, view: Look::SlowestSteps, ..*cell };
                }
            }
        }
    }
}

/// A metric of few steps.
struct Short {
    metric: usize,
    /// Speed of the slowest step of each of the two slowest nodes, and which they are.
    slowest: [(f64, u32); 2],
    /// Steps of all nodes.
    looks: u32,
}

/// A metric in which no other node has a slow step.
struct Counted {
    metric: usize,
    slow: bool,
    /// Chance that a healthy node has enough slow steps in it.
    chance: f64,
}

struct Of<'a> {
    fleet: &'a Fleet<'a>,
    measured: &'a [Measured],
}

impl Of<'_> {
    /// A metric of few steps; `None` of others.
    fn short(&self, metric: usize) -> Option<Short> {
        let of = &self.measured[metric];
        let few = of.column.steps.iter().all(|steps| STEPS.contains(steps));
        if self.fleet.metrics[metric].aggregated || of.peers.is_empty() || !few {
            return None;
        }
        let mut slowest = [(f64::INFINITY, u32::MAX); 2];
        for (index, node) in of.column.median.nodes.iter().enumerate() {
            let sample = self.fleet.metrics[metric].samples[*node as usize];
            let Some(sample) = sample.filter(|_| !of.peers[index].scale.is_nan()) else { continue };
            let speed = slowest_step(sample, self.fleet.metrics[metric].direction);
            if speed < slowest[0].0 {
                slowest = [(speed, *node), slowest[0]];
            } else if speed < slowest[1].0 {
                slowest[1] = (speed, *node);
            }
        }
        Some(Short { metric, slowest, looks: of.column.steps.iter().sum() })
    }

    /// How many steps of `of` are slow for the peers of the node at `index`; 0 where it has none.
    fn slow(&self, metric: usize, index: usize, of: u32) -> usize {
        let peers = &self.measured[metric].peers[index];
        let metric = &self.fleet.metrics[metric];
        let sample = metric.samples[of as usize].filter(|_| !peers.scale.is_nan());
        sample.map_or(0, |sample| slower_steps(sample, metric.direction, peers.centre * (1.0 - LOSS)))
    }

    fn slow_nodes(&self, metric: usize) -> impl Iterator<Item = u32> + '_ {
        let nodes = self.measured[metric].column.median.nodes.iter().copied().enumerate();
        nodes.filter(move |(index, node)| self.slow(metric, *index, *node) >= SLOW).map(|(_, node)| node)
    }

    /// What a metric says of `node`; `None` where it says nothing.
    fn counted(&self, short: &Short, node: u32, glitch: f64) -> Option<Counted> {
        let metric = short.metric;
        let column = &self.measured[metric].column;
        let index = column.median.nodes.binary_search(&node).ok()?;
        let peers = &self.measured[metric].peers[index];
        if peers.scale.is_nan() {
            return None;
        }
        let [first, second] = short.slowest;
        let other = if first.1 == node { second.0 } else { first.0 };
        if other <= peers.centre * (1.0 - LOSS) {
            return None;
        }
        let own = column.steps[index];
        let looks = short.looks - own;
        let rate = (NONE_SEEN / f64::from(looks.max(1))).max(glitch).min(1.0);
        Some(Counted {
            metric,
            slow: self.slow(metric, index, node) >= SLOW,
            chance: at_least(own as usize, SLOW, rate),
        })
    }
}

/// Speed of the slowest step of a sample.
fn slowest_step(sample: &Sample, direction: Direction) -> f64 {
    let values = sample.values();
    let slowest = match direction {
        Direction::HigherIsBetter => values.first(),
        Direction::LowerIsBetter => values.last(),
    };
    slowest.map_or(f64::INFINITY, |value| speed(*value, direction))
}

/// Whether a healthy node has so many slow metrics with a chance of at most `least`.
fn more_than_stalls(counted: &[Counted], least: f64) -> bool {
    let slow = counted.iter().filter(|of| of.slow).count();
    let rate = counted.iter().map(|of| of.chance).fold(0.0, f64::max);
    slow > 1 && rate < 1.0 && at_least(counted.len(), slow, rate) <= least
}

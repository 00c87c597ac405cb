//! A node whose typical step is as fast as its peers' while some of its steps are far slower: a tail that neither median
//! nor trimmed mean sees, such as one step of a hundred ten times slower. It may warn, never fail.
//!
//! What is compared is the mean speed of the slowest hundredth of a node's steps. That is the one-sided distance of
//! [`crate::one_sided`] to a criterion of one value, as a share of it: with the tail floor `tau`, a distribution lies
//! `1 - (mean of its slowest share tau) / value` below it. It needs no criterion sample, so the other nodes' tails can be
//! the null as everywhere else. Slow steps come in whole numbers: there must also be more of them than stalls explain,
//! at the rate the others show.

use muster_wire::Direction;

use super::budget;
use super::cell::Scene;
use super::decision::{Cell, View as Look, Why};
use super::few::{at_least, upper_rate};
use super::peers::Peers;
use super::quantile::after_leaving_out;
use super::views::{Column, View, speed, value};
use super::{Metric, Settings};
use crate::{Sample, State};

/// Share of steps looked at: the tail floor of the similarity.
const SHARE: f64 = 0.01;
/// Steps from which on there is a slowest hundredth.
pub(super) const FROM: usize = 100;
/// The slowest hundredth of healthy nodes differs: less than a quarter slower is no finding.
const EFFECT: f64 = 0.25;

/// Speeds of the slowest steps of the nodes with enough of them.
pub(super) fn view(metric: &Metric<'_>) -> Option<View> {
    let (nodes, speeds): (Vec<u32>, Vec<f64>) = metric
        .samples
        .iter()
        .zip(0_u32..)
        .filter_map(|(sample, node)| Some((node, (*sample)?)))
        .filter(|(_, sample)| sample.len() >= FROM)
        .map(|(node, sample)| (node, slowest(sample, metric.direction)))
        .unzip();
    (nodes.len() > 3).then(|| View::of(nodes, speeds))
}

/// Mean speed of the slowest [`SHARE`] of the steps; the last one counts in part.
fn slowest(sample: &Sample, direction: Direction) -> f64 {
    let (values, wanted) = (sample.values(), SHARE * sample.len() as f64);
    let at = |step: usize| match direction {
        Direction::HigherIsBetter => values[step],
        Direction::LowerIsBetter => speed(values[values.len() - 1 - step], direction),
    };
    let whole = wanted.floor() as usize;
    let sum: f64 = (0..whole).map(at).sum();
    (wanted.fract()).mul_add(at(whole), sum) / wanted
}

/// One metric whose nodes have long series.
pub(super) struct Tails<'a> {
    pub(super) metric: &'a Metric<'a>,
    pub(super) column: &'a Column,
    pub(super) view: &'a View,
    pub(super) settings: &'a Settings,
    pub(super) run_nodes: usize,
}

impl Tails<'_> {
    /// Warns about nodes with far slower steps than `peers` have.
    pub(super) fn warn(&self, peers: &[Peers], cells: &mut [Cell]) {
        let [_, chance] = Scene::chances(self.settings, budget::SLOW_STEPS, self.view.len(), self.run_nodes);
        for (index, (peers, own)) in peers.iter().zip(&self.view.speeds).enumerate() {
            let table = after_leaving_out(peers.kept as usize);
            let log = chance + f64::from(peers.share);
            let limit = (table.at(log) * peers.scale).max(EFFECT);
            let loss = peers.loss(*own);
            let cell = &mut cells[self.view.nodes[index] as usize];
            // A NaN compares as false: without a reference there is no finding.
            if !(loss >= limit && cell.state < State::Warn && self.more_than_stalls(index, peers, limit, log)) {
                continue;
            }
            *cell = Cell {
                state: State::Warn,
                why: Why::SlowSteps,
                view: Look::SlowestSteps,
                peers: peers.kept,
                loss,
                centre: value(peers.centre, self.metric.direction),
                scale: peers.scale,
                limit: f64::INFINITY,
                warn_limit: limit,
                frozen: false,
                ..*cell
            };
        }
    }

    /// Whether the node has more steps beyond `limit` than stalls explain, with a chance of `10^log`.
    fn more_than_stalls(&self, index: usize, peers: &Peers, limit: f64, log: f64) -> bool {
        let bar = peers.centre * (1.0 - limit);
        let (mut seen, mut steps) = (0, 0);
        for (other, node) in self.view.nodes.iter().enumerate().filter(|(other, _)| *other != index) {
            let sample = self.metric.samples[*node as usize];
            seen += sample.map_or(0, |sample| self.beyond(sample, bar));
            steps += self.steps(other);
        }
        let own = self.metric.samples[self.view.nodes[index] as usize].map_or(0, |sample| self.beyond(sample, bar));
        let rate = upper_rate(seen, steps, self.settings.glitch);
        let steps = self.steps(index);
        own > 0 && rate < 1.0 && at_least(steps, own.min(steps), rate) <= 10_f64.powf(log)
    }

    fn steps(&self, index: usize) -> usize {
        self.column.steps[self.column.index(self.view, index)] as usize
    }

    fn beyond(&self, sample: &Sample, bar: f64) -> usize {
        slower_steps(sample, self.metric.direction, bar)
    }
}

/// How many steps are slower than `bar`, a speed.
pub(super) fn slower_steps(sample: &Sample, direction: Direction, bar: f64) -> usize {
    let values = sample.values();
    match direction {
        Direction::HigherIsBetter => values.partition_point(|value| *value <= bar),
        Direction::LowerIsBetter => values.len() - values.partition_point(|value| speed(*value, direction) > bar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::one_sided;

    #[test]
    fn the_slowest_hundredth_is_the_one_sided_distance_to_one_value() {
        let values: Vec<f64> = (0..250).map(|step| 50.0 + f64::from(step % 47)).collect();
        let (sample, value) = (Sample::new(&values).unwrap(), Sample::new(&[120.0; 250]).unwrap());
        let distance = 1.0 - one_sided(&sample, &value, Direction::HigherIsBetter, SHARE);
        let loss = 1.0 - slowest(&sample, Direction::HigherIsBetter) / 120.0;
        assert!((distance - loss).abs() < 1e-12, "{distance} {loss}");
    }
}

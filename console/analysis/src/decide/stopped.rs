//! A node that stands still now and then in the metrics of a component, in each too seldom to be told from stalls.
//!
//! Two steps of 32 at a tenth of the speed may be the operating system's; two of 32 in each of twelve metrics are not. Steps
//! below a quarter of the peers' speed are counted over the metrics of a component and compared with what the other nodes
//! have there. It may warn, never fail. Series long enough for a slowest hundredth are looked at one by one.

use super::budget;
use super::cell::Scene;
use super::decision::{Cell, View as Look, Why};
use super::few::{at_least, upper_rate};
use super::measured::Measured;
use super::parts::Parts;
use super::tails::{self, slower_steps};
use super::{Fleet, Settings};
use crate::State;

/// Share of speed that a stopped step loses.
const LOSS: f64 = 0.75;
/// Steps of a series that is counted: shorter ones have no mean that leaves out stalls.
const FROM: u32 = 8;
/// Metrics in which more of the others' steps stop say nothing: they are that noisy.
const CALM: f64 = 0.02;

/// Stopped steps of the nodes that have a metric, by index in its column.
struct Stops {
    metric: usize,
    own: Vec<usize>,
    all: usize,
    steps: usize,
}

/// Warns about nodes that stopped more often than the others.
pub(super) fn warn(
    fleet: &Fleet<'_>,
    settings: &Settings,
    parts: &Parts,
    measured: &[Measured],
    cells: &mut [Vec<Cell>],
) {
    for (_, metrics) in &parts.components {
        let stops: Vec<Stops> =
            metrics.iter().filter_map(|&metric| Stops::of(fleet, metric, &measured[metric])).collect();
        let mut suspects: Vec<u32> = stops.iter().flat_map(|of| of.stopped(&measured[of.metric])).collect();
        suspects.sort_unstable();
        suspects.dedup();
        for node in suspects {
            let counted: Vec<(&Stops, usize)> =
                stops.iter().filter_map(|of| Some((of, of.calm(&measured[of.metric], node, settings)?))).collect();
            if !more_than_stalls(&counted, fleet, settings, measured) {
                continue;
            }
            for (of, _) in counted.iter().filter(|(of, index)| of.own[*index] > 0) {
                let cell = &mut cells[of.metric][node as usize];
                if cell.state < State::Warn {
                    *cell = Cell { state: State::Warn, why: Why::SlowSteps, view: Look::SlowestSteps, ..*cell };
                }
            }
        }
    }
}

impl Stops {
    /// `None` where series are too short or too long.
    fn of(fleet: &Fleet<'_>, metric: usize, measured: &Measured) -> Option<Self> {
        let (of, column) = (&fleet.metrics[metric], &measured.column);
        let counts = |steps: &u32| *steps >= FROM && (*steps as usize) < tails::FROM;
        if measured.peers.is_empty() || !column.steps.iter().all(counts) {
            return None;
        }
        let stopped = |(node, peers): (&u32, &super::peers::Peers)| {
            let bar = peers.centre * (1.0 - LOSS);
            let sample = of.samples[*node as usize].filter(|_| !peers.scale.is_nan());
            sample.map_or(0, |sample| slower_steps(sample, of.direction, bar))
        };
        let own: Vec<usize> = column.median.nodes.iter().zip(&measured.peers).map(stopped).collect();
        let steps = column.steps.iter().map(|steps| *steps as usize).sum();
        Some(Self { metric, all: own.iter().sum(), own, steps })
    }

    /// Nodes that have any.
    fn stopped<'a>(&'a self, measured: &'a Measured) -> impl Iterator<Item = u32> + 'a {
        self.own.iter().zip(&measured.column.median.nodes).filter(|(own, _)| **own > 0).map(|(_, node)| *node)
    }

    /// Index of `node`, where it has the metric and the others stop seldom.
    fn calm(&self, measured: &Measured, node: u32, settings: &Settings) -> Option<usize> {
        let index = measured.column.median.nodes.binary_search(&node).ok()?;
        let others = self.steps - measured.column.steps[index] as usize;
        (upper_rate(self.all - self.own[index], others, settings.glitch) <= CALM).then_some(index)
    }
}

/// Whether a node has more stopped steps in `counted` than the rate of the others explains.
fn more_than_stalls(
    counted: &[(&Stops, usize)],
    fleet: &Fleet<'_>,
    settings: &Settings,
    measured: &[Measured],
) -> bool {
    let (mut own, mut steps, mut seen, mut looks, mut nodes) = (0, 0, 0, 0, 0);
    for (of, index) in counted {
        let column = &measured[of.metric].column;
        own += of.own[*index];
        steps += column.steps[*index] as usize;
        seen += of.all - of.own[*index];
        looks += of.steps - column.steps[*index] as usize;
        nodes = nodes.max(column.median.len());
    }
    let rate = upper_rate(seen, looks, settings.glitch);
    let [_, chance] = Scene::chances(settings, budget::STOPS, nodes, fleet.run_nodes.max(fleet.nodes));
    own > 0 && (own == steps || at_least(steps, own, rate) <= 10_f64.powf(chance))
}

//! From cells and averages to components, kinds and nodes: the worst counts, and what cannot be seen is unknown.

use super::decision::{Cell, ComponentDecision, KindDecision, Limiting, NodeDecision, Why};
use super::families::{Averages, Together};
use super::measured::Measured;
use super::parts::Parts;
use super::{Fleet, Settings};
use crate::State;

/// Puts every node together.
pub(super) fn nodes(
    fleet: &Fleet<'_>,
    settings: &Settings,
    (measured, cells): (&[Measured], &[Vec<Cell>]),
    parts: &Parts,
    averages: &Averages,
) -> Vec<NodeDecision> {
    let sums = parts.components.iter().map(|(_, metrics)| Sum::of(metrics, cells, fleet.nodes)).collect();
    let of = Of { settings, measured, cells, parts, averages, sums };
    (0..fleet.nodes).map(|node| of.node(node)).collect()
}

/// What the metrics of a component say of one node.
#[derive(Clone, Copy)]
struct Sum {
    state: State,
    resolution: f64,
    unknown: bool,
}

impl Sum {
    /// Of every node. Metric by metric, as cells lie in memory.
    fn of(metrics: &[usize], cells: &[Vec<Cell>], nodes: usize) -> Vec<Self> {
        let mut sums = vec![Self { state: State::NotRun, resolution: f64::INFINITY, unknown: false }; nodes];
        for &metric in metrics {
            for (sum, cell) in sums.iter_mut().zip(&cells[metric]) {
                // Not run is worse than a pass by the order of states, and says nothing beside what was measured.
                sum.state = worse(sum.state, cell.state);
                sum.resolution = sum.resolution.min(cell.resolution);
                // A warning of which it cannot be said who is right is no answer.
                sum.unknown |= cell.state == State::Unknown || cell.why == Why::Contested;
            }
        }
        sums
    }
}

struct Of<'a> {
    settings: &'a Settings,
    measured: &'a [Measured],
    cells: &'a [Vec<Cell>],
    parts: &'a Parts,
    averages: &'a Averages,
    sums: Vec<Vec<Sum>>,
}

impl Of<'_> {
    fn node(&self, node: usize) -> NodeDecision {
        let components: Vec<_> = (0..self.parts.components.len()).map(|at| self.component(at, node)).collect();
        let kinds: Vec<_> = (0..self.parts.kinds.len()).map(|at| self.kind(at, node, &components)).collect();
        let states = components.iter().map(|c| c.state).chain(kinds.iter().map(|k| k.state));
        NodeDecision {
            state: states.max().unwrap_or(State::NotRun),
            undecided: components.iter().any(|c| c.undecided) || kinds.iter().any(|k| k.undecided),
            components,
            kinds,
        }
    }

    fn component(&self, at: usize, node: usize) -> ComponentDecision {
        let (component, metrics) = &self.parts.components[at];
        let together = &self.averages.components[at][node];
        let Sum { state, resolution, unknown } = self.sums[at][node];
        let (resolution, unknown) = (resolution.min(together.resolution), unknown || together.state == State::Unknown);
        if state == State::NotRun {
            let component = component.clone();
            return ComponentDecision {
                component,
                state,
                undecided: false,
                resolution: None,
                limiting: None,
                average: None,
            };
        }
        let coarse = resolution > self.settings.coarsest;
        let undecided = unknown || coarse;
        let state = worse(worse(state, together.state), if undecided { State::Unknown } else { State::Pass });
        ComponentDecision {
            component: component.clone(),
            state,
            undecided,
            resolution: finite(resolution),
            limiting: if undecided { self.limiting(metrics, node, coarse) } else { None },
            average: together.average,
        }
    }

    /// The noisiest of the undecided metrics; where they are all too noisy or none of them is undecided, the best one.
    fn limiting(&self, metrics: &[usize], node: usize, coarse: bool) -> Option<Limiting> {
        let measured = || metrics.iter().copied().filter(|&metric| self.cells[metric][node].state != State::NotRun);
        let scale = |metric: usize| self.cells[metric][node].scale;
        let resolution = |metric: usize| self.cells[metric][node].resolution;
        let unknown = measured().filter(|&metric| !coarse && self.cells[metric][node].state == State::Unknown);
        let best =
            || measured().min_by(|&a, &b| resolution(a).total_cmp(&resolution(b)).then(scale(a).total_cmp(&scale(b))));
        let metric = unknown.max_by(|&a, &b| scale(a).total_cmp(&scale(b))).or_else(best)?;
        let nodes = self.measured[metric].column.median.len();
        Some(Limiting { metric, scale: scale(metric), resolution: resolution(metric), nodes })
    }

    fn kind(&self, at: usize, node: usize, components: &[ComponentDecision]) -> KindDecision {
        let (kind, instances) = &self.parts.kinds[at];
        let Together { state: together, average, resolution } = self.averages.kinds[at][node];
        let measured = || instances.iter().map(|at| &components[*at]).filter(|c| c.state != State::NotRun);
        if measured().next().is_none() {
            return KindDecision {
                kind: *kind,
                state: State::NotRun,
                undecided: false,
                resolution: None,
                average: None,
            };
        }
        let finest = measured().filter_map(|c| c.resolution).fold(resolution, f64::min);
        KindDecision {
            kind: *kind,
            state: measured().map(|c| c.state).fold(together, worse),
            undecided: together == State::Unknown || measured().any(|c| c.undecided),
            resolution: finite(finest),
            average,
        }
    }
}

/// The worse of what was measured: pass, unknown, warn, fail.
fn worse(a: State, b: State) -> State {
    match (a, b) {
        (State::NotRun, other) | (other, State::NotRun) => other,
        (a, b) => a.max(b),
    }
}

fn finite(resolution: f64) -> Option<f64> {
    resolution.is_finite().then_some(resolution)
}

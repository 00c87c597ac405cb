//! Owns what a fleet borrows, and decides it.

#![allow(dead_code, reason = "each user takes what it needs")]

use muster_analysis::decide::{Decision, Fleet, Frozen, Metric, Refusal, Settings, decide, freeze};
use muster_analysis::{Sample, State};
use muster_wire::{Component, Direction, MetricId};

use crate::families::Speeds;

/// One metric of a run.
#[derive(Clone)]
pub struct Row {
    pub id: MetricId,
    pub direction: Direction,
    pub component: Component,
    pub aggregated: bool,
    pub samples: Vec<Option<Sample>>,
    pub frozen: Option<Frozen>,
}

impl Row {
    fn metric(&self) -> Metric<'_> {
        Metric {
            id: &self.id,
            direction: self.direction,
            component: self.component.clone(),
            aggregated: self.aggregated,
            samples: self.samples.iter().map(Option::as_ref).collect(),
            frozen: self.frozen.as_ref(),
        }
    }
}

/// The same steps in the same order, each changed.
pub fn changed(sample: &Sample, change: impl FnMut(f64) -> f64) -> Sample {
    let steps = sample.in_order().unwrap_or(sample.values());
    Sample::in_steps(&steps.iter().copied().map(change).collect::<Vec<_>>()).expect("values are positive")
}

/// A run of a fleet.
#[derive(Clone)]
pub struct Run {
    pub rows: Vec<Row>,
}

impl Run {
    /// Of speeds in some unit, all of one component, better upwards.
    pub fn of(speeds: &Speeds) -> Self {
        let rows = speeds.iter().enumerate().map(|(at, nodes)| Row {
            id: MetricId::new("bench", format!("m{at:04}"), "own"),
            direction: Direction::HigherIsBetter,
            component: Component::Cpu,
            aggregated: false,
            samples: nodes
                .iter()
                .map(|steps| {
                    Some(
                        Sample::in_steps(&steps.iter().map(|v| v * 400.0).collect::<Vec<_>>())
                            .expect("values are positive"),
                    )
                })
                .collect(),
            frozen: None,
        });
        Self { rows: rows.collect() }
    }

    /// The same as times: better downwards.
    pub fn times(mut self) -> Self {
        for row in &mut self.rows {
            row.direction = Direction::LowerIsBetter;
            for sample in row.samples.iter_mut().flatten() {
                *sample = changed(sample, |v| 1e6 / v);
            }
        }
        self
    }

    pub fn with(mut self, change: impl Fn(usize, &mut Row)) -> Self {
        self.rows.iter_mut().enumerate().for_each(|(at, row)| change(at, row));
        self
    }

    /// All metrics of both.
    pub fn and(mut self, other: Self) -> Self {
        self.rows.extend(other.rows);
        self
    }

    pub fn nodes(&self) -> usize {
        self.rows[0].samples.len()
    }

    pub fn metrics(&self) -> Vec<Metric<'_>> {
        self.rows.iter().map(Row::metric).collect()
    }

    pub fn decide(&self) -> Decision {
        let nodes = self.nodes();
        decide(&Fleet { nodes, metrics: self.metrics(), run_nodes: nodes }, &Settings::default())
    }

    pub fn states(&self) -> Vec<State> {
        self.decide().nodes.iter().map(|node| node.state).collect()
    }

    /// Multiplies a node's speed.
    pub fn scale(&mut self, metric: usize, node: usize, factor: f64) {
        let row = &mut self.rows[metric];
        let factor = if row.direction == Direction::HigherIsBetter { factor } else { 1.0 / factor };
        if let Some(sample) = &mut row.samples[node] {
            *sample = changed(sample, |v| v * factor);
        }
    }

    /// The same run judged by what `runs` showed.
    pub fn frozen(&self, runs: &[Self]) -> Self {
        let criteria = learn(runs);
        self.clone().with(|at, row| row.frozen = criteria[at].clone().ok())
    }
}

pub fn learn(runs: &[Run]) -> Vec<Result<Frozen, Refusal>> {
    let metrics: Vec<Vec<Metric<'_>>> = runs.iter().map(Run::metrics).collect();
    freeze(&metrics, &Settings::default())
}

/// How many nodes have `state`.
pub fn count(states: &[State], state: State) -> usize {
    states.iter().filter(|s| **s == state).count()
}

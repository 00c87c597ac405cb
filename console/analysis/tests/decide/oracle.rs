//! Against an independent program: the definition written in Python with numpy and scipy. Inputs, states, losses and
//! limits of small fleets of every family, healthy and with faults, were written down by it once.

use muster_analysis::{Sample, State};
use muster_wire::{Component, Direction, MetricId};
use serde::Deserialize;

use crate::run::{Row, Run};

#[derive(Deserialize)]
struct Case {
    family: String,
    nodes: usize,
    steps: usize,
    up: bool,
    components: Vec<u32>,
    /// Per metric, node after node.
    values: Vec<Vec<f64>>,
    cells: Vec<String>,
    node: String,
    component_states: Vec<String>,
    loss: Vec<Option<f64>>,
    limit: Vec<Option<f64>>,
    resolution: Vec<Option<f64>>,
    component_resolution: Vec<Option<f64>>,
}

impl Case {
    fn run(&self) -> Run {
        let direction = if self.up { Direction::HigherIsBetter } else { Direction::LowerIsBetter };
        let rows = self.values.iter().zip(&self.components).enumerate().map(|(at, (values, component))| Row {
            id: MetricId::new("bench", format!("m{at:04}"), "own"),
            direction,
            // Of two kinds, so that nothing is averaged over both.
            component: if *component == 0 { Component::Cpu } else { Component::Memory },
            aggregated: false,
            samples: values
                .chunks(self.steps)
                .map(|steps| Some(Sample::new(steps).expect("values are positive")))
                .collect(),
            frozen: None,
        });
        Run { rows: rows.collect() }
    }
}

/// Whether some node sees its others on two exact levels 5 % and more apart. The independent program takes that for the step of a
/// clock, and lets nodes pass that are 6 % slow in everything.
fn on_two_levels_far_apart(case: &Case) -> bool {
    let far = |values: &[f64], left_out: usize| {
        let of_others = values.chunks(case.steps).enumerate().filter(|(node, _)| *node != left_out);
        let mut levels: Vec<f64> = of_others.flat_map(|(_, steps)| steps).copied().collect();
        levels.sort_unstable_by(f64::total_cmp);
        levels.dedup_by(|a, b| (*a - *b).abs() < 1e-9 * *b);
        levels.len() == 2 && levels[1] - levels[0] >= 0.0499 * levels[1]
    };
    case.values.iter().any(|values| (0..case.nodes).any(|node| far(values, node)))
}

fn letter(state: State) -> char {
    match state {
        State::Pass => 'p',
        State::Unknown => 'u',
        State::Warn => 'w',
        State::Fail => 'f',
        State::NotRun | State::NotApplicable => '-',
    }
}

fn close(found: f64, expected: Option<f64>, what: &str) {
    let Some(expected) = expected else { return assert!(!found.is_finite(), "{what}: {found}, expected none") };
    assert!((found - expected).abs() < 1e-6 * expected.abs().max(0.01), "{what}: {found}, expected {expected}");
}

#[test]
fn states_losses_and_limits_are_those_of_the_independent_program() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("oracle.json")).unwrap();
    assert!(cases.len() > 40);
    let told = |(_, case): &(usize, &Case)| !on_two_levels_far_apart(case);
    assert!(cases.iter().enumerate().filter(told).count() >= cases.len() - 3);
    for (number, case) in cases.iter().enumerate().filter(told) {
        let name = format!("case {number}, {} n={} S={}", case.family, case.nodes, case.steps);
        let decision = case.run().decide();
        for (metric, expected) in case.cells.iter().enumerate() {
            let cells = &decision.cells[metric];
            for (node, cell) in cells.iter().enumerate() {
                let (at, what) = (metric * case.nodes + node, format!("{name}, metric {metric}, node {node}"));
                if cell.view == muster_analysis::decide::View::MedianStep {
                    close(cell.loss, case.loss[at], &format!("{what}: loss"));
                    close(cell.limit, case.limit[at], &format!("{what}: limit"));
                }
                close(cell.resolution, case.resolution[at], &format!("{what}: resolution"));
            }
            let states: String = cells.iter().map(|cell| letter(cell.state)).collect();
            assert_eq!(states, *expected, "{name}, metric {metric}");
        }
        for (at, expected) in case.component_states.iter().enumerate() {
            for (node, of) in decision.nodes.iter().enumerate() {
                let what = format!("{name}, component {at}, node {node}");
                let found = of.components[at].resolution.unwrap_or(f64::INFINITY);
                close(found, case.component_resolution[at * case.nodes + node], &format!("{what}: resolution"));
                assert_eq!(Some(letter(of.components[at].state)), expected.chars().nth(node), "{what}");
            }
        }
        let nodes: String = decision.nodes.iter().map(|node| letter(node.state)).collect();
        assert_eq!(nodes, case.node, "{name}");
    }
}

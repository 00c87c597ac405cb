//! How long the decision takes: 3,000 nodes x 2,441 metrics of one value, in seconds of one core's time.
//!
//! `cargo run --release -p muster-analysis --example decide_speed [NODES METRICS STEPS]`

#![expect(clippy::disallowed_methods, reason = "measures time and reads it from /proc, which the library never does")]

use std::time::Duration;

use muster_analysis::decide::{Fleet, Metric, Settings, decide};
use muster_analysis::{Chance, Sample, State};
use muster_wire::{Component, Direction, MetricId};

/// CPU time of this process: what one idle core would have taken, also on a busy machine.
fn now() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    Duration::from_nanos(nanos)
}

/// A third of the metrics is of the whole node, the rest of eight GPUs.
fn component(metric: usize) -> Component {
    match metric % 12 {
        0 | 1 => Component::Cpu,
        2 => Component::Memory,
        3 => Component::Disk(None),
        at => Component::Gpu(at as u32 - 4),
    }
}

fn main() {
    let mut sizes = std::env::args().skip(1).filter_map(|word| word.parse().ok());
    let [nodes, metrics, steps] = [3000, 2441, 1].map(|usual| sizes.next().unwrap_or(usual));
    let mut chance = Chance::new(7);
    let ids: Vec<MetricId> = (0..metrics).map(|at| MetricId::new("bench", format!("m{at}"), "own")).collect();
    let samples: Vec<Vec<Option<Sample>>> = (0..metrics)
        .map(|at| {
            let noise = [0.003, 0.01, 0.03, 0.15][at % 4];
            (0..nodes)
                .map(|node| {
                    let level = if node % 300 == 7 { 80.0 } else { 100.0 } * (noise * chance.normal()).exp();
                    let values: Vec<f64> = (0..steps).map(|_| level * (0.005 * chance.normal()).exp()).collect();
                    Sample::new(&values).ok()
                })
                .collect()
        })
        .collect();
    let metrics: Vec<Metric<'_>> = samples
        .iter()
        .zip(&ids)
        .enumerate()
        .map(|(at, (samples, id))| Metric {
            id,
            direction: Direction::HigherIsBetter,
            component: component(at),
            aggregated: true,
            samples: samples.iter().map(Option::as_ref).collect(),
            frozen: None,
        })
        .collect();
    let fleet = Fleet { nodes, metrics, run_nodes: nodes };
    let start = now();
    let decision = decide(&fleet, &Settings::default());
    let taken = (now() - start).as_secs_f64();
    let count = |state| decision.nodes.iter().filter(|node| node.state == state).count();
    println!("{nodes} nodes x {} metrics x {steps} values: {taken:.2} s of CPU", fleet.metrics.len());
    println!("fail {}, warn {}, unknown {}", count(State::Fail), count(State::Warn), count(State::Unknown));
}

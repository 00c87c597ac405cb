//! Whether a noisy machine accuses the innocent, and still finds the slow: seeded fleets, thousands of them.

use muster_analysis::decide::{Decision, Fleet, Metric, Settings, decide};
use muster_analysis::{Sample, State};
use muster_wire::{Direction, MetricId, describe};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// The metrics of a smoke run, and which way they are better.
const METRICS: [(&str, &str, Direction); 18] = {
    use Direction::{HigherIsBetter as High, LowerIsBetter as Low};
    [
        ("cpu-gemm", "fp32", High),
        ("cpu-gemm", "fp64", High),
        ("cpu-stream", "copy", High),
        ("cpu-stream", "scale", High),
        ("cpu-stream", "add", High),
        ("cpu-stream", "triad", High),
        ("cpu-latency", "l1", Low),
        ("cpu-latency", "l2", Low),
        ("cpu-latency", "dram", Low),
        ("cpu-dispatch", "syscall", Low),
        ("cpu-dispatch", "futex", Low),
        ("cpu-dispatch", "handoff", Low),
        ("disk", "seq-read", High),
        ("disk", "seq-write", High),
        ("disk", "rand-read", High),
        ("disk", "rand-write", High),
        ("net-loopback", "throughput", High),
        ("net-loopback", "latency", Low),
    ]
};

/// How a machine is noisy.
#[derive(Clone, Copy, Debug)]
struct Noise {
    /// Log standard deviation of a step.
    step: f64,
    /// Share of steps in the heavy (Pareto) tail.
    tail: f64,
    /// Largest offset a node has in all its metrics.
    node: f64,
    /// Largest offset it has in one metric on top.
    cell: f64,
    /// Chance that a metric sees a burst on one or two nodes.
    burst: f64,
}

/// How the slow node is slow.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slow {
    /// Every step takes this much longer.
    Evenly(f64),
    /// Stopped half of the time in periods that hit every `period`-th step.
    Stopped { period: usize },
    /// Only disk metrics, by this factor.
    Disk(f64),
}

fn normal(rng: &mut SmallRng) -> f64 {
    let u: f64 = rng.random_range(f64::MIN_POSITIVE..1.0);
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

fn steps_of(rng: &mut SmallRng, noise: Noise, offset: f64, count: usize) -> Vec<f64> {
    (0..count)
        .map(|_| {
            let mut cost = (offset + noise.step * normal(rng)).exp();
            if rng.random::<f64>() < noise.tail {
                cost *= rng.random_range(0.05f64..1.0).powf(-0.7);
            }
            cost
        })
        .collect()
}

fn burst(rng: &mut SmallRng, costs: &mut [f64]) {
    let length = (rng.random_range(0.05..0.6) * costs.len() as f64) as usize;
    let factor = rng.random_range(1.3..5.0);
    let start = rng.random_range(0..=costs.len() - length);
    costs[start..start + length].iter_mut().for_each(|c| *c *= factor);
}

fn slow_down(costs: &mut [f64], slow: Slow, benchmark: &str) {
    match slow {
        Slow::Evenly(factor) => costs.iter_mut().for_each(|c| *c *= factor),
        Slow::Stopped { period } => costs.iter_mut().skip(period / 2).step_by(period).for_each(|c| *c += period as f64),
        Slow::Disk(factor) if benchmark == "disk" => costs.iter_mut().for_each(|c| *c *= factor),
        Slow::Disk(_) => {}
    }
}

/// One metric of every node.
type OfMetric = (MetricId, Direction, Vec<Sample>);

/// One run of a fleet; node 0 is the slow one, if any is.
fn run(rng: &mut SmallRng, nodes: usize, noise: Noise, slow: Option<Slow>) -> Vec<OfMetric> {
    let offsets: Vec<f64> = (0..nodes).map(|_| noise.node * rng.random_range(-1.0..1.0)).collect();
    let one = |rng: &mut SmallRng, (benchmark, name, dir): (&str, &str, Direction)| {
        let mut fleet: Vec<Vec<f64>> = offsets
            .iter()
            .map(|offset| {
                let cell = noise.cell * rng.random_range(-1.0..1.0);
                steps_of(rng, noise, offset + cell, 32)
            })
            .collect();
        if rng.random::<f64>() < noise.burst {
            for _ in 0..rng.random_range(1..=2) {
                let hit = rng.random_range(0..nodes);
                burst(rng, &mut fleet[hit]);
            }
        }
        if let Some(slow) = slow {
            slow_down(&mut fleet[0], slow, benchmark);
        }
        let value = |c: &f64| if dir == Direction::HigherIsBetter { 1e9 / c } else { 50.0 * c };
        let sample = |costs: &Vec<f64>| {
            Sample::in_steps(&costs.iter().map(value).collect::<Vec<_>>()).expect("costs are positive")
        };
        (MetricId::new(benchmark, name, "own"), dir, fleet.iter().map(sample).collect())
    };
    METRICS.iter().map(|&m| one(rng, m)).collect()
}

fn decided(metrics: &[OfMetric]) -> Decision {
    let nodes = metrics[0].2.len();
    fn metric((id, direction, samples): &OfMetric) -> Metric<'_> {
        Metric {
            id,
            direction: *direction,
            component: describe(id).component,
            aggregated: false,
            samples: samples.iter().map(Some).collect(),
            frozen: None,
        }
    }
    let metrics = metrics.iter().map(metric).collect();
    decide(&Fleet { nodes, metrics, run_nodes: nodes }, &Settings::default())
}

fn in_state(decision: &Decision, state: State) -> Vec<usize> {
    (0..decision.nodes.len()).filter(|at| decision.nodes[*at].state == state).collect()
}

/// Machines from nearly quiet to hopeless.
fn noise(rng: &mut SmallRng) -> Noise {
    Noise {
        step: rng.random_range(0.002f64..0.25),
        tail: rng.random_range(0.0..0.1),
        node: rng.random_range(0.0..0.15),
        cell: rng.random_range(0.0..0.05),
        burst: rng.random_range(0.0..0.8),
    }
}

/// Fewer where the compiler does not optimise; `cargo test --release` runs them all.
const FLEETS: u64 = if cfg!(debug_assertions) { 300 } else { 5000 };

/// Runs `FLEETS` fleets; `(with the slow node named, with it passed, with another accused)`.
fn count(seed: u64, nodes: usize, slow: Option<Slow>, noise: impl Fn(&mut SmallRng) -> Noise) -> (u64, u64, u64) {
    let (mut found, mut passed, mut falsely) = (0, 0, 0);
    for i in 0..FLEETS {
        let mut rng = SmallRng::seed_from_u64(seed * 1_000_003 + i);
        let noise = noise(&mut rng);
        let decision = decided(&run(&mut rng, nodes, noise, slow));
        let failed = in_state(&decision, State::Fail);
        let hit = slow.is_some() && failed.contains(&0);
        found += u64::from(hit);
        passed += u64::from(slow.is_some() && decision.nodes[0].state == State::Pass);
        if failed.len() > usize::from(hit) {
            falsely += 1;
            println!("seed {seed} fleet {i} {noise:?}: {failed:?}");
        }
    }
    println!("{nodes} nodes, {slow:?}: named {found}, passed {passed}, falsely {falsely} of {FLEETS}");
    (found, passed, falsely)
}

/// Less than one fleet in a thousand.
fn assert_no_innocent(falsely: u64) {
    assert!(falsely * 1000 < FLEETS, "{falsely} of {FLEETS} fleets had an innocent node accused");
}

#[test]
fn nobody_is_accused_on_a_noisy_machine() {
    assert_no_innocent(count(1, 8, None, noise).2);
}

/// Rented virtual machines: steps 10 %, nodes up to `apart` from the usual speed. Nodes of all fleets, and how many are in each state.
fn rented(nodes: usize, apart: f64, burst: f64, fleets: u64) -> (usize, [usize; 4]) {
    let mut counts = [0; 4];
    for i in 0..fleets {
        let mut rng = SmallRng::seed_from_u64(700_001 + i);
        let noise = Noise { step: 0.1, tail: 0.02, node: apart, cell: apart / 2.0, burst };
        let decision = decided(&run(&mut rng, nodes, noise, None));
        for (count, state) in counts.iter_mut().zip([State::Pass, State::Unknown, State::Warn, State::Fail]) {
            *count += in_state(&decision, state).len();
        }
    }
    println!("{nodes} nodes, bursts {burst}: pass, unknown, warn, fail {counts:?}");
    (nodes * fleets as usize, counts)
}

#[test]
fn no_healthy_node_of_rented_virtual_machines_fails_and_few_are_warned_of() {
    for nodes in [12, 64] {
        let (all, [.., warned, failed]) = rented(nodes, 0.1, 0.0, FLEETS / 10);
        assert!(warned * 100 <= all && failed == 0, "{warned} of {all} warned of, {failed} failed");
        // Slow for a while is worth a warning.
        let (_, [.., failed]) = rented(nodes, 0.1, 0.1, FLEETS / 10);
        assert_eq!(failed, 0);
    }
}

#[test]
fn most_healthy_nodes_of_many_rented_virtual_machines_pass() {
    let (all, [passed, ..]) = rented(64, 0.05, 0.0, FLEETS / 10);
    assert!(passed * 2 > all, "{passed} of {all} pass");
    // Where nodes differ by twice as much, or are few, a loss of a half may go unseen: then they are unknown.
    for (nodes, apart) in [(64, 0.1), (12, 0.1)] {
        let (all, [passed, unknown, ..]) = rented(nodes, apart, 0.0, FLEETS / 10);
        assert_eq!(passed + unknown, all);
    }
}

#[test]
fn nobody_is_accused_on_a_fleet_of_modest_spread() {
    let modest = |rng: &mut SmallRng| Noise {
        step: rng.random_range(0.002..0.02),
        tail: 0.0,
        node: rng.random_range(0.0..0.04),
        cell: rng.random_range(0.0..0.02),
        burst: 0.0,
    };
    assert_no_innocent(count(2, 8, None, modest).2);
}

#[test]
fn a_half_speed_node_never_passes_whatever_the_noise_and_nobody_else_is_accused() {
    let (_, passed, falsely) = count(3, 8, Some(Slow::Evenly(2.0)), noise);
    assert!(passed * 1000 < FLEETS, "{passed} of {FLEETS}");
    assert_no_innocent(falsely);
}

#[test]
fn a_node_stopped_half_the_time_never_passes_whatever_the_length_of_its_stops() {
    for period in [2, 5, 16] {
        let (_, passed, falsely) = count(4, 8, Some(Slow::Stopped { period }), noise);
        assert!(passed * 100 < FLEETS, "stopped every {period} steps: {passed} of {FLEETS}");
        assert_no_innocent(falsely);
    }
}

#[test]
fn a_slow_disk_never_passes_among_sixteen() {
    let (found, passed, falsely) = count(6, 16, Some(Slow::Disk(3.0)), noise);
    assert!(found * 2 > FLEETS && passed * 100 < FLEETS, "{found}, {passed} of {FLEETS}");
    assert_no_innocent(falsely);
}

/// One more metric of 12 nodes; node 5 takes `odd` times as long.
fn one_more(rng: &mut SmallRng, (benchmark, name): (&str, &str), noise: Noise, odd: f64) -> OfMetric {
    let node = |i: usize| {
        let offset = noise.node * rng.random_range(-1.0..1.0);
        let cost = if i == 5 { odd } else { 1.0 };
        Sample::in_steps(&steps_of(rng, noise, offset, 32).iter().map(|c| 100.0 / c / cost).collect::<Vec<_>>())
            .expect("costs are positive")
    };
    (MetricId::new(benchmark, name, "own"), Direction::HigherIsBetter, (0..12).map(node).collect())
}

#[test]
fn one_metric_eight_percent_slower_is_enough_beside_noisy_tails_and_many_cores() {
    let quiet = Noise { step: 0.002, tail: 0.0, node: 0.002, cell: 0.001, burst: 0.0 };
    let restless = Noise { step: 0.2, tail: 0.02, node: 0.1, ..quiet };
    let mut rng = SmallRng::seed_from_u64(12);
    let mut metrics = run(&mut rng, 12, quiet, None);
    for core in 0..32 {
        metrics.push(one_more(&mut rng, ("cpu-core", &format!("speed:core{core}")), quiet, 1.0));
    }
    for load in ["seq-read", "seq-write", "rand-read", "rand-write"] {
        for tail in ["p95", "p99", "p99.9"] {
            metrics.push(one_more(&mut rng, ("disk", &format!("{load}-{tail}")), restless, 1.0));
        }
    }
    metrics.push(one_more(&mut rng, ("mem-bandwidth", "read"), quiet, 1.0 / 0.92));
    let decision = decided(&metrics);
    assert_eq!(in_state(&decision, State::Fail), [5]);
    assert_eq!(in_state(&decision, State::Pass).len(), 11);
}

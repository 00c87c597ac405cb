//! Whether a noisy machine accuses the innocent, and still finds the slow: seeded fleets, thousands of them.

use muster_analysis::{Learned, NodeState, Observation, Params, State, convict, learn};
use muster_wire::{Direction, MetricId, Unit};
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
    /// Only CPU metrics, by this factor.
    Cpu(f64),
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
        Slow::Cpu(factor) if benchmark.starts_with("cpu") => costs.iter_mut().for_each(|c| *c *= factor),
        Slow::Disk(factor) if benchmark == "disk" => costs.iter_mut().for_each(|c| *c *= factor),
        Slow::Cpu(_) | Slow::Disk(_) => {}
    }
}

/// One run of a fleet; node 0 is the slow one, if any is.
fn run(rng: &mut SmallRng, nodes: usize, noise: Noise, slow: Option<Slow>) -> Vec<Learned> {
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
        let observations: Vec<(String, Observation)> = fleet
            .iter()
            .enumerate()
            .map(|(i, costs)| {
                let value = |c: &f64| if dir == Direction::HigherIsBetter { 1e9 / c } else { 50.0 * c };
                (format!("n{i}"), Observation::from_values(&costs.iter().map(value).collect::<Vec<_>>()))
            })
            .collect();
        learn(&MetricId::new(benchmark, name, "own"), Unit::Count, dir, &observations, &Params::default())
    };
    METRICS.iter().map(|&m| one(rng, m)).collect()
}

fn accused(states: &[NodeState]) -> Vec<&str> {
    states.iter().filter(|s| s.state == State::Fail).map(|s| s.node.as_str()).collect()
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

/// Runs `FLEETS` fleets; `(with the slow node accused, with another accused)`.
fn count(seed: u64, nodes: usize, slow: Option<Slow>, noise: impl Fn(&mut SmallRng) -> Noise) -> (u64, u64) {
    let (mut found, mut falsely) = (0, 0);
    for i in 0..FLEETS {
        let mut rng = SmallRng::seed_from_u64(seed * 1_000_003 + i);
        let noise = noise(&mut rng);
        let states = convict(&run(&mut rng, nodes, noise, slow));
        let names = accused(&states);
        let hit = slow.is_some() && names.contains(&"n0");
        found += u64::from(hit);
        if names.len() > usize::from(hit) {
            falsely += 1;
            if falsely < 4 {
                let worst = states.iter().find(|s| s.state == State::Fail && !(hit && s.node == "n0"));
                println!("seed {seed} fleet {i} {noise:?}: {:?}", worst.and_then(|w| w.reasons.first()));
            }
        }
    }
    println!("{nodes} nodes, {slow:?}: found {found}, falsely {falsely} of {FLEETS}");
    (found, falsely)
}

/// Less than one fleet in a thousand.
fn assert_no_innocent(falsely: u64) {
    assert!(falsely * 1000 < FLEETS, "{falsely} of {FLEETS} fleets had an innocent node accused");
}

#[test]
fn nobody_is_accused_on_a_noisy_machine() {
    assert_no_innocent(count(1, 8, None, noise).1);
}

#[test]
fn a_healthy_node_of_a_noisy_fleet_passes_and_its_pass_says_what_would_have_been_seen() {
    let (mut nodes, mut passed, mut doubted) = (0, 0, 0);
    for i in 0..FLEETS / 10 {
        let mut rng = SmallRng::seed_from_u64(700_001 + i);
        // As rented virtual machines are: steps 10 %, nodes 10 % apart.
        let noise = Noise { step: 0.1, tail: 0.02, node: 0.1, cell: 0.05, burst: 0.1 };
        for state in convict(&run(&mut rng, 12, noise, None)) {
            nodes += 1;
            passed += u64::from(state.state == State::Pass);
            doubted += u64::from(state.state >= State::Warn);
            if state.state == State::Pass {
                let text = state.reasons.concat();
                assert!(text.is_empty() || text.contains("times as slow in "), "{text}");
            }
        }
    }
    println!("{passed} of {nodes} pass, {doubted} doubted");
    assert!(passed * 100 >= nodes * 95, "{passed} of {nodes} pass");
    assert!(doubted * 100 <= nodes * 2, "{doubted} of {nodes} doubted");
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
    assert_no_innocent(count(2, 8, None, modest).1);
}

#[test]
fn a_half_speed_node_is_found_whatever_the_noise_and_nobody_else() {
    let (found, falsely) = count(3, 8, Some(Slow::Evenly(2.0)), noise);
    assert!(found * 100 > FLEETS * 99, "{found} of {FLEETS}");
    assert_no_innocent(falsely);
}

#[test]
fn a_node_stopped_half_the_time_is_found_whatever_the_length_of_its_stops() {
    for period in [2, 5, 16] {
        let (found, falsely) = count(4, 8, Some(Slow::Stopped { period }), noise);
        assert!(found * 100 > FLEETS * 99, "stopped every {period} steps: {found} of {FLEETS}");
        assert_no_innocent(falsely);
    }
}

#[test]
fn a_sixty_percent_cpu_node_is_found_among_sixteen() {
    let (found, falsely) = count(5, 16, Some(Slow::Cpu(1.0 / 0.6)), noise);
    assert!(found * 100 > FLEETS * 95, "{found} of {FLEETS}");
    assert_no_innocent(falsely);
}

#[test]
fn a_slow_disk_is_found_among_sixteen() {
    let (found, falsely) = count(6, 16, Some(Slow::Disk(3.0)), noise);
    assert!(found * 100 > FLEETS * 97, "{found} of {FLEETS}");
    assert_no_innocent(falsely);
}

/// One more metric of 12 nodes; node 5 takes `odd` times as long.
fn one_more(rng: &mut SmallRng, (benchmark, name): (&str, &str), noise: Noise, odd: f64) -> Learned {
    let fleet: Vec<(String, Observation)> = (0..12)
        .map(|i| {
            let offset = noise.node * rng.random_range(-1.0..1.0);
            let cost = if i == 5 { odd } else { 1.0 };
            let values: Vec<f64> = steps_of(rng, noise, offset, 32).iter().map(|c| 100.0 / c / cost).collect();
            (format!("n{i}"), Observation::from_values(&values))
        })
        .collect();
    let metric = MetricId::new(benchmark, name, "own");
    learn(&metric, Unit::BytesPerSec, Direction::HigherIsBetter, &fleet, &Params::default())
}

#[test]
fn noisy_tails_and_the_many_cores_of_one_noisy_metric_do_not_make_a_quiet_fleet_noisy() {
    let quiet = Noise { step: 0.002, tail: 0.0, node: 0.002, cell: 0.001, burst: 0.0 };
    let restless = Noise { step: 0.2, tail: 0.02, node: 0.1, ..quiet };
    let mut rng = SmallRng::seed_from_u64(12);
    let mut metrics = run(&mut rng, 12, quiet, None);
    for core in 0..32 {
        metrics.push(one_more(&mut rng, ("cpu-core", &format!("speed:core{core}")), quiet, 1.0));
        metrics.push(one_more(&mut rng, ("cpu-core", &format!("latency:core{core}")), restless, 1.0));
    }
    for load in ["seq-read", "seq-write", "rand-read", "rand-write"] {
        for tail in ["p95", "p99", "p99.9"] {
            metrics.push(one_more(&mut rng, ("disk", &format!("{load}-{tail}")), restless, 1.0));
        }
    }
    metrics.push(one_more(&mut rng, ("mem-bandwidth", "read"), quiet, 1.0 / 0.92));
    let states = convict(&metrics);
    assert_eq!(accused(&states), ["n5"]);
    assert!(states.iter().filter(|s| s.node != "n5").all(|s| s.state == State::Pass), "{states:?}");
}

#[test]
fn on_a_quiet_fleet_one_metric_eight_percent_slower_is_enough() {
    let quiet = Noise { step: 0.002, tail: 0.0, node: 0.002, cell: 0.001, burst: 0.0 };
    let mut rng = SmallRng::seed_from_u64(11);
    let mut metrics = run(&mut rng, 12, quiet, None);
    metrics.push(one_more(&mut rng, ("mem-bandwidth", "read"), Noise { node: 0.0, ..quiet }, 1.0 / 0.92));
    let states = convict(&metrics);
    assert_eq!(accused(&states), ["n5"]);
    let fault = states.iter().find(|s| s.node == "n5").map(|s| s.reasons.join("; ")).unwrap_or_default();
    assert!(fault.contains("n5 is 8 % slower than 11 peers (mem-bandwidth/read, similarity 0.9"), "{fault}");
    assert!(states.iter().filter(|s| s.node != "n5").all(|s| s.state == State::Pass), "{states:?}");
}

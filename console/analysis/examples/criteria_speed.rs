//! How long criteria take: one series metric of 3,000 nodes x 3,072 steps, and 2,413 scalar metrics x 3,000
//! nodes, in seconds of one core's time; exactness and the ratio to brute force on a subset.
//!
//! `cargo run --release -p muster-analysis --example criteria_speed`

#![expect(clippy::disallowed_methods, reason = "measures time and reads it from /proc, which the library never does")]

use std::hint::black_box;
use std::time::Duration;

use muster_analysis::medoid::raw_sums;
use muster_analysis::{Observation, Params, Sample, criterion_of, judge, parts};
use muster_wire::{Direction, MetricId, Unit};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// CPU time of this process: what one idle core would have taken, also on a busy machine.
fn now() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    Duration::from_nanos(nanos)
}

fn since(start: Duration) -> f64 {
    (now() - start).as_secs_f64()
}

fn normal(rng: &mut SmallRng) -> f64 {
    let u: f64 = rng.random_range(f64::MIN_POSITIVE..1.0);
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

fn fleet(rng: &mut SmallRng, nodes: usize, steps: usize) -> Vec<Sample> {
    (0..nodes)
        .filter_map(|i| {
            let level = if i % 100 == 7 { 88.0 } else { 100.0 } * (1.0 + 0.003 * normal(rng));
            let values: Vec<f64> = (0..steps).map(|_| level * (1.0 + 0.004 * normal(rng))).collect();
            Sample::new(&values).ok()
        })
        .collect()
}

fn main() {
    let mut rng = SmallRng::seed_from_u64(7);
    let params = Params::default();
    let dir = Direction::HigherIsBetter;
    let metric = MetricId::new("model", "throughput", "own");
    let samples = fleet(&mut rng, 3000, 3072);
    let refs: Vec<&Sample> = samples.iter().collect();

    let start = now();
    let sums = raw_sums(&refs, dir, params.tau);
    println!("series 3000 x 3072: one exact sweep over all pairs      {:.3} s", since(start));
    let start = now();
    let found = criterion_of(&metric, Unit::OpsPerSec, dir, &refs, &params);
    let whole = since(start);
    println!("series 3000 x 3072: criterion, status and repeatability {whole:.3} s");
    println!("  status {}, healthy {}, repeatability {:?}", found.status.name(), found.healthy, found.repeatability);

    let new = fleet(&mut rng, 200, 3072);
    let start = now();
    for sample in new {
        black_box(judge("new", &Observation::Sample(sample), &found));
    }
    println!("series 3000 x 3072: a new sample judged                 {:.3} ms", since(start) / 200.0 * 1e3);

    let rows = 10;
    let start = now();
    let mut error = 0.0_f64;
    for (i, a) in refs.iter().take(rows).enumerate() {
        let slow: f64 = refs.iter().map(|b| parts(a, b, dir, params.tau).raw()).sum();
        error = error.max((slow - sums[i]).abs() / slow);
    }
    let brute = since(start) * refs.len() as f64 / rows as f64 / 2.0;
    println!("  brute force, from {rows} rows: {brute:.0} s; criterion is {:.0} times faster; ", brute / whole);
    println!("  largest relative difference {error:.1e}");

    let metrics = 2413;
    let scalars: Vec<Vec<Sample>> = (0..metrics).map(|_| fleet(&mut rng, 3000, 1)).collect();
    let start = now();
    let mut healthy = 0;
    for one in &scalars {
        let refs: Vec<&Sample> = one.iter().collect();
        healthy += criterion_of(&metric, Unit::OpsPerSec, dir, &refs, &params).healthy;
    }
    println!("scalars {metrics} x 3000: criteria {:.3} s ({healthy} healthy)", since(start));
}

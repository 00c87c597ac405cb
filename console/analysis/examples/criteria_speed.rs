//! How long criteria take: one series metric of 3,000 nodes x 3,072 steps, and 2,413 scalar metrics x 3,000
//! nodes, on one core; exactness and the ratio to brute force on a subset.
//!
//! `cargo run --release -p muster-analysis --example criteria_speed`

#![expect(clippy::disallowed_methods, reason = "measures time, which the library never does")]

use std::time::Instant;

use muster_analysis::medoid::raw_sums;
use muster_analysis::{Params, Sample, criterion_of, parts};
use muster_wire::{Direction, MetricId, Unit};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

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

    let start = Instant::now();
    let sums = raw_sums(&refs, dir, params.tau);
    println!("series 3000 x 3072: one exact sweep over all pairs      {:.3} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let found = criterion_of(&metric, Unit::OpsPerSec, dir, &refs, &params);
    let whole = start.elapsed().as_secs_f64();
    println!("series 3000 x 3072: criterion, status and repeatability {whole:.3} s");
    println!("  status {}, healthy {}, repeatability {:?}", found.status.name(), found.healthy, found.repeatability);

    let rows = 10;
    let start = Instant::now();
    let mut error = 0.0_f64;
    for (i, a) in refs.iter().take(rows).enumerate() {
        let slow: f64 = refs.iter().map(|b| parts(a, b, dir, params.tau).raw()).sum();
        error = error.max((slow - sums[i]).abs() / slow);
    }
    let brute = start.elapsed().as_secs_f64() * refs.len() as f64 / rows as f64 / 2.0;
    println!("  brute force, from {rows} rows: {brute:.0} s; criterion is {:.0} times faster; ", brute / whole);
    println!("  largest relative difference {error:.1e}");

    let metrics = 2413;
    let scalars: Vec<Vec<Sample>> = (0..metrics).map(|_| fleet(&mut rng, 3000, 1)).collect();
    let start = Instant::now();
    let mut healthy = 0;
    for one in &scalars {
        let refs: Vec<&Sample> = one.iter().collect();
        healthy += criterion_of(&metric, Unit::OpsPerSec, dir, &refs, &params).healthy;
    }
    println!("scalars {metrics} x 3000: criteria {:.3} s ({healthy} healthy)", start.elapsed().as_secs_f64());
}

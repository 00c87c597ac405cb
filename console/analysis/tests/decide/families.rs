//! Kinds of noise that healthy fleets have, and faults to put into them.

#![allow(dead_code, reason = "each user takes what it needs")]

use muster_analysis::Chance;

/// Every family, by name.
pub const ALL: [&str; 14] = [
    "gauss0.5",
    "gauss2",
    "gauss4",
    "noisy10",
    "noisyln30",
    "bimodal3",
    "ar1",
    "diurnal",
    "quant2",
    "t3",
    "stall",
    "warmup",
    "offset2",
    "offset5",
];

/// Healthy as well, as far as fails go: one metric of ten was slow for a while, which may be worth a warning.
pub const BURSTS: [&str; 2] = ["burst2", "burst10"];

/// `speeds[metric][node][step]`, around 1, higher is better.
pub type Speeds = Vec<Vec<Vec<f64>>>;

/// A healthy fleet.
pub fn fleet(family: &str, chance: &mut Chance, nodes: usize, metrics: usize, steps: usize) -> Speeds {
    let offset = match family {
        "offset2" => 0.02,
        "offset5" => 0.05,
        _ => 0.0,
    };
    let whole: Vec<f64> = (0..nodes).map(|_| (offset * chance.normal()).exp()).collect();
    (0..metrics)
        .map(|_| whole.iter().map(|whole| series(family, chance, steps).iter().map(|v| v * whole).collect()).collect())
        .collect()
}

/// Steps of one metric of one healthy node.
fn series(family: &str, c: &mut Chance, steps: usize) -> Vec<f64> {
    let level = |c: &mut Chance, sd: f64| sd.mul_add(c.normal(), 1.0);
    let normal = |c: &mut Chance, node: f64, step: f64| {
        let node = level(c, node);
        (0..steps).map(|_| node * level(c, step)).collect::<Vec<f64>>()
    };
    match family {
        "gauss0.5" => normal(c, 0.002, 0.005),
        "gauss2" => normal(c, 0.004, 0.02),
        "gauss4" => normal(c, 0.008, 0.04),
        "offset2" | "offset5" => normal(c, 0.003, 0.005),
        "noisy10" => normal(c, 0.05, 0.1).into_iter().map(|v| v.max(0.05)).collect(),
        "noisyln30" => {
            let node = (0.1 * c.normal()).exp();
            (0..steps).map(|_| node * (0.3 * c.normal()).exp()).collect()
        }
        "bimodal3" => {
            let slow = |c: &mut Chance| if c.unit() < 0.15 { 0.97 } else { 1.0 };
            normal(c, 0.002, 0.003).into_iter().map(|v| v * slow(c)).collect()
        }
        "ar1" => {
            let (node, mut at) = (level(c, 0.002), c.normal());
            let mut steps = vec![0.0; steps];
            for step in &mut steps {
                *step = node * 0.01_f64.mul_add(at, 1.0);
                at = 0.95_f64.mul_add(at, 0.0975_f64.sqrt() * c.normal());
            }
            steps
        }
        "diurnal" => {
            let phase = c.unit() * std::f64::consts::TAU;
            let wave = |step: usize| 0.03_f64.mul_add((phase + step as f64 * std::f64::consts::TAU / 64.0).sin(), 1.0);
            normal(c, 0.002, 0.004).into_iter().enumerate().map(|(step, v)| v * wave(step)).collect()
        }
        "quant2" => normal(c, 0.002, 0.005).into_iter().map(|v| (50.0 * v).round() / 50.0).collect(),
        "t3" => {
            let node = level(c, 0.002);
            let heavy = |c: &mut Chance| c.normal() / (c.gamma(1.5) / 1.5).sqrt();
            (0..steps).map(|_| node * 0.004_f64.mul_add(heavy(c), 1.0).max(0.3)).collect()
        }
        "stall" => {
            let stalled = |c: &mut Chance| if c.unit() < 0.002 { 0.5 } else { 1.0 };
            normal(c, 0.002, 0.005).into_iter().map(|v| v * stalled(c)).collect()
        }
        "warmup" => {
            let warm = (steps as f64 * 0.05).max(0.5);
            let cold = |step: usize| 1.0 - 0.2 * (-(step as f64) / warm).exp();
            normal(c, 0.002, 0.004).into_iter().enumerate().map(|(step, v)| v * cold(step)).collect()
        }
        "burst2" => burst(c, |c| normal(c, 0.004, 0.02)),
        "burst10" => burst(c, |c| normal(c, 0.03, 0.1).into_iter().map(|v| v.max(0.3)).collect()),
        other => panic!("no family {other}"),
    }
}

/// Now and then, one stretch of 5 to 60 % of the steps takes 1.3 to 5 times as long.
fn burst(c: &mut Chance, series: impl Fn(&mut Chance) -> Vec<f64>) -> Vec<f64> {
    let mut steps = series(c);
    if c.unit() < 0.1 {
        let length = (0.55_f64.mul_add(c.unit(), 0.05) * steps.len() as f64) as usize;
        let (from, factor) = (c.below(steps.len() - length + 1), 3.7_f64.mul_add(c.unit(), 1.3));
        steps[from..from + length].iter_mut().for_each(|v| *v /= factor);
    }
    steps
}

/// One of `items`.
pub fn pick<T: Copy>(chance: &mut Chance, items: &[T]) -> T {
    items[chance.below(items.len())]
}

/// Makes a node slower by `loss` in `metric`, in every step.
pub fn slow(speeds: &mut Speeds, node: usize, metric: usize, loss: f64) {
    speeds[metric][node].iter_mut().for_each(|v| *v *= 1.0 - loss);
}

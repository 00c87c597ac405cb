//! SuperBench's table 5 on synthetic traces: periods found, 67 to 78 % of the steps saved, under 1 % lost.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use muster_analysis::tune::{Outcome, Settings, Tuned, period, search};
use muster_wire::Direction::{HigherIsBetter, LowerIsBetter};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const STEPS: usize = 3144;

fn normal(rng: &mut SmallRng) -> f64 {
    let u: f64 = rng.random_range(f64::MIN_POSITIVE..1.0);
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// How a cycle looks.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    /// Every phase its own speed, as with batches of different lengths.
    Jagged,
    /// One dip, as a wave.
    Smooth,
}

/// Throughput that repeats itself every `period` steps and starts slowly.
struct Trace {
    period: usize,
    shape: Shape,
    dip: f64,
    noise: f64,
    stalls: f64,
}

impl Trace {
    fn make(&self, rng: &mut SmallRng) -> Vec<f64> {
        let level = 100.0 * (1.0 + 0.003 * normal(rng));
        // The pattern belongs to the model, not to the node.
        let mut own = SmallRng::seed_from_u64(self.period as u64);
        let jagged: Vec<f64> = (0..self.period).map(|_| own.random()).collect();
        (0..STEPS)
            .map(|i| {
                let warm = 1.0 - 0.5 * (-(i as f64) / 20.0).exp();
                let phase = i % self.period.max(1);
                let turn = std::f64::consts::TAU * phase as f64 / self.period.max(1) as f64;
                let share = match self.shape {
                    _ if self.period == 0 => 0.0,
                    Shape::Jagged => jagged[phase],
                    Shape::Smooth => (0.5 - 0.5 * turn.cos()).powi(4),
                };
                let wave = 1.0 - self.dip * share;
                let stall = if rng.random::<f64>() < self.stalls { rng.random_range(0.7..0.95) } else { 1.0 };
                level * warm * wave * stall * (1.0 + self.noise * normal(rng))
            })
            .collect()
    }

    fn fleet(&self, nodes: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut rng = SmallRng::seed_from_u64(seed);
        (0..nodes).map(|_| self.make(&mut rng)).collect()
    }
}

#[test]
fn periods_from_10_to_300_steps_are_found_exactly() {
    let mut rng = SmallRng::seed_from_u64(11);
    let (mut exact, mut close) = (0, 0);
    for _ in 0..200 {
        let p = rng.random_range(10..=300);
        let trace = Trace { period: p, shape: Shape::Jagged, dip: 0.02, noise: 0.005, stalls: 0.001 };
        exact += usize::from(period(&trace.make(&mut rng)) == Some(p));
        // The peak of a wave is broad: near is all that can be asked.
        let found = period(&Trace { shape: Shape::Smooth, ..trace }.make(&mut rng));
        close += usize::from(found.is_some_and(|f| f.abs_diff(p) as f64 <= 0.02 * p as f64));
    }
    println!("{exact} of 200 jagged periods exact, {close} of 200 smooth ones within 2 %");
    assert!(exact >= 196, "{exact} of 200");
    assert!(close >= 190, "{close} of 200");
}

#[test]
fn noise_has_no_period() {
    let mut rng = SmallRng::seed_from_u64(12);
    for _ in 0..20 {
        let trace = Trace { period: 0, shape: Shape::Smooth, dip: 0.0, noise: 0.01, stalls: 0.001 }.make(&mut rng);
        assert_eq!(period(&trace), None);
    }
    assert_eq!(period(&[5.0; 400]), None);
    assert_eq!(period(&[1.0, 2.0, 1.0, 2.0]), None);
}

fn tuned(trace: &Trace, seed: u64, max_loss: f64) -> Tuned {
    let settings = Settings { max_loss, ..Settings::default() };
    match search(&trace.fleet(64, seed), HigherIsBetter, &settings).unwrap() {
        Outcome::Tuned(tuned) => tuned,
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_thirds_to_four_fifths_of_the_steps_are_saved_for_less_than_a_hundredth_of_repeatability() {
    let named = [
        ("period 100", Trace { period: 100, shape: Shape::Jagged, dip: 0.02, noise: 0.004, stalls: 0.0 }),
        ("period 125", Trace { period: 125, shape: Shape::Jagged, dip: 0.02, noise: 0.004, stalls: 0.0 }),
        ("period 28", Trace { period: 28, shape: Shape::Jagged, dip: 0.02, noise: 0.004, stalls: 0.0 }),
        ("period 88", Trace { period: 88, shape: Shape::Jagged, dip: 0.015, noise: 0.005, stalls: 0.0 }),
        (
            "period 100, 0.1 % stalls",
            Trace { period: 100, shape: Shape::Jagged, dip: 0.02, noise: 0.004, stalls: 0.001 },
        ),
    ];
    for (seed, (name, trace)) in (1..).zip(&named) {
        // With stalls the 800 steps chosen lose 0.7 %, and up to 1.6 % on the steps after them: refused by default, see below.
        let found = tuned(trace, seed, if trace.stalls > 0.0 { 0.02 } else { 0.01 });
        println!("{name}: {found:?}");
        assert_eq!(found.period, Some(trace.period), "{name}");
        assert!((0.67..=0.784).contains(&found.saving), "{name}: {found:?}");
        assert!(found.loss < 0.01, "{name}: {found:?}");
        assert!(trace.stalls > 0.0 || found.warmup < 400, "{name}: {found:?}");
    }
}

#[test]
fn a_window_chosen_for_its_few_stalls_loses_more_on_the_steps_after_it_and_is_refused() {
    let trace = Trace { period: 100, shape: Shape::Jagged, dip: 0.02, noise: 0.004, stalls: 0.001 };
    let found = search(&trace.fleet(64, 5), HigherIsBetter, &Settings::default()).unwrap();
    let Outcome::Refused(tuned) = found else { panic!("{found:?}") };
    println!("{tuned:?}");
    assert!(tuned.loss < 0.01 && tuned.loss_bound.unwrap() > 0.01, "{tuned:?}");
}

#[test]
fn a_fleet_that_never_settles_keeps_its_steps_and_says_so() {
    let mut rng = SmallRng::seed_from_u64(3);
    // Every 64 steps another level: no two cycles are alike.
    let wild: Vec<Vec<f64>> =
        (0..8).map(|_| (0..STEPS / 64).flat_map(|_| vec![rng.random_range(50.0..150.0); 64]).collect()).collect();
    let found = search(&wild, HigherIsBetter, &Settings::default()).unwrap();
    assert!(matches!(&found, Outcome::Kept(why) if why.contains("alike cycles")), "{found:?}");
    assert!(matches!(search(&[vec![1.0; 50]], LowerIsBetter, &Settings::default()), Ok(Outcome::Kept(_))));
    assert!(search(&[vec![1.0, f64::NAN]], LowerIsBetter, &Settings::default()).is_err());
}

#[test]
fn a_shorter_setting_that_loses_more_than_allowed_is_refused() {
    let fleet = Trace { period: 100, shape: Shape::Jagged, dip: 0.02, noise: 0.004, stalls: 0.0 }.fleet(16, 5);
    let strict = Settings { max_loss: -1.0, ..Settings::default() };
    assert!(matches!(search(&fleet, HigherIsBetter, &strict), Ok(Outcome::Refused(_))));
}

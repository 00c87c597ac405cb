//! How a benchmark turns time into values: how long a step is, when warm-up ends, when to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use muster_wire::{Outcome, Profile, Steps};

/// Why a benchmark ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// Somebody asked for it.
    Stopped,
    /// There is nothing here to measure.
    NotApplicable(String),
    /// Cannot be done here, and that is nobody's fault.
    NotRun(String),
    /// Not permitted to this user.
    Denied(String),
    /// Tried and failed.
    Failed(String),
}

impl From<Halt> for Outcome {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Stopped => Self::stopped(),
            Halt::NotApplicable(why) => Self::NotApplicable(why),
            Halt::NotRun(why) => Self::NotRun(why),
            Halt::Denied(why) => Self::Denied(why),
            Halt::Failed(why) => Self::Failed(why),
        }
    }
}

/// Passes of the smoke profile, and values of each.
const PASSES: usize = 2;
const PER_PASS: usize = 16;

/// Values without which there is no series, however slow the node.
pub(crate) const ENOUGH: usize = 5;

/// Values and length of a step below which turns over many metrics are not cut.
const FEWEST: usize = 16;
const SHORTEST: Duration = Duration::from_micros(800);

/// In how many passes over all benchmarks a profile takes its values: the longer ones outlast any neighbour's mood.
pub(crate) const fn passes(profile: Profile) -> usize {
    match profile {
        Profile::Smoke => PASSES,
        Profile::Quick | Profile::Standard | Profile::Full => 1,
    }
}

/// Length and number of steps of one pass. Steps are bounded by time, not by work: a slow node takes as long as a fast one
/// and shows fewer operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Wall time of one step.
    pub(crate) step: Duration,
    values: usize,
    window: usize,
    tolerance: f64,
    most_warmup: usize,
    /// Left out after it was steady.
    more_warmup: usize,
    /// Past this time a metric ends with the values it has, at least [`ENOUGH`].
    patience: Duration,
}

/// Values of one metric.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) values: Vec<f64>,
    pub(crate) warmup: u32,
    pub(crate) started_ns: u64,
}

impl Plan {
    /// Shares the time of one benchmark among its `metrics`. `smoke` is the time it has in that profile; the
    /// others give every benchmark the same.
    ///
    /// A value should cover whole periods of whatever takes the CPU away from a node (quotas and duty cycles have
    /// periods of 10 to 100 ms), so longer profiles lengthen steps first. In smoke, 32 values of each of some
    /// twenty metrics in under five seconds leave 4 to 10 ms a step.
    pub(crate) fn new(profile: Profile, smoke: Duration, metrics: usize) -> Self {
        let (budget, values) = match profile {
            Profile::Smoke => (smoke / PASSES as u32, PER_PASS),
            Profile::Quick => (Duration::from_secs(3), 64),
            Profile::Standard => (Duration::from_secs(30), 256),
            Profile::Full => (Duration::from_secs(280), 512),
        };
        Self::within(budget, values, metrics, profile == Profile::Smoke)
    }

    /// The same for `metrics` that take turns, as the cores of a node do: there may be hundreds, so that values get
    /// fewer, down to [`FEWEST`], before steps get shorter than [`SHORTEST`].
    pub(crate) fn in_turns(profile: Profile, smoke: Duration, metrics: usize) -> Self {
        let whole = Self::new(profile, smoke, metrics);
        let fit = whole.step.as_secs_f64() / SHORTEST.as_secs_f64() * whole.values as f64;
        let values = (fit as usize).clamp(FEWEST, whole.values);
        let budget = whole.step.mul_f64((metrics.max(1) * (whole.values + whole.window + 1)) as f64);
        let plan = Self::within(budget, values, metrics, profile == Profile::Smoke);
        // All metrics of a turn are timed together.
        Self { step: plan.step.max(SHORTEST), patience: plan.patience * metrics.max(1) as u32, ..plan }
    }

    /// For steps that are as long as they are: `values` of them, fewer on a node that would need more than `patience`.
    pub(crate) const fn of_steps(values: usize, patience: Duration) -> Self {
        Self { step: Duration::ZERO, values, window: 2, tolerance: 0.05, most_warmup: 4, more_warmup: 0, patience }
    }

    /// The same steps, as many as `steps` says.
    pub(crate) fn of(self, profile: Profile, steps: Option<Steps>) -> Self {
        let Some(Steps { warmup, measured }) = steps else { return self };
        let values = (measured as usize).div_ceil(passes(profile)).max(ENOUGH);
        Self { values, more_warmup: warmup as usize, ..self }
    }

    fn within(budget: Duration, values: usize, metrics: usize, smoke: bool) -> Self {
        let (window, tolerance, most_warmup) = if smoke { (2, 0.05, 5) } else { (5, 0.02, values / 2) };
        let expected = metrics.max(1) * (values + window + 1);
        let step = budget.div_f64(expected as f64);
        let patience = (budget * 6 / metrics.max(1) as u32).max(Duration::from_secs(4));
        Self { step, values, window, tolerance, most_warmup, more_warmup: 0, patience }
    }

    /// Runs `step`, which gives one value each of one or more metrics, until the running median of their geometric
    /// mean is steady (or the cap of warm-up is reached), then for every value. Values with one position belong to
    /// one moment, and may be compared in pairs. `progress` hears the values done and their number, a few times.
    pub(crate) fn take(
        &self,
        stop: &AtomicBool,
        step: &mut dyn FnMut() -> Result<Vec<f64>, Halt>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Vec<Taken>, Halt> {
        let mut next = || {
            if stop.load(Ordering::Relaxed) {
                return Err(Halt::Stopped);
            }
            step()
        };
        progress(0, self.values);
        let mut dropped = Vec::with_capacity(self.most_warmup);
        let begun = Instant::now();
        let late = |share| begun.elapsed() > self.patience / share;
        while dropped.len() < self.most_warmup && !self.steady(&dropped) && !late(4) {
            dropped.push(geometric_mean(&next()?));
        }
        for _ in 0..self.more_warmup {
            dropped.push(geometric_mean(&next()?));
        }
        let mut series: Vec<Vec<f64>> = Vec::new();
        let started_ns = monotonic_ns();
        let mut told = Instant::now();
        for done in 0..self.values {
            if done >= ENOUGH && late(1) {
                break;
            }
            let values = next()?;
            series.resize_with(values.len(), || Vec::with_capacity(self.values));
            series.iter_mut().zip(values).for_each(|(series, value)| series.push(value));
            if told.elapsed() > Duration::from_millis(200) {
                progress(done + 1, self.values);
                told = Instant::now();
            }
        }
        progress(self.values, self.values);
        match series.iter().flatten().find(|v| !v.is_finite() || **v <= 0.0) {
            Some(bad) => Err(Halt::Failed(format!("a step gave {bad}, which cannot be"))),
            None => {
                let warmup = dropped.len() as u32;
                Ok(series.into_iter().map(|values| Taken { values, warmup, started_ns }).collect())
            }
        }
    }

    /// Whether the medians of the last two windows, one step apart, agree.
    fn steady(&self, seen: &[f64]) -> bool {
        let Some(start) = seen.len().checked_sub(self.window + 1) else { return false };
        let before = median(&seen[start..seen.len() - 1]);
        let now = median(&seen[start + 1..]);
        (now - before).abs() <= self.tolerance * before.abs()
    }
}

fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len().max(1) as f64).exp()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Monotonic clock, nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(values: impl Fn(usize) -> f64, profile: Profile) -> Result<Taken, Halt> {
        let mut n = 0;
        let taken = Plan::new(profile, Duration::from_secs(1), 1).take(
            &AtomicBool::new(false),
            &mut || {
                n += 1;
                Ok(vec![values(n - 1)])
            },
            &mut |_, _| {},
        );
        taken.map(|mut all| all.remove(0))
    }

    #[test]
    fn warm_up_ends_when_the_median_is_steady() {
        let taken = take(|n| if n < 3 { 10.0 + 10.0 * n as f64 } else { 100.0 }, Profile::Quick).unwrap();
        assert!(taken.values.iter().all(|v| *v == 100.0));
        assert!((7..20).contains(&taken.warmup), "{}", taken.warmup);
        assert_eq!(taken.values.len(), 64);
    }

    #[test]
    fn warm_up_is_capped_where_nothing_is_ever_steady() {
        let taken = take(|n| 1.5f64.powi(n as i32), Profile::Smoke).unwrap();
        assert_eq!(taken.warmup, 5);
        assert_eq!(taken.values.len(), PER_PASS);
    }

    #[test]
    fn tuned_steps_replace_those_of_the_profile_and_keep_their_length() {
        let whole = Plan::new(Profile::Full, Duration::from_secs(1), 1);
        let tuned = whole.of(Profile::Full, Some(Steps { warmup: 7, measured: 40 }));
        assert_eq!(tuned.step, whole.step);
        let take =
            |plan: Plan| plan.take(&AtomicBool::new(false), &mut || Ok(vec![1.0]), &mut |_, _| {}).unwrap().remove(0);
        let (fixed, taken) = (take(whole), take(tuned));
        assert_eq!((taken.warmup, taken.values.len()), (fixed.warmup + 7, 40));
    }

    #[test]
    fn hundreds_of_metrics_in_turns_get_fewer_values_and_never_none() {
        let plan = |metrics| Plan::in_turns(Profile::Quick, Duration::from_secs(1), metrics);
        assert_eq!(plan(4).values, 64);
        assert!(plan(4).step > Duration::from_millis(5));
        let wide = plan(384);
        assert_eq!((wide.values, wide.step), (FEWEST, SHORTEST));
        assert!(wide.patience > wide.step * 384 * 64);
    }

    #[test]
    fn values_of_one_step_keep_one_position_in_every_series() {
        let mut n = 0.0;
        let mut step = || {
            n += 1.0;
            Ok(vec![n, 10.0 * n])
        };
        let plan = Plan::new(Profile::Smoke, Duration::from_secs(1), 2);
        let taken = plan.take(&AtomicBool::new(false), &mut step, &mut |_, _| {}).unwrap();
        assert_eq!((taken.len(), taken[0].values.len()), (2, PER_PASS));
        assert!(taken[0].values.iter().zip(&taken[1].values).all(|(a, b)| 10.0 * a == *b));
    }

    #[test]
    fn a_value_that_cannot_be_is_a_failure() {
        assert!(matches!(take(|_| 0.0, Profile::Smoke), Err(Halt::Failed(_))));
        assert!(matches!(take(|n| if n == 12 { f64::NAN } else { 1.0 }, Profile::Smoke), Err(Halt::Failed(_))));
    }

    #[test]
    fn a_stop_between_steps_ends_the_metric() {
        let stop = AtomicBool::new(false);
        let mut steps = 0;
        let ended = Plan::new(Profile::Smoke, Duration::from_secs(1), 1).take(
            &stop,
            &mut || {
                steps += 1;
                stop.store(steps == 10, Ordering::Relaxed);
                Ok(vec![1.0])
            },
            &mut |_, _| {},
        );
        assert!(matches!(ended, Err(Halt::Stopped)));
        assert_eq!(steps, 10);
    }
}

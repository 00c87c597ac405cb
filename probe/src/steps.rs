//! How a benchmark turns time into values: how long a step is, when warm-up ends, when to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use muster_wire::{Outcome, Profile};

/// Why a benchmark ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// Somebody asked for it.
    Stopped,
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
            Halt::Stopped => Self::NotRun("stopped".into()),
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
const ENOUGH: usize = 5;

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
            Profile::Quick => (Duration::from_secs(6), 64),
            Profile::Standard => (Duration::from_secs(80), 256),
            Profile::Full => (Duration::from_secs(280), 512),
        };
        let smoke = profile == Profile::Smoke;
        let (window, tolerance, most_warmup) = if smoke { (2, 0.05, 5) } else { (5, 0.02, values / 2) };
        let expected = metrics.max(1) * (values + window + 1);
        let step = budget.div_f64(expected as f64);
        let patience = (budget * 6 / metrics.max(1) as u32).max(Duration::from_secs(4));
        Self { step, values, window, tolerance, most_warmup, patience }
    }

    /// Runs `step` until its running median is steady (or the cap of warm-up is reached), then for every value.
    /// `progress` hears the values done and their number, a few times.
    pub(crate) fn take(
        &self,
        stop: &AtomicBool,
        step: &mut dyn FnMut() -> Result<f64, Halt>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Taken, Halt> {
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
            dropped.push(next()?);
        }
        let mut values = Vec::with_capacity(self.values);
        let started_ns = monotonic_ns();
        let mut told = Instant::now();
        for done in 0..self.values {
            if done >= ENOUGH && late(1) {
                break;
            }
            values.push(next()?);
            if told.elapsed() > Duration::from_millis(200) {
                progress(done + 1, self.values);
                told = Instant::now();
            }
        }
        progress(self.values, self.values);
        match values.iter().find(|v| !v.is_finite() || **v <= 0.0) {
            Some(bad) => Err(Halt::Failed(format!("a step gave {bad}, which cannot be"))),
            None => Ok(Taken { values, warmup: dropped.len() as u32, started_ns }),
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
        Plan::new(profile, Duration::from_secs(1), 1).take(
            &AtomicBool::new(false),
            &mut || {
                n += 1;
                Ok(values(n - 1))
            },
            &mut |_, _| {},
        )
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
                Ok(1.0)
            },
            &mut |_, _| {},
        );
        assert!(matches!(ended, Err(Halt::Stopped)));
        assert_eq!(steps, 10);
    }
}

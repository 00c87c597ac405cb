//! What is one value of a node, from those of its devices?
//!
//! Answers to several queries may be asked from slightly different moments, so samples are put on the grid of their step. A sum in which one device's
//! sample is missing would show a loss that is none: there the node has a gap. A device that is gone for good is a loss.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{Over, Role};
use super::rate::step;

/// What one series adds to a metric.
pub(super) struct Part<'a> {
    /// The device that is counted where there is a value for each.
    pub(super) device: &'a str,
    pub(super) role: Role,
    /// Milliseconds and value; `None` is a gap.
    pub(super) samples: Vec<(i64, Option<f64>)>,
}

/// Everything known of a moment.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    time_ms: i64,
    present: usize,
    gap: bool,
    /// By role.
    sums: [f64; 3],
    seen: [bool; 3],
    most: f64,
    least: f64,
}

/// Milliseconds and value of a node, in order of time.
pub(super) fn joined(parts: &[Part<'_>], over: Over) -> Vec<(i64, f64)> {
    let times = |part: &Part<'_>| part.samples.iter().map(|(time_ms, _)| (*time_ms, 0.0)).collect::<Vec<_>>();
    let step = parts.iter().map(|part| step(&times(part))).max().unwrap_or(1);
    let place = |time_ms: i64| (time_ms + step / 2).div_euclid(step);
    let moments = moments(parts, &place);
    let mut begins: Vec<i64> = parts.iter().filter_map(|part| Some(place(part.samples.first()?.0))).collect();
    let mut ends: Vec<i64> = parts.iter().filter_map(|part| Some(place(part.samples.last()?.0))).collect();
    begins.sort_unstable();
    ends.sort_unstable();
    let alive = |at: i64| begins.partition_point(|begin| *begin <= at) - ends.partition_point(|end| *end < at);
    let devices = parts.iter().map(|part| part.device).collect::<BTreeSet<_>>().len().max(1);
    let whole = |(at, moment): &(&i64, &Moment)| {
        // Queries begin and end a step apart.
        let fewer = |other: i64| moments.get(&other).is_some_and(|other| other.present > moment.present);
        let edge = !moments.contains_key(&(**at - 1)) && fewer(**at + 1)
            || !moments.contains_key(&(**at + 1)) && fewer(**at - 1);
        !over.needs_all() || !moment.gap && !edge && moment.present >= alive(**at)
    };
    let value = |(_, moment): (&i64, &Moment)| Some((moment.time_ms, moment.value(over, devices)?));
    moments.iter().filter(whole).filter_map(value).collect()
}

/// All moments on the grid.
fn moments(parts: &[Part<'_>], place: &dyn Fn(i64) -> i64) -> BTreeMap<i64, Moment> {
    let mut moments: BTreeMap<i64, Moment> = BTreeMap::new();
    for part in parts {
        let mut samples = part.samples.iter().peekable();
        while let Some(&(time_ms, _)) = samples.peek() {
            let at = place(*time_ms);
            let (mut last_ms, mut sum, mut count, mut gap) = (0, 0.0, 0_u32, false);
            while let Some((time_ms, value)) = samples.next_if(|(time_ms, _)| place(*time_ms) == at) {
                last_ms = *time_ms;
                match value {
                    Some(value) => (sum, count) = (sum + value, count + 1),
                    None => gap = true,
                }
            }
            let moment = moments.entry(at).or_insert_with(|| Moment {
                most: f64::NEG_INFINITY,
                least: f64::INFINITY,
                ..Moment::default()
            });
            moment.time_ms = moment.time_ms.max(last_ms);
            moment.gap |= gap;
            if count > 0 {
                moment.present += 1;
                moment.sums[part.role as usize] += sum / f64::from(count);
                moment.seen[part.role as usize] = true;
                moment.most = moment.most.max(sum / f64::from(count));
                moment.least = moment.least.min(sum / f64::from(count));
            }
        }
    }
    moments
}

impl Moment {
    fn value(&self, over: Over, devices: usize) -> Option<f64> {
        if self.present == 0 {
            return None;
        }
        let [used, free, all] = self.sums;
        let [is_used, is_free, is_all] = self.seen;
        let value = match over {
            Over::Sum => used,
            Over::Each => used / devices as f64,
            Over::Mean => used / self.present as f64,
            Over::Most => self.most,
            Over::Least => self.least,
            Over::Share if is_free && is_all => 100.0 * (1.0 - free / all),
            Over::Share if is_free && is_used => 100.0 * used / (used + free),
            // One of two says nothing.
            Over::Share => return None,
        };
        value.is_finite().then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(device: &str, samples: Vec<(i64, Option<f64>)>) -> Part<'_> {
        Part { device, role: Role::Used, samples }
    }

    fn steady(from: i64, to: i64, value: f64) -> Vec<(i64, Option<f64>)> {
        (from..to).map(|at| (at * 15_000, Some(value))).collect()
    }

    #[test]
    fn a_missing_sample_of_one_device_is_a_gap_and_a_device_that_is_gone_is_a_loss() {
        let mut torn = steady(0, 10, 2.0);
        torn.remove(4);
        let sum = joined(&[part("a", steady(0, 10, 1.0)), part("b", torn.clone())], Over::Sum);
        assert_eq!((sum.len(), sum.iter().all(|(_, value)| *value == 3.0)), (9, true));
        let mean = joined(&[part("a", steady(0, 10, 1.0)), part("b", torn)], Over::Mean);
        assert_eq!((mean[3].1, mean[4].1), (1.5, 1.0));
        let gone = joined(&[part("a", steady(0, 10, 1.0)), part("b", steady(0, 5, 2.0))], Over::Sum);
        assert_eq!((gone[4].1, gone[5].1, gone.len()), (3.0, 1.0, 10));
        let mut reset = steady(0, 10, 2.0);
        reset[3].1 = None;
        assert_eq!(joined(&[part("a", steady(0, 10, 1.0)), part("b", reset)], Over::Sum).len(), 9);
    }

    #[test]
    fn queries_that_begin_at_different_moments_are_put_together() {
        let late = steady(0, 10, 2.0).into_iter().map(|(time, value)| (time + 4_000, value)).collect();
        let sum = joined(&[part("a", steady(0, 10, 1.0)), part("b", late)], Over::Sum);
        assert_eq!((sum.len(), sum[0]), (10, (4_000, 3.0)));
        let later = steady(1, 11, 2.0);
        let sum = joined(&[part("a", steady(0, 10, 1.0)), part("b", later)], Over::Sum);
        assert_eq!((sum.len(), sum[0].1, sum[8].1), (9, 3.0, 3.0));
    }

    #[test]
    fn a_share_is_of_all_and_a_mean_of_each_cpu() {
        let of = |role, value| Part { device: "", role, samples: steady(0, 3, value) };
        assert_eq!(joined(&[of(Role::Free, 25.0), of(Role::All, 100.0)], Over::Share)[1].1, 75.0);
        assert_eq!(joined(&[of(Role::Used, 30.0), of(Role::Free, 10.0)], Over::Share)[1].1, 75.0);
        assert_eq!(joined(&[of(Role::Free, 30.0)], Over::Share), [], "what is free is nothing by itself");
        let cpus = [part("0", steady(0, 3, 40.0)), part("0", steady(0, 3, 20.0)), part("1", steady(0, 3, 0.0))];
        assert_eq!(joined(&cpus, Over::Each)[1].1, 30.0);
        assert_eq!(joined(&cpus, Over::Most)[1].1, 40.0);
    }
}

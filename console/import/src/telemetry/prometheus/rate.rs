//! What did a counter do between two samples?

/// Samples, each milliseconds and a value.
type Samples = [(i64, f64)];
/// Changes that say how often a counter moves.
const CHANGES: usize = 5;
/// Samples apart past which what lies between them is a gap.
const GAP: i64 = 5;

/// Counts per second, each at the end of the time that it speaks of; `None` where the counter began anew or nothing was told for long. With the number of
/// new beginnings.
///
/// An answer whose step is shorter than the time between two scrapes repeats each sample: taken as it is, it shows a standstill and then a leap. `refresh_ms`
/// is that time, and samples that repeat the one before within it say nothing.
pub(super) fn rates(samples: &Samples, refresh_ms: i64) -> (Vec<(i64, Option<f64>)>, u64) {
    let step = step(samples);
    let told = if 2 * refresh_ms > 3 * step { told(samples, refresh_ms) } else { samples.to_vec() };
    let longest = GAP * step.max(refresh_ms);
    let mut resets = 0;
    let rate = |pair: &Samples| {
        let [(from_ms, from), (to_ms, to)] = *pair else { return None };
        let apart_ms = to_ms - from_ms;
        resets += u64::from(to < from);
        let known = to >= from && apart_ms <= longest;
        Some((to_ms, known.then(|| (to - from) / (apart_ms as f64 / 1e3))))
    };
    (told.windows(2).filter_map(rate).collect(), resets)
}

/// Those that are new: a changed value, or one that stays when it should have moved.
fn told(samples: &Samples, refresh_ms: i64) -> Vec<(i64, f64)> {
    let mut told: Vec<(i64, f64)> = Vec::new();
    for &(time_ms, value) in samples {
        let new = told.last().is_none_or(|&(last_ms, last)| {
            value.to_bits() != last.to_bits() || 2 * (time_ms - last_ms) >= 3 * refresh_ms
        });
        if new {
            told.push((time_ms, value));
        }
    }
    told
}

/// The usual milliseconds between two samples.
pub(super) fn step(samples: &Samples) -> i64 {
    median(samples.windows(2).map(|pair| pair[1].0 - pair[0].0).collect()).unwrap_or(1).max(1)
}

/// The usual milliseconds from one change of a counter to the next; `None` where it hardly changes.
pub(super) fn moves_every(samples: &Samples) -> Option<i64> {
    let changed: Vec<i64> =
        samples.windows(2).filter(|pair| pair[0].1.to_bits() != pair[1].1.to_bits()).map(|pair| pair[1].0).collect();
    let gaps: Vec<i64> = changed.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if gaps.len() < CHANGES { None } else { median(gaps) }
}

fn median(mut numbers: Vec<i64>) -> Option<i64> {
    numbers.sort_unstable();
    numbers.get(numbers.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_becomes_counts_a_second_and_a_new_beginning_a_gap() {
        let samples = [(0, 100.0), (15_000, 250.0), (30_000, 5.0), (45_000, 35.0)];
        let (found, resets) = rates(&samples, 15_000);
        assert_eq!(found, [(15_000, Some(10.0)), (30_000, None), (45_000, Some(2.0))]);
        assert_eq!(resets, 1);
        let (gap, _) = rates(&[(0, 0.0), (15_000, 15.0), (30_000, 30.0), (600_000, 900.0)], 15_000);
        assert_eq!(gap.last(), Some(&(600_000, None)));
    }

    #[test]
    fn a_sample_that_is_only_repeated_makes_no_standstill_and_no_leap() {
        let samples: Vec<(i64, f64)> = (0..60).map(|second| (second * 1_000, (second / 15 * 150) as f64)).collect();
        let busy: Vec<(i64, f64)> = (0..120).map(|second| (second * 1_000, (second / 15 * 15) as f64)).collect();
        assert_eq!(moves_every(&busy), Some(15_000));
        let (found, _) = rates(&samples, 15_000);
        assert_eq!(found, [(15_000, Some(10.0)), (30_000, Some(10.0)), (45_000, Some(10.0))]);
    }

    #[test]
    fn a_counter_that_stands_still_is_told_as_zero_soon_after() {
        let stops = |second: i64| ((second.min(60) / 15) * 150) as f64;
        let samples: Vec<(i64, f64)> = (0..150).map(|second| (second * 1_000, stops(second))).collect();
        let (found, _) = rates(&samples, 15_000);
        let zero = found.iter().find(|(_, rate)| *rate == Some(0.0)).unwrap().0;
        assert!((75_000..=90_000).contains(&zero), "{found:?}");
    }
}

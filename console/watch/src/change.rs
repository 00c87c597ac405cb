//! In which second did a series step from one level to another, and how sure is that?
//!
//! Least squares for one step. The interval holds every second that the data cannot refuse: for the place of a step the likelihood
//! ratio is below c with probability (1 - exp(-c/2))^2 (Hansen 2000), and noise that hangs together from second to second counts as
//! fewer seconds, by its integrated autocorrelation.

/// Likelihood ratio that 99 of 100 true places stay below.
const SURE: f64 = 10.59;
/// Likelihood ratio from which there is a step at all, wherever it may be.
const STEP: f64 = 35.0;
/// Seconds with a value that either level needs.
const LEAST: usize = 10;
/// Seconds over which noise may hang together, and correlation below which it no longer does.
const LAGS: usize = 60;
const LOOSE: f64 = 0.1;

/// A step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    /// The first second of the new level, and the earliest and latest that it may be, as places in the series.
    pub(super) at: usize,
    pub(super) low: usize,
    pub(super) high: usize,
    /// Mean level before and after.
    pub(super) before: f64,
    pub(super) after: f64,
}

impl Change {
    /// The new level beside the old one: 0.7 is a loss of 30 %.
    pub(super) fn ratio(&self) -> f64 {
        self.after / self.before
    }
}

/// The step in `values`, one a second, missing ones NaN; `None` where there is none that stands out of the noise.
pub(super) fn change(values: &[f64]) -> Option<Change> {
    let kept: Vec<(usize, f64)> = values.iter().copied().enumerate().filter(|(_, value)| value.is_finite()).collect();
    let n = kept.len();
    if n < 2 * LEAST {
        return None;
    }
    // Relative to their mean, so that squares of large numbers lose no digits.
    let mean = kept.iter().map(|(_, value)| value).sum::<f64>() / n as f64;
    let mut sums = Vec::with_capacity(n + 1);
    sums.push(0.0);
    for (_, value) in &kept {
        sums.push(sums[sums.len() - 1] + (value - mean));
    }
    let explained = |k: usize| {
        let (left, right) = (k as f64, (n - k) as f64);
        let apart = sums[k] / left - (sums[n] - sums[k]) / right;
        left * right / n as f64 * apart * apart
    };
    let places = LEAST..=n - LEAST;
    let best = places.clone().max_by(|&a, &b| explained(a).total_cmp(&explained(b)))?;
    let (before, after) = (sums[best] / best as f64, (sums[n] - sums[best]) / (n - best) as f64);
    let rest: Vec<f64> = (0..n).map(|at| kept[at].1 - mean - if at < best { before } else { after }).collect();
    let noise = rest.iter().map(|r| r * r).sum::<f64>() / (n - 2) as f64 * hangs_together(&rest);
    let top = explained(best);
    if !(top.is_finite() && top > STEP * noise) {
        return None;
    }
    let may_be = |k: &usize| top - explained(*k) <= SURE * noise;
    let (low, high) = (places.clone().find(may_be)?, places.rev().find(may_be)?);
    // Between the last value of one level and the first of the other nothing is known.
    Some(Change {
        at: kept[best].0,
        low: kept[low - 1].0 + 1,
        high: kept[high].0,
        before: before + mean,
        after: after + mean,
    })
}

/// How many seconds of noise count as one: 1 for noise without memory.
fn hangs_together(rest: &[f64]) -> f64 {
    let power: f64 = rest.iter().map(|r| r * r).sum();
    if power <= 0.0 {
        return 1.0;
    }
    let with = |lag: usize| rest.iter().zip(&rest[lag..]).map(|(a, b)| a * b).sum::<f64>() / power;
    let lags = (1..=LAGS.min(rest.len() / 4)).map(with).take_while(|with| *with > LOOSE);
    1.0 + 2.0 * lags.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use muster_analysis::Chance;
    use proptest::prelude::*;

    use super::*;

    /// 200 seconds that step by `step` after 120, in noise of 1 whose seconds share `memory`.
    fn series(step: f64, memory: f64, chance: &mut Chance) -> Vec<f64> {
        let mut noise = 0.0;
        let mut next = |second: usize| {
            noise = memory * noise + (1.0 - memory * memory).sqrt() * chance.normal();
            noise + if second >= 120 { step } else { 0.0 }
        };
        (0..200).map(&mut next).collect()
    }

    #[test]
    fn the_interval_holds_the_true_second_and_is_narrow_where_the_step_is_large() {
        let mut chance = Chance::new(5);
        for (step, memory, least) in [(4.0, 0.0, 196), (2.0, 0.0, 192), (4.0, 0.7, 190)] {
            let (mut held, mut wide) = (0, 0);
            for _ in 0..200 {
                let Some(found) = change(&series(step, memory, &mut chance)) else { continue };
                held += usize::from((found.low..=found.high).contains(&120));
                wide += found.high - found.low;
            }
            assert!(held >= least, "{step} {memory}: {held} of 200");
            assert!(wide / 200 < 25, "{step} {memory}: {}", wide / 200);
        }
    }

    #[test]
    fn noise_alone_has_no_step_and_neither_has_a_series_that_is_too_short() {
        let mut chance = Chance::new(6);
        let none = (0..300).filter(|_| change(&series(0.0, 0.0, &mut chance)).is_some()).count();
        let with_memory = (0..300).filter(|_| change(&series(0.0, 0.9, &mut chance)).is_some()).count();
        assert!(none <= 3 && with_memory <= 9, "{none} {with_memory}");
        assert_eq!(change(&[1.0; 19]), None);
        assert_eq!(change(&[f64::NAN; 100]), None);
        assert_eq!(change(&[3.0; 100]), None);
    }

    #[test]
    fn what_is_missing_around_the_step_widens_the_interval_and_a_clean_step_has_one_second() {
        let mut values: Vec<f64> = (0..100).map(|at| if at < 50 { 1.0 } else { 2.0 }).collect();
        let clean = change(&values).unwrap();
        assert_eq!((clean.at, clean.low, clean.high), (50, 50, 50));
        assert!((clean.ratio() - 2.0).abs() < 1e-12);
        values[45..55].fill(f64::NAN);
        let torn = change(&values).unwrap();
        assert_eq!((torn.low, torn.high), (45, 55));
    }

    /// The same by trying every second, as it is printed.
    fn tried(values: &[f64]) -> Option<Change> {
        let kept: Vec<(usize, f64)> = values.iter().copied().enumerate().filter(|(_, v)| v.is_finite()).collect();
        let n = kept.len();
        let mean = |part: &[(usize, f64)]| part.iter().map(|(_, v)| v).sum::<f64>() / part.len() as f64;
        let around = |part: &[(usize, f64)], level: f64| part.iter().map(|(_, v)| (v - level).powi(2)).sum::<f64>();
        let left_of = |k: usize| around(&kept[..k], mean(&kept[..k])) + around(&kept[k..], mean(&kept[k..]));
        let places: Vec<usize> = (10..=n.checked_sub(10)?).collect();
        let best = places.iter().copied().min_by(|&a, &b| left_of(a).total_cmp(&left_of(b)))?;
        let (before, after) = (mean(&kept[..best]), mean(&kept[best..]));
        let rest: Vec<f64> =
            kept.iter().enumerate().map(|(at, (_, v))| v - if at < best { before } else { after }).collect();
        let power: f64 = rest.iter().map(|r| r * r).sum();
        let mut counts = 1.0;
        for lag in 1..=60.min(n / 4) {
            let with = (lag..n).map(|at| rest[at] * rest[at - lag]).sum::<f64>() / power;
            if with.is_nan() || with <= 0.1 {
                break;
            }
            counts += 2.0 * with;
        }
        let noise = power / (n - 2) as f64 * counts;
        let gain = |k: usize| around(&kept, mean(&kept)) - left_of(k);
        if gain(best) <= 35.0 * noise {
            return None;
        }
        let may_be: Vec<usize> = places.into_iter().filter(|k| gain(best) - gain(*k) <= 10.59 * noise).collect();
        let (first, last) = (may_be[0], *may_be.last()?);
        Some(Change { at: kept[best].0, low: kept[first - 1].0 + 1, high: kept[last].0, before, after })
    }

    proptest! {
        #[test]
        fn the_step_is_that_found_by_trying_every_second(
            seed in any::<u64>(),
            n in 15_usize..90,
            place in 0.1_f64..0.9,
            step in -6.0_f64..6.0,
            memory in 0.0_f64..0.9,
            missing in 0.0_f64..0.3,
        ) {
            let mut chance = Chance::new(seed);
            let mut noise = 0.0;
            let values: Vec<f64> = (0..n).map(|at| {
                noise = memory * noise + chance.normal();
                let level = if (at as f64) < place * n as f64 { 50.0 } else { 50.0 + step };
                if chance.unit() < missing { f64::NAN } else { level + noise }
            }).collect();
            match (change(&values), tried(&values)) {
                (Some(found), Some(expected)) => {
                    prop_assert_eq!((found.at, found.low, found.high), (expected.at, expected.low, expected.high));
                    prop_assert!((found.before - expected.before).abs() < 1e-9 && (found.after - expected.after).abs() < 1e-9);
                }
                (found, expected) => prop_assert_eq!(found, expected),
            }
        }
    }
}

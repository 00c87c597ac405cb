//! After how many steps a series repeats itself, if it does: the estimator SuperBench leaves open.
//!
//! Candidates are the local maxima of the autocorrelation of the detrended series; each is weighed by how much of
//! the variance its additive decomposition explains. Noise moves the maximum of a smooth wave by a few steps, so
//! every candidate climbs to where its own decomposition explains most. Multiples of a period explain as much as
//! it does, so the shortest good one is taken.

use super::decompose;

/// Median absolute deviations beyond which a step is a stall or warm-up and is pulled in.
const CLIP: f64 = 8.0;
/// Autocorrelation in units of `1/sqrt(K)` below which a maximum is noise.
const SIGNIFICANT: f64 = 3.0;
/// Candidates weighed, strongest first.
const CANDIDATES: usize = 30;
/// Share of the variance a period must explain.
const STRENGTH: f64 = 0.30;
/// Steps a candidate moves at most.
const CLIMB: usize = 16;
/// A shorter period is taken when it explains this share of what the best one does.
const NEARLY: f64 = 0.88;

/// Period of `series` in steps, between 2 and a quarter of its length; `None` when it does not repeat itself or is
/// shorter than 16 steps. Values must be finite. O(length squared / 4), a few milliseconds at 3,144 steps.
#[must_use]
pub fn period(series: &[f64]) -> Option<usize> {
    let longest = series.len() / 4;
    if longest < 4 {
        return None;
    }
    let clipped = clip(series);
    let mut strengths = vec![None; longest + 1];
    let mut strength =
        |p: usize| *strengths[p].get_or_insert_with(|| seasonal_strength(&clipped, p).unwrap_or_default());
    let weighed: Vec<(usize, f64)> = candidates(&detrend(&clipped, longest), longest)
        .into_iter()
        .map(|p| climb(p, longest, &mut strength))
        .collect();
    let best = weighed.iter().map(|(_, s)| *s).max_by(f64::total_cmp)?;
    if best < STRENGTH {
        return None;
    }
    weighed.into_iter().filter(|(_, s)| *s >= NEARLY * best).map(|(p, _)| p).min()
}

/// The nearest period from `from` on that explains more than both its neighbours.
fn climb(from: usize, longest: usize, strength: &mut impl FnMut(usize) -> f64) -> (usize, f64) {
    let mut at = (from, strength(from));
    for _ in 0..CLIMB {
        let beside = [at.0 - 1, at.0 + 1].into_iter().filter(|p| (2..=longest).contains(p));
        let best = beside.map(|p| (p, strength(p))).max_by(|a, b| a.1.total_cmp(&b.1));
        match best {
            Some(next) if next.1 > at.1 => at = next,
            _ => break,
        }
    }
    at
}

/// Share of the variance around the trend that repeats with `period`, 0 to 1: `1 - Var(R) c/(c-1) / Var(S+R)` with
/// `c` periods in the series, without which long periods fit any noise. `None` where the decomposition is.
#[must_use]
pub fn seasonal_strength(series: &[f64], period: usize) -> Option<f64> {
    let parts = decompose(series, period)?;
    let residual: Vec<f64> = parts.residual.iter().flatten().copied().collect();
    let both: Vec<f64> =
        parts.residual.iter().enumerate().filter_map(|(i, r)| r.map(|r| r + parts.seasonal[i % period])).collect();
    let cycles = series.len() as f64 / period as f64;
    let whole = variance(&both);
    if whole <= 0.0 || cycles <= 1.0 {
        return Some(0.0);
    }
    Some((1.0 - variance(&residual) * cycles / (cycles - 1.0) / whole).max(0.0))
}

fn variance(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n
}

/// Pulls stalls in to the median plus or minus eight MAD.
fn clip(series: &[f64]) -> Vec<f64> {
    let middle = median(series.to_vec());
    let mad = median(series.iter().map(|v| (v - middle).abs()).collect());
    // More than half of the steps equal: the rest is all there is to see.
    if mad <= 0.0 {
        return series.to_vec();
    }
    series.iter().map(|v| v.clamp(middle - CLIP * mad, middle + CLIP * mad)).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    crate::sample::median_of_sorted(&values)
}

/// Takes away a centred moving average of `window` steps, cut off at the ends.
fn detrend(series: &[f64], window: usize) -> Vec<f64> {
    let n = series.len();
    let level = series.iter().sum::<f64>() / n as f64;
    let mut prefix = vec![0.0];
    let mut sum = 0.0;
    for value in series {
        sum += value - level;
        prefix.push(sum);
    }
    let around = |i: usize| {
        let (low, high) = (i.saturating_sub(window / 2), (i + window / 2 + 1).min(n));
        (prefix[high] - prefix[low]) / (high - low) as f64
    };
    series.iter().enumerate().map(|(i, v)| v - level - around(i)).collect()
}

/// Local maxima of the autocorrelation above the noise, strongest first.
fn candidates(series: &[f64], longest: usize) -> Vec<usize> {
    let power: f64 = series.iter().map(|v| v * v).sum();
    if power <= 0.0 {
        return Vec::new();
    }
    let lags = 0..=longest + 1;
    let acf: Vec<f64> =
        lags.map(|lag| series.iter().zip(&series[lag..]).map(|(a, b)| a * b).sum::<f64>() / power).collect();
    let noise = SIGNIFICANT / (series.len() as f64).sqrt();
    let peak = |p: &usize| acf[*p] > noise && acf[*p] >= acf[p - 1] && acf[*p] >= acf[p + 1];
    let mut found: Vec<usize> = (2..=longest).filter(peak).collect();
    found.sort_by(|&a, &b| acf[b].total_cmp(&acf[a]).then(a.cmp(&b)));
    found.truncate(CANDIDATES);
    found
}

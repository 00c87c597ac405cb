//! What of a series is trend, what repeats, and what is left: the classical additive decomposition.

/// A series taken apart; `trend + seasonal + residual` is the series wherever the trend is defined.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// Centred moving average over one period; absent for half a period at both ends.
    pub trend: Vec<Option<f64>>,
    /// Mean deviation from the trend by phase, centred on zero; one value per phase.
    pub seasonal: Vec<f64>,
    /// What is left, where the trend is defined.
    pub residual: Vec<Option<f64>>,
}

/// Decomposes `series` at `period` steps, in the series' own unit: centred moving average of the period's length
/// (of twice its length with half weights at the ends when it is even), then means by phase. Equal to statsmodels'
/// `seasonal_decompose(model="additive")`. O(length). `None` for a period below 2 or a series under two periods.
#[must_use]
pub fn decompose(series: &[f64], period: usize) -> Option<Parts> {
    if period < 2 || series.len() < 2 * period {
        return None;
    }
    let trend = moving_average(series, period);
    let mut sums = vec![(0.0, 0.0); period];
    for (i, (value, trend)) in series.iter().zip(&trend).enumerate() {
        if let Some(trend) = trend {
            sums[i % period].0 += value - trend;
            sums[i % period].1 += 1.0;
        }
    }
    let mut seasonal: Vec<f64> = sums.into_iter().map(|(sum, n)| if n > 0.0 { sum / n } else { 0.0 }).collect();
    let centre = seasonal.iter().sum::<f64>() / period as f64;
    seasonal.iter_mut().for_each(|s| *s -= centre);
    let residual =
        series.iter().zip(&trend).enumerate().map(|(i, (v, t))| t.map(|t| v - t - seasonal[i % period])).collect();
    Some(Parts { trend, seasonal, residual })
}

/// One running sum; the mean is taken out first, so that it does not eat the digits.
fn moving_average(series: &[f64], period: usize) -> Vec<Option<f64>> {
    let n = series.len();
    let half = period / 2;
    let level = series.iter().sum::<f64>() / n as f64;
    let mut prefix = Vec::with_capacity(n + 1);
    prefix.push(0.0);
    let mut sum = 0.0;
    for value in series {
        sum += value - level;
        prefix.push(sum);
    }
    let over = |from: usize, to: usize| prefix[to] - prefix[from];
    (0..n)
        .map(|i| {
            let (low, high) = (i.checked_sub(half)?, i + half);
            if high >= n {
                return None;
            }
            let mean = if period % 2 == 1 {
                over(low, high + 1) / period as f64
            } else {
                (over(low, high) + over(low + 1, high + 1)) / (2 * period) as f64
            };
            Some(level + mean)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition with nothing shared: weights written out, every window summed anew.
    fn by_definition(series: &[f64], period: usize) -> Vec<Option<f64>> {
        let half = period / 2;
        (0..series.len())
            .map(|i| {
                if i < half || i + half >= series.len() {
                    return None;
                }
                let window = &series[i - half..=i + half];
                let weight = |k: usize| match period % 2 {
                    0 if k == 0 || k == period => 0.5,
                    _ => 1.0,
                };
                Some(window.iter().enumerate().map(|(k, v)| weight(k) * v).sum::<f64>() / period as f64)
            })
            .collect()
    }

    proptest! {
        #[test]
        fn the_running_sum_equals_the_definition(
            series in proptest::collection::vec(0.0f64..1e4, 8..120), period in 2usize..12,
        ) {
            prop_assume!(series.len() >= 2 * period);
            let parts = decompose(&series, period).unwrap();
            let trend = by_definition(&series, period);
            for i in 0..series.len() {
                prop_assert_eq!(parts.trend[i].is_some(), trend[i].is_some());
                if let (Some(a), Some(b), Some(left)) = (parts.trend[i], trend[i], parts.residual[i]) {
                    prop_assert!((a - b).abs() < 1e-8, "{} {}", a, b);
                    prop_assert!((a + parts.seasonal[i % period] + left - series[i]).abs() < 1e-8);
                }
            }
            // Means by phase over the definition's own trend, centred.
            let mean = |phase: usize| {
                let own: Vec<f64> = (0..series.len())
                    .filter(|i| i % period == phase)
                    .filter_map(|i| trend[i].map(|t| series[i] - t))
                    .collect();
                own.iter().sum::<f64>() / own.len().max(1) as f64
            };
            let means: Vec<f64> = (0..period).map(mean).collect();
            let centre = means.iter().sum::<f64>() / period as f64;
            for (phase, mean) in means.iter().enumerate() {
                prop_assert!((parts.seasonal[phase] - (mean - centre)).abs() < 1e-8);
            }
        }
    }

    #[test]
    fn too_short_a_series_has_no_parts() {
        assert_eq!(decompose(&[1.0; 9], 5), None);
        assert_eq!(decompose(&[1.0; 9], 1), None);
        assert!(decompose(&[1.0; 10], 5).is_some());
    }
}

//! How sure is a share, and a count? 95 % intervals.

use statrs::distribution::{ContinuousCDF, Gamma};

/// Standard normal deviate of a two-sided interval of 95 %.
const DEVIATE: f64 = 1.959_963_984_540_054;

/// Wilson's interval (1927) of `count` out of `all`; everything between 0 and 1 where there are none.
pub(super) fn wilson(count: usize, all: usize) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    let (n, share, z2) = (all as f64, count as f64 / all as f64, DEVIATE * DEVIATE);
    let middle = share + z2 / (2.0 * n);
    let half = DEVIATE * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    let low = if count == 0 { 0.0 } else { (middle - half) / (1.0 + z2 / n) };
    let high = if count == all { 1.0 } else { (middle + half) / (1.0 + z2 / n) };
    (low, high)
}

/// Garwood's interval (1936) of the mean of a Poisson count.
pub(super) fn poisson(count: usize) -> (f64, f64) {
    let quantile = |shape: f64, share: f64| Gamma::new(shape, 1.0).map_or(f64::NAN, |law| law.inverse_cdf(share));
    let low = if count == 0 { 0.0 } else { quantile(count as f64, 0.025) };
    (low, quantile(count as f64 + 1.0, 0.975))
}

/// Half the width of a 95 % interval of a mean, from the spread of `values`; nothing from fewer than two.
pub(super) fn of_mean(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let deviate = statrs::distribution::StudentsT::new(0.0, 1.0, n - 1.0).ok()?.inverse_cdf(0.975);
    Some(deviate * (variance / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: (f64, f64), expected: (f64, f64)) {
        assert!((found.0 - expected.0).abs() < 1e-3 && (found.1 - expected.1).abs() < 1e-3, "{found:?} {expected:?}");
    }

    #[test]
    fn intervals_are_the_published_ones() {
        // Newcombe (1998), table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        near(wilson(81, 263), (0.2553, 0.3662));
        near(wilson(15, 148), (0.0624, 0.1605));
        near(wilson(0, 20), (0.0, 0.1611));
        near(wilson(1, 29), (0.0061, 0.1718));
        // Garwood (1936).
        near(poisson(0), (0.0, 3.6889));
        near(poisson(1), (0.0253, 5.5716));
        near(poisson(10), (4.7954, 18.3904));
        assert!((of_mean(&[1.0, 2.0, 3.0]).unwrap() - 4.3027 / 3.0_f64.sqrt()).abs() < 1e-3);
        assert_eq!(of_mean(&[1.0]), None);
    }

    #[test]
    fn the_ends_of_wilson_s_interval_are_where_the_count_is_as_far_off_as_may_be() {
        for (count, all) in [(1, 3), (7, 10), (81, 263), (250, 251)] {
            let (n, share) = (f64::from(all), f64::from(count) / f64::from(all));
            let (low, high) = wilson(count as usize, all as usize);
            assert!(low < share && share < high);
            for end in [low, high] {
                let deviates = (share - end).abs() / (end * (1.0 - end) / n).sqrt();
                assert!((deviates - 1.959_964).abs() < 1e-6, "{count} of {all}: {deviates}");
            }
        }
        assert_eq!((wilson(0, 0), wilson(5, 5).1, wilson(0, 5).0), ((0.0, 1.0), 1.0, 0.0));
    }

    #[test]
    fn so_many_or_more_are_as_rare_at_the_low_end_as_so_many_or_fewer_are_at_the_high_one() {
        let at_most = |count: usize, mean: f64| {
            let mut term = (-mean).exp();
            let mut sum = term;
            for k in 1..=count {
                term *= mean / k as f64;
                sum += term;
            }
            sum
        };
        for count in [1, 2, 5, 30] {
            let (low, high) = poisson(count);
            assert!(
                (1.0 - at_most(count - 1, low) - 0.025).abs() < 1e-6 && (at_most(count, high) - 0.025).abs() < 1e-6
            );
        }
    }

    #[test]
    fn the_error_of_a_mean_is_student_s() {
        // Two values that are two apart have a standard error of one.
        for (values, error) in [(&[1.0, 3.0][..], 12.706), (&[2.0, 4.0, 6.0], 4.3027 * 2.0 / 3.0_f64.sqrt())] {
            assert!((of_mean(values).unwrap() - error).abs() < 1e-3, "{values:?}");
        }
        let ten: Vec<f64> = (0..10).map(f64::from).collect();
        assert!((of_mean(&ten).unwrap() - 2.2622 * (55.0_f64 / 6.0 / 10.0).sqrt()).abs() < 1e-3);
        assert_eq!(of_mean(&[]), None);
    }
}

//! How little may a share be, given few cases? The lower quantile of its Jeffreys posterior.

use statrs::distribution::{Beta, ContinuousCDF};

/// Value that the share behind `found` of `of` cases exceeds with probability `1 - quantile`: the quantile of
/// Beta(1/2 + found, 1/2 + of - found) (Jeffreys 1946; Brown, Cai and DasGupta 2001). Both may be fractions, as
/// weighted counts are. 0 when nothing was found.
#[must_use]
pub fn lower_quantile(found: f64, of: f64, quantile: f64) -> f64 {
    if found <= 0.0 || of <= 0.0 {
        return 0.0;
    }
    let missed = (of - found).max(0.0);
    Beta::new(0.5 + found, 0.5 + missed).map_or(0.0, |b| b.inverse_cdf(quantile.clamp(1e-6, 1.0 - 1e-6)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_beta_distribution() {
        // R qbeta(0.025, 0.5 + x, 0.5 + 10 - x) for x = 5 and 9 (Brown, Cai and DasGupta 2001, Jeffreys interval).
        assert!((lower_quantile(5.0, 10.0, 0.025) - 0.2235).abs() < 5e-4, "{}", lower_quantile(5.0, 10.0, 0.025));
        assert!((lower_quantile(9.0, 10.0, 0.025) - 0.6187).abs() < 2e-3, "{}", lower_quantile(9.0, 10.0, 0.025));
        assert_eq!(lower_quantile(0.0, 10.0, 0.2), 0.0);
        assert!(lower_quantile(1000.0, 1000.0, 0.2) > 0.999);
        let rising: Vec<f64> = (0..=20).map(|k| lower_quantile(f64::from(k), 20.0, 0.2)).collect();
        assert!(rising.windows(2).all(|w| w[0] < w[1]));
    }
}

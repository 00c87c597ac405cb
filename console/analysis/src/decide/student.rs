//! Upper quantiles of Student's t.

use statrs::function::beta::{beta_reg, ln_beta};

/// Chance that a t-distributed value with `df` degrees of freedom is above `t`, for `t >= 0`.
pub(super) fn above(t: f64, df: f64) -> f64 {
    if t <= 0.0 {
        return 0.5;
    }
    0.5 * beta_reg(df / 2.0, 0.5, df / t.mul_add(t, df))
}

/// The value that is exceeded with probability `p`, for `0 < p < 0.5`: Newton's method on logarithms, where the tail
/// is nearly a straight line, kept between bounds.
pub(crate) fn quantile(p: f64, df: f64) -> f64 {
    let (mut low, mut high) = (1e-3_f64.ln(), 1e18_f64.ln());
    let mut at = 0.0_f64;
    for _ in 0..200 {
        let t = at.exp();
        let tail = above(t, df);
        let miss = tail.ln() - p.ln();
        if miss.abs() < 1e-13 {
            break;
        }
        if miss > 0.0 {
            low = at
        } else {
            high = at
        }
        let density = (-0.5 * (df + 1.0) * (t * t / df).ln_1p() - 0.5 * df.ln() - ln_beta(df / 2.0, 0.5)).exp();
        let next = at + miss * tail / (density * t);
        let next = if next > low && next < high { next } else { low.midpoint(high) };
        if (next - at).abs() < 1e-15 * at.abs().max(1.0) {
            break;
        }
        at = next;
    }
    at.exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Two degrees of freedom have a closed form; the others are from printed tables.
        for p in [0.1, 1e-3, 1e-9, 1e-15_f64] {
            let exact = (1.0 - 2.0 * p) / (2.0 * p * (1.0 - p)).sqrt();
            assert!((quantile(p, 2.0) / exact - 1.0).abs() < 1e-9, "{p}: {} {exact}", quantile(p, 2.0));
        }
        for (p, df, t) in [(0.05, 10.0, 1.812_461), (0.005, 3.0, 5.840_909), (0.0005, 30.0, 3.645_959)] {
            assert!((quantile(p, df) - t).abs() < 1e-5, "{p} {df}");
        }
    }
}

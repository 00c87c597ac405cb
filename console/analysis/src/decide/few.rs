//! How many slow metrics exclude chance, where each was measured with so few steps that a stall may be its value.
//!
//! A half-second stall of the operating system *is* a half-speed value. One such metric convicts nobody; so many of a
//! node's metrics at once that stalls do not explain it, at the rate the other nodes show, do.

use statrs::function::beta::beta_reg;

/// A node with its metrics of few steps.
pub(super) struct Witnesses {
    /// Metrics that would have been seen slow.
    pub(super) metrics: usize,
    /// Chance that one of them is slow by a stall.
    pub(super) rate: f64,
}

/// Chance that a metric of `steps` (3 to 5) has a stalled median.
pub(super) fn stalled(steps: u32, rate: f64) -> f64 {
    at_least(steps as usize, steps.div_ceil(2) as usize, rate)
}

/// Chance of at least `k` successes of `n`, each with chance `rate`.
pub(super) fn at_least(n: usize, k: usize, rate: f64) -> f64 {
    if k == 0 {
        return 1.0;
    }
    if k > n {
        return 0.0;
    }
    beta_reg(k as f64, (n - k + 1) as f64, rate)
}

impl Witnesses {
    /// Fewest slow metrics that have, on any of `nodes`, a chance of at most `chance`; one more than there are if none.
    pub(super) fn needed(&self, nodes: usize, chance: f64) -> usize {
        // The tail falls with every witness: halve.
        let (mut low, mut high) = (1, self.metrics + 1);
        while low < high {
            let middle = low.midpoint(high);
            if nodes as f64 * at_least(self.metrics, middle, self.rate) <= chance {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}

/// Rate of stalls, where the others show `seen` of them in `looks`: its upper limit, and no less than `least`.
pub(super) fn upper_rate(seen: usize, looks: usize, least: f64) -> f64 {
    let seen = seen as f64;
    ((seen + 1.65 * seen.sqrt()) / looks.max(1) as f64).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binomial_tail_is_the_sum_of_its_terms() {
        // 10 * 0.3^4 ... by hand: P(Bin(5, 0.3) >= 4) = 5 * 0.3^4 * 0.7 + 0.3^5.
        assert!((at_least(5, 4, 0.3) - 0.030_78).abs() < 1e-12);
        assert_eq!([at_least(5, 0, 0.3), at_least(5, 6, 0.3)], [1.0, 0.0]);
        for steps in 2..=7_i32 {
            for rate in [0.01, 0.3, 0.9_f64] {
                let none = (1.0 - rate).powi(steps);
                let one = f64::from(steps) * rate * (1.0 - rate).powi(steps - 1);
                assert!((at_least(steps as usize, 2, rate) - (1.0 - none - one)).abs() < 1e-12, "{steps} {rate}");
            }
        }
        assert_eq!([at_least(0, 2, 0.5), at_least(1, 2, 0.5)], [0.0; 2]);
    }

    #[test]
    fn one_slow_value_convicts_nobody_and_three_of_eight_do() {
        let node = Witnesses { metrics: 8, rate: 0.003 };
        assert_eq!(node.needed(16, 4e-4), 3);
        assert_eq!(Witnesses { metrics: 1, rate: 0.003 }.needed(16, 4e-4), 2);
    }
}

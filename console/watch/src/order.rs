//! Medians and quantiles that leave missing values (NaN) out.

/// 1.4826 times the median absolute deviation of normal noise is its standard deviation.
pub(super) const NORMAL: f64 = 1.4826;
/// Normal noise exceeds 1.645 standard deviations in one value of ten, both sides together.
const TAIL: f64 = 1.645;

/// Median of the finite `values`, the mean of the middle two where their number is even; NaN without any. Reorders them.
pub(super) fn median(values: &mut [f64]) -> f64 {
    let n = finite_first(values);
    middle(&mut values[..n])
}

/// Standard deviation of noise whose absolute deviations are `values`: from their median or from their upper tail, whichever is
/// larger, so that a sensor with rare large swings is not taken for a quiet one. NaN without values. Reorders them.
pub(super) fn spread(values: &mut [f64]) -> f64 {
    let n = finite_first(values);
    if n == 0 {
        return f64::NAN;
    }
    let values = &mut values[..n];
    let middle = middle(values);
    // The lower quantile: index floor(0.9 (n - 1)), as the figures of docs/WATCH.md were made.
    let at = 9 * (n - 1) / 10;
    let (_, tail, _) = values.select_nth_unstable_by(at, f64::total_cmp);
    (NORMAL * middle).max(*tail / TAIL)
}

/// Moves finite values to the front; how many there are.
fn finite_first(values: &mut [f64]) -> usize {
    let mut n = 0;
    for at in 0..values.len() {
        if values[at].is_finite() {
            values.swap(at, n);
            n += 1;
        }
    }
    n
}

fn middle(values: &mut [f64]) -> f64 {
    let n = values.len();
    if n == 0 {
        return f64::NAN;
    }
    let (below, high, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    let high = *high;
    if n % 2 == 1 {
        return high;
    }
    let low = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    f64::midpoint(low, high)
}

/// For each of `values` the median of all others, in O(n log n); NaN where fewer than `least` others have a value. A missing value
/// gets the median of all that there are.
#[derive(Debug, Default)]
pub(super) struct LeaveOneOut {
    order: Vec<u32>,
    sorted: Vec<f64>,
}

impl LeaveOneOut {
    /// Writes them to `out`.
    pub(super) fn medians(&mut self, values: &[f64], least: usize, out: &mut Vec<f64>) {
        self.order.clear();
        self.order.extend((0..values.len() as u32).filter(|&at| values[at as usize].is_finite()));
        self.order.sort_unstable_by(|&a, &b| values[a as usize].total_cmp(&values[b as usize]));
        self.sorted.clear();
        self.sorted.extend(self.order.iter().map(|&at| values[at as usize]));
        let n = self.sorted.len();
        out.clear();
        out.resize(values.len(), if n < least.max(1) { f64::NAN } else { middle_of(&self.sorted, n, n) });
        let enough = n > least && n > 1;
        for (rank, &at) in self.order.iter().enumerate() {
            out[at as usize] = if enough { middle_of(&self.sorted, n - 1, rank) } else { f64::NAN };
        }
    }
}

/// Median of `n` of the sorted values, of which the one at `without` is left out.
fn middle_of(sorted: &[f64], n: usize, without: usize) -> f64 {
    let value = |at: usize| sorted[at + usize::from(without <= at)];
    f64::midpoint(value((n - 1) / 2), value(n / 2))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slow(values: impl Iterator<Item = f64>) -> f64 {
        let mut all: Vec<f64> = values.filter(|v| v.is_finite()).collect();
        all.sort_by(f64::total_cmp);
        let n = all.len();
        if n == 0 { f64::NAN } else { f64::midpoint(all[(n - 1) / 2], all[n / 2]) }
    }

    #[test]
    fn missing_values_are_left_out_of_a_median() {
        assert!((median(&mut [3.0, f64::NAN, 1.0, f64::INFINITY, 2.0]) - 2.0).abs() < 1e-12);
        assert!((median(&mut [4.0, 1.0]) - 2.5).abs() < 1e-12);
        assert!(median(&mut [f64::NAN]).is_nan() && spread(&mut []).is_nan());
    }

    #[test]
    fn rare_large_swings_widen_the_spread() {
        let mut quiet = vec![0.01; 60];
        let mut swings = quiet.clone();
        swings[..8].fill(0.5);
        assert!(spread(&mut swings) > 10.0 * spread(&mut quiet));
    }

    proptest! {
        #[test]
        fn every_median_is_that_of_the_others(
            values in proptest::collection::vec(prop_oneof![-9.0..9.0, Just(f64::NAN), Just(1.0)], 0..12),
            least in 0_usize..4,
        ) {
            let mut found = Vec::new();
            LeaveOneOut::default().medians(&values, least, &mut found);
            for (at, one) in found.iter().enumerate() {
                let others = || values.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, v)| *v);
                let enough = others().filter(|v| v.is_finite()).count() >= least.max(1);
                let expected = if enough { slow(others()) } else { f64::NAN };
                prop_assert!(*one == expected || (one.is_nan() && expected.is_nan()), "{one} {expected}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_median_is_that_of_sorted_values_and_a_spread_that_or_their_upper_tail(
            values in proptest::collection::vec(prop_oneof![0.0..9.0, Just(f64::NAN), Just(1.0), Just(f64::INFINITY)], 0..40),
        ) {
            let same = |a: f64, b: f64| (a - b).abs() < 1e-12 || (a.is_nan() && b.is_nan());
            let expected = slow(values.iter().copied());
            prop_assert!(same(median(&mut values.clone()), expected));
            let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
            sorted.sort_by(f64::total_cmp);
            // Nine of ten values, rounded down, are below it.
            let tail = sorted.len().checked_sub(1).map_or(f64::NAN, |last| sorted[last * 9 / 10]);
            prop_assert!(same(spread(&mut values.clone()), (1.4826 * expected).max(tail / 1.645)));
        }
    }
}

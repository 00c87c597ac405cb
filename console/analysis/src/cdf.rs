//! Which points of a CDF a chart needs: the corners of its steps, thinned to what a screen can show.

use crate::Sample;

/// Corners `(value, share of steps <= value)` of the empirical CDF, at most `max_points` of them, first and
/// last always among them. Both coordinates ascend.
#[must_use]
pub fn cdf_points(sample: &Sample, max_points: usize) -> Vec<(f64, f64)> {
    let values = sample.values();
    let n = values.len();
    let share = |i: usize| (i + 1) as f64 / n as f64;
    if n <= max_points {
        return (0..n).map(|i| (values[i], share(i))).collect();
    }
    let last = n - 1;
    match max_points {
        0 => Vec::new(),
        1 => vec![(values[last], 1.0)],
        // Evenly by rank: every stretch of the vertical axis keeps the same number of points.
        k => (0..k).map(|j| j * last / (k - 1)).map(|i| (values[i], share(i))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn points_ascend_fit_and_keep_both_ends(values in proptest::collection::vec(0.0f64..1e3, 1..200), max in 2usize..50) {
            let sample = Sample::new(&values).unwrap();
            let points = cdf_points(&sample, max);
            prop_assert!(points.len() <= max && !points.is_empty());
            prop_assert!(points.windows(2).all(|p| p[0].0 <= p[1].0 && p[0].1 < p[1].1));
            prop_assert_eq!(points[0].0, sample.values()[0]);
            prop_assert_eq!(*points.last().unwrap(), (sample.values()[sample.len() - 1], 1.0));
        }
    }

    #[test]
    fn no_room_gives_no_points() {
        let sample = Sample::new(&[1.0, 2.0, 3.0]).unwrap();
        assert!(cdf_points(&sample, 0).is_empty());
        assert_eq!(cdf_points(&sample, 1), [(3.0, 1.0)]);
    }
}

//! Which points of a CDF a chart needs: the corners of its steps, thinned to what a screen can show; and where the CDFs of many
//! nodes lie.

use std::collections::BTreeMap;

use crate::Sample;

/// Levels at which a band is known.
const LEVELS: usize = 64;

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

/// The smallest and the largest value over all samples at each of 64 equally spaced levels of their CDFs; `None` for fewer than
/// two samples.
#[must_use]
pub fn cdf_band<'s>(samples: impl IntoIterator<Item = &'s Sample>) -> Option<[Vec<f64>; 2]> {
    // Samples of one length share their ranks, which are few where the samples are short.
    let mut by_length: BTreeMap<usize, [Vec<f64>; 2]> = BTreeMap::new();
    let mut count = 0;
    for values in samples.into_iter().map(Sample::values) {
        let ranks = values.len().min(LEVELS);
        let new = || [vec![f64::INFINITY; ranks], vec![f64::NEG_INFINITY; ranks]];
        let [least, most] = by_length.entry(values.len()).or_insert_with(new);
        for (at, (least, most)) in least.iter_mut().zip(most).enumerate() {
            let value = values[((at + 1) * values.len()).div_ceil(ranks) - 1];
            (*least, *most) = (least.min(value), most.max(value));
        }
        count += 1;
    }
    let at = |edge: usize, pick: fn(f64, f64) -> f64, level: usize| {
        let of = |edges: &[Vec<f64>; 2]| edges[edge][(level * edges[edge].len()).div_ceil(LEVELS) - 1];
        by_length.values().map(of).reduce(pick)
    };
    let edge = |edge: usize, pick| (1..=LEVELS).filter_map(|level| at(edge, pick, level)).collect();
    (count >= 2).then(|| [edge(0, f64::min), edge(1, f64::max)])
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

    proptest! {
        #[test]
        fn a_band_holds_every_sample_and_touches_one_at_every_level(
            all in proptest::collection::vec(proptest::collection::vec(0.0f64..1e3, 1..200), 2..9)
        ) {
            let samples: Vec<Sample> = all.iter().map(|values| Sample::new(values).unwrap()).collect();
            let [least, most] = cdf_band(&samples).unwrap();
            for level in 1..=LEVELS {
                let value = |sample: &Sample| sample.values()[(level * sample.len()).div_ceil(LEVELS) - 1];
                let expected = samples.iter().map(value).fold([f64::INFINITY, 0.0], |[a, b], v| [a.min(v), b.max(v)]);
                prop_assert_eq!([least[level - 1], most[level - 1]], expected);
            }
        }
    }

    #[test]
    fn one_sample_is_no_band() {
        assert_eq!(cdf_band(&[Sample::new(&[1.0, 2.0]).unwrap()]), None);
    }

    #[test]
    fn no_room_gives_no_points() {
        let sample = Sample::new(&[1.0, 2.0, 3.0]).unwrap();
        assert!(cdf_points(&sample, 0).is_empty());
        assert_eq!(cdf_points(&sample, 1), [(3.0, 1.0)]);
    }
}

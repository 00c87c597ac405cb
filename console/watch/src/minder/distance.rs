//! Which of some points is farthest from all others, and how far?
//!
//! Minder sums the Euclidean distances of every pair, which grows with the square of the machines. Here two bounds of a point's mean distance
//! d to all points, itself included, come from the mean point m and the mean square V of the distances to it, in linear time: |x − m| <= d (the
//! triangle inequality, averaged) and d² <= |x − m|² + V (Jensen; the mean of squared distances is exactly that sum). Both grow with |x − m|. So
//! points are tried in falling order of |x − m|, each with its exact distances, until no bound of the rest can win: the same point and the
//! same number as of all pairs, and few points are tried where one is far from the rest.

/// Points of `width` numbers each, one after another: the place of the farthest and its mean distance to all points. Of equals, the one that is
/// farther from the mean point, then the first. `None` without a point.
pub(super) fn farthest(points: &[f64], width: usize) -> Option<(usize, f64)> {
    let count = points.len() / width.max(1);
    if count == 0 {
        return None;
    }
    let point = |at: usize| &points[at * width..(at + 1) * width];
    let mut middle = vec![0.0; width];
    for at in 0..count {
        middle.iter_mut().zip(point(at)).for_each(|(sum, x)| *sum += x / count as f64);
    }
    let mut order: Vec<(usize, f64)> = (0..count).map(|at| (at, squared(point(at), &middle))).collect();
    let spread = order.iter().map(|(_, squared)| squared).sum::<f64>() / count as f64;
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut best = (order[0].0, f64::NEG_INFINITY);
    for (at, from_middle) in order {
        if (from_middle + spread).sqrt() <= best.1 {
            break;
        }
        let exact = mean_distance(points, point(at));
        if exact > best.1 {
            best = (at, exact);
        }
    }
    Some(best)
}

/// Mean distance of one point to all.
fn mean_distance(points: &[f64], one: &[f64]) -> f64 {
    let sum: f64 = points.chunks_exact(one.len()).map(|other| squared(one, other).sqrt()).sum();
    sum / (points.len() / one.len()) as f64
}

fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use muster_analysis::Chance;

    /// All pairs, as printed.
    fn by_pairs(points: &[f64], width: usize) -> (usize, f64) {
        let count = points.len() / width;
        let mean = |at: usize| mean_distance(points, &points[at * width..(at + 1) * width]);
        (0..count)
            .map(|at| (at, mean(at)))
            .fold((0, f64::NEG_INFINITY), |best, one| if one.1 > best.1 { one } else { best })
    }

    proptest! {
        #[test]
        fn the_farthest_point_is_that_of_all_pairs(seed in 0_u64..1_000_000, count in 1_usize..90, apart in 0.0_f64..4.0) {
            let mut chance = Chance::new(seed);
            let mut points: Vec<f64> = (0..count * 8).map(|_| chance.normal()).collect();
            points[..8].iter_mut().for_each(|x| *x += apart);
            let (expected, found) = (by_pairs(&points, 8), farthest(&points, 8).unwrap());
            prop_assert!((expected.1 - found.1).abs() < 1e-12, "{expected:?} {found:?}");
            // Of two points neither is farther than the other.
            prop_assert!(count <= 2 || expected.0 == found.0);
        }
    }

    #[test]
    fn equal_points_have_no_distance_and_none_has_none() {
        assert_eq!(farthest(&[1.0; 24], 8).unwrap().1, 0.0);
        assert_eq!(farthest(&[], 8), None);
    }

    #[test]
    fn of_points_that_are_equally_far_the_first_is_taken_and_its_distance_to_itself_counts() {
        assert_eq!(farthest(&[0.0, 1.0], 1), Some((0, 0.5)));
        assert_eq!(farthest(&[0.0, 0.0, 3.0, 4.0], 2), Some((0, 2.5)));
        assert_eq!(farthest(&[2.0, 7.0, 1.0, 0.0], 1), Some((1, 18.0 / 4.0)));
        assert_eq!(farthest(&[5.0], 1), Some((0, 0.0)));
    }
}

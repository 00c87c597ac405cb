//! How far two samples lie apart: the distance between their empirical CDFs of SuperBench (ATC'24, eq. 2-4).
//!
//! `F(x)` is the share of steps at least as bad as `x`: the CDF where higher is better, and its mirror
//! `P(X >= x)` where lower is better. (The paper's "replace max by min" for latencies means this mirror: taken
//! literally the integrand turns negative and is divided by zero.) With it one formula serves both directions:
//!
//! ```text
//! raw(A,B) = integral of |Fa-Fb| / max(Fa,Fb,tau)          one(O,C) = the part where O is the worse one
//! similarity = 1 - min(1, raw / max(median A, median B))   two scalars: exactly min/max
//! ```

use muster_wire::Direction;

use crate::Sample;

/// The two halves of the raw distance, in the metric's unit. Their sum is symmetric and a metric (triangle
/// inequality); the normalised distance is not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// Where the first sample is worse.
    pub first_worse: f64,
    /// Where the second sample is worse.
    pub second_worse: f64,
}

impl Parts {
    /// Both halves together.
    #[must_use]
    pub fn raw(self) -> f64 {
        self.first_worse + self.second_worse
    }
}

/// Similarity of two samples, 0 to 1; 1 means equal distributions. Symmetric and free of scale.
#[must_use]
pub fn similarity(a: &Sample, b: &Sample, dir: Direction, tau: f64) -> f64 {
    1.0 - normalised(parts(a, b, dir, tau).raw(), a, b)
}

/// Similarity that counts only where `observed` is worse than `criterion`: a better node scores 1.
#[must_use]
pub fn one_sided(observed: &Sample, criterion: &Sample, dir: Direction, tau: f64) -> f64 {
    1.0 - normalised(parts(observed, criterion, dir, tau).first_worse, observed, criterion)
}

/// Normalised distances of `observed` from `criterion` (0 to 1): where it is worse, and where it is better.
pub(crate) fn both_sided(observed: &Sample, criterion: &Sample, dir: Direction, tau: f64) -> [f64; 2] {
    let Parts { first_worse, second_worse } = parts(observed, criterion, dir, tau);
    [first_worse, second_worse].map(|distance| normalised(distance, observed, criterion))
}

/// Rounding of a similarity: 0.095 over 0.1 is 0.95 in any unit.
const ROUNDING: f64 = 1e-12;

/// Whether a similarity makes a node a defect: at alpha or below it, as SuperBench's Algorithm 2 says. For single
/// values a rate of at most `alpha` times the criterion's, or a time of at least the criterion's over `alpha`. A node
/// that is as good as the criterion is none, whatever alpha.
#[must_use]
pub fn is_defect(similarity: f64, alpha: f64) -> bool {
    similarity <= alpha + ROUNDING && similarity < 1.0
}

fn normalised(distance: f64, a: &Sample, b: &Sample) -> f64 {
    if distance <= 0.0 {
        return 0.0;
    }
    // The median, not the largest value: one glitch-high step must not hide a slow node.
    let scale = a.median().max(b.median());
    if scale > 0.0 { (distance / scale).min(1.0) } else { 1.0 }
}

/// Raw distance between two samples, split by which one is worse. O(len a + len b).
#[must_use]
pub fn parts(a: &Sample, b: &Sample, dir: Direction, tau: f64) -> Parts {
    if let ([x], [y]) = (a.values(), b.values()) {
        return two_values(*x, *y, dir, tau);
    }
    let (a, b) = (a.values(), b.values());
    let (na, nb) = (a.len(), b.len());
    match dir {
        Direction::HigherIsBetter => sweep((na, |at| a[at]), (nb, |at| b[at]), tau),
        // Badness grows downwards, so the walk goes from the worst (largest) value with its sign turned.
        Direction::LowerIsBetter => sweep((na, |at| -a[na - 1 - at]), (nb, |at| -b[nb - 1 - at]), tau),
    }
}

/// Between two values one CDF is 1 and the other 0.
fn two_values(x: f64, y: f64, dir: Direction, tau: f64) -> Parts {
    let apart = (x - y).abs() / tau.max(1.0);
    let first_worse = if dir == Direction::HigherIsBetter { x < y } else { x > y };
    if first_worse {
        Parts { first_worse: apart, second_worse: 0.0 }
    } else {
        Parts { first_worse: 0.0, second_worse: apart }
    }
}

/// Walks the union of both breakpoints once; the CDFs are constant between them. Each sample is its length and its values,
/// ascending.
fn sweep((na, a): (usize, impl Fn(usize) -> f64), (nb, b): (usize, impl Fn(usize) -> f64), tau: f64) -> Parts {
    let (mut seen_a, mut seen_b) = (0_usize, 0_usize);
    let (wa, wb) = (1.0 / na as f64, 1.0 / nb as f64);
    let mut sum = Parts { first_worse: 0.0, second_worse: 0.0 };
    let mut last = f64::NEG_INFINITY;
    while seen_a < na || seen_b < nb {
        let of_a = if seen_a < na { a(seen_a) } else { f64::INFINITY };
        let of_b = if seen_b < nb { b(seen_b) } else { f64::INFINITY };
        let next = of_a.min(of_b);
        if seen_a + seen_b > 0 && next > last {
            let (fa, fb) = (seen_a as f64 * wa, seen_b as f64 * wb);
            let share = (next - last) / fa.max(fb).max(tau);
            // Compared as integers: equal shares of unequal lengths must not differ by rounding.
            match (seen_a * nb).cmp(&(seen_b * na)) {
                std::cmp::Ordering::Greater => sum.first_worse += (fa - fb) * share,
                std::cmp::Ordering::Less => sum.second_worse += (fb - fa) * share,
                std::cmp::Ordering::Equal => {}
            }
        }
        last = next;
        while seen_a < na && a(seen_a) <= next {
            seen_a += 1;
        }
        while seen_b < nb && b(seen_b) <= next {
            seen_b += 1;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_wire::Direction::{HigherIsBetter, LowerIsBetter};
    use proptest::prelude::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values).unwrap()
    }

    /// The definition evaluated point by point, with nothing shared with the code under test.
    fn by_definition(a: &[f64], b: &[f64], dir: Direction, tau: f64) -> Parts {
        let share = |s: &[f64], x: f64| {
            let worse = s.iter().filter(|&&v| if dir == HigherIsBetter { v <= x } else { v >= x }).count();
            worse as f64 / s.len() as f64
        };
        let mut cuts: Vec<f64> = a.iter().chain(b).copied().collect();
        cuts.sort_by(f64::total_cmp);
        let mut out = Parts { first_worse: 0.0, second_worse: 0.0 };
        for pair in cuts.windows(2) {
            let middle = f64::midpoint(pair[0], pair[1]);
            let (fa, fb) = (share(a, middle), share(b, middle));
            let denominator = fa.max(fb).max(tau);
            if denominator > 0.0 {
                out.first_worse += (fa - fb).max(0.0) / denominator * (pair[1] - pair[0]);
                out.second_worse += (fb - fa).max(0.0) / denominator * (pair[1] - pair[0]);
            }
        }
        out
    }

    #[test]
    fn two_scalars_are_as_similar_as_the_smaller_share_of_the_larger() {
        for dir in [HigherIsBetter, LowerIsBetter] {
            assert_eq!(similarity(&sample(&[80.0]), &sample(&[100.0]), dir, 0.0), 0.8);
        }
        assert_eq!(one_sided(&sample(&[80.0]), &sample(&[100.0]), HigherIsBetter, 0.0), 0.8);
        assert_eq!(one_sided(&sample(&[80.0]), &sample(&[100.0]), LowerIsBetter, 0.0), 1.0);
        assert_eq!(one_sided(&sample(&[100.0]), &sample(&[80.0]), LowerIsBetter, 0.0), 0.8);
    }

    #[test]
    fn a_value_at_exactly_alpha_is_a_defect_in_either_direction_and_any_unit() {
        for unit in [1e-9, 0.1, 1.0, 3.0, 7.7e12] {
            for thousandth in 1..200 {
                let centre = sample(&[f64::from(thousandth) * unit]);
                let at = |share: f64| sample(&[f64::from(thousandth) * unit * share]);
                let slow = |share| is_defect(one_sided(&at(share), &centre, HigherIsBetter, 0.01), 0.95);
                assert!(slow(0.95) && !slow(0.950_001), "{thousandth} x {unit}");
                let late = |share| is_defect(one_sided(&at(share), &centre, LowerIsBetter, 0.01), 0.95);
                assert!(late(1.0 / 0.95) && late(1.0527) && !late(1.05) && !late(1.052_63), "{thousandth} x {unit}");
            }
        }
        assert!(!is_defect(1.0, 1.0) && is_defect(0.999, 1.0));
    }

    #[test]
    fn zeros_are_alike_and_unlike_anything_else() {
        assert_eq!(similarity(&sample(&[0.0]), &sample(&[0.0, 0.0]), HigherIsBetter, 0.0), 1.0);
        assert_eq!(similarity(&sample(&[0.0]), &sample(&[5.0]), HigherIsBetter, 0.0), 0.0);
        assert_eq!(similarity(&sample(&[0.0, 0.0, 0.0]), &sample(&[0.0, 0.0, 9.0]), LowerIsBetter, 0.0), 0.0);
    }

    /// Latencies of one step each 1.0 with a little noise, `m` of them.
    fn noisy(m: usize, sigma: f64) -> Vec<f64> {
        // Evenly spaced normal quantiles (rough logit form): no randomness needed for an anchor.
        (0..m).map(|i| ((i as f64 + 0.5) / m as f64).mul_add(2.0, -1.0).mul_add(sigma * 1.73, 1.0)).collect()
    }

    #[test]
    fn the_survival_mirror_gives_the_published_values_for_latencies() {
        let base = noisy(1000, 0.003);
        let check = |observed: &[f64], low: f64, high: f64| {
            let d = 1.0 - one_sided(&sample(observed), &sample(&base), LowerIsBetter, 0.0);
            assert!((low..high).contains(&d), "distance {d} outside {low}..{high}");
        };
        check(&base, 0.0, 0.001);
        let mut one_step = base.clone();
        one_step[500] = 3.0;
        check(&one_step, 0.66, 1.0 + 1e-9 + 0.1);
        check(&base.iter().map(|v| v * 1.1).collect::<Vec<_>>(), 0.09, 0.13);
        let tenth: Vec<f64> = base.iter().enumerate().map(|(i, v)| if i % 10 == 0 { v * 1.2 } else { *v }).collect();
        check(&tenth, 0.16, 0.21);
        // A criterion with one lucky fast step must not accuse a healthy node.
        let mut lucky = base.clone();
        lucky[500] = 0.5;
        let d = 1.0 - one_sided(&sample(&base), &sample(&lucky), LowerIsBetter, 0.0);
        assert!(d < 0.01, "{d}");
    }

    #[test]
    fn the_tail_floor_lets_one_slow_step_in_a_thousand_pass() {
        let base = noisy(1000, 0.003);
        let mut one_step = base.clone();
        one_step[500] = 0.5;
        let d = |tau| 1.0 - one_sided(&sample(&one_step), &sample(&base), HigherIsBetter, tau);
        assert!((0.45..0.50).contains(&d(0.0)), "{}", d(0.0));
        assert!((0.04..0.06).contains(&d(0.01)), "{}", d(0.01));
        assert!((0.008..0.014).contains(&d(0.05)), "{}", d(0.05));
        assert!(d(1.0) < 0.001 + 1e-3);
    }

    #[test]
    fn a_glitch_does_not_hide_a_slow_node() {
        let base = vec![100.0; 50];
        let mut slow = vec![90.0; 50];
        slow[7] = 1000.0;
        let s = one_sided(&sample(&slow), &sample(&base), HigherIsBetter, 0.01);
        assert!(s < 0.91, "{s}");
    }

    fn values() -> impl Strategy<Value = Vec<f64>> {
        // Few distinct small values force ties; the wide ones exercise rounding.
        prop_oneof![
            proptest::collection::vec((0u8..6).prop_map(f64::from), 1..12),
            proptest::collection::vec(0.0f64..1e6, 1..12),
        ]
    }

    fn direction() -> impl Strategy<Value = Direction> {
        prop_oneof![Just(HigherIsBetter), Just(LowerIsBetter)]
    }

    proptest! {
        #[test]
        fn the_walk_equals_the_definition(
            a in values(), b in values(), dir in direction(), tau in prop_oneof![Just(0.0), 0.0f64..0.6],
        ) {
            let fast = parts(&sample(&a), &sample(&b), dir, tau);
            let slow = by_definition(&a, &b, dir, tau);
            let size = 1.0 + slow.raw();
            prop_assert!((fast.first_worse - slow.first_worse).abs() <= 1e-9 * size, "{fast:?} {slow:?}");
            prop_assert!((fast.second_worse - slow.second_worse).abs() <= 1e-9 * size, "{fast:?} {slow:?}");
        }

        #[test]
        fn similarity_is_symmetric_within_bounds_and_free_of_scale_and_order(
            a in values(), b in values(), dir in direction(), factor in 1e-3f64..1e3,
        ) {
            let (sa, sb) = (sample(&a), sample(&b));
            let s = similarity(&sa, &sb, dir, 0.01);
            prop_assert!((0.0..=1.0).contains(&s));
            prop_assert!((s - similarity(&sb, &sa, dir, 0.01)).abs() < 1e-12);
            let scaled = |v: &[f64]| sample(&v.iter().rev().map(|x| x * factor).collect::<Vec<_>>());
            prop_assert!((s - similarity(&scaled(&a), &scaled(&b), dir, 0.01)).abs() < 1e-9);
            prop_assert!(one_sided(&sa, &sb, dir, 0.01) >= s - 1e-12);
            prop_assert_eq!(similarity(&sa, &sa, dir, 0.01), 1.0);
        }

        #[test]
        fn the_raw_distance_keeps_the_triangle_inequality(
            a in values(), b in values(), c in values(), dir in direction(),
        ) {
            let raw = |x: &[f64], y: &[f64]| parts(&sample(x), &sample(y), dir, 0.0).raw();
            prop_assert!(raw(&a, &c) <= raw(&a, &b) + raw(&b, &c) + 1e-6);
        }
    }
}

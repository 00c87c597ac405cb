//! Which nodes lie outside Tukey's fence: means below `Q1 - 1.5 (Q3 - Q1)`, mirrored for costs.

use muster_wire::Direction;

use super::Fleet;
use crate::Sample;
use crate::sample::quantile_of_sorted;

/// Interquartile ranges beyond the quartile; flags about 0.35 % of healthy normal nodes on its side by design.
const FENCE: f64 = 1.5;

pub(super) fn split(fleet: &Fleet) -> (Sample, Vec<usize>) {
    let means = fleet.means();
    let mut sorted = means.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let (q1, q3) = (quantile_of_sorted(&sorted, 0.25), quantile_of_sorted(&sorted, 0.75));
    let outside = |mean: f64| match fleet.direction() {
        Direction::HigherIsBetter => mean < FENCE.mul_add(q1 - q3, q1),
        Direction::LowerIsBetter => mean > FENCE.mul_add(q3 - q1, q3),
    };
    let defects: Vec<usize> = (0..means.len()).filter(|&i| outside(means[i])).collect();
    let centre = fleet.middle_of(&means, &defects).unwrap_or(0);
    (fleet.samples()[centre].clone(), defects)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defects(values: &[f64], dir: Direction) -> Vec<usize> {
        split(&Fleet::new(values.iter().map(|v| vec![*v]).collect(), dir).unwrap()).1
    }

    #[test]
    fn only_the_worse_side_is_flagged() {
        // Q1 = 10.25, Q3 = 11.75 over the six: fences at 8 and 14.
        let values = [5.0, 10.0, 11.0, 11.0, 12.0, 30.0];
        assert_eq!(defects(&values, Direction::HigherIsBetter), [0]);
        assert_eq!(defects(&values, Direction::LowerIsBetter), [5]);
        assert!(defects(&[7.0; 5], Direction::HigherIsBetter).is_empty());
    }
}

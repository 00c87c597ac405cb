//! Whether the other nodes form two clusters so far apart that it cannot be said which of them is healthy.

use super::sorted::Sums;

/// Fleets of this size look at every node only where a rough look finds anything.
const LARGE: usize = 64;
/// How much farther apart leaving out one node of a large fleet can move two clusters.
const ROUGH: f64 = 1.6;

/// What two clusters must be.
struct Bounds<'a> {
    /// Smallest loss of the slow one.
    effect: f64,
    /// Least relative spread within a cluster.
    floor: f64,
    /// Relative grid step that the others of an index show.
    grid: &'a dyn Fn(usize) -> f64,
}

/// Spreads within the clusters that must lie between them: more in small fleets, where every sample has gaps.
fn needed(nodes: usize) -> f64 {
    match nodes {
        ..=5 => 60.0,
        6..=7 => 30.0,
        n => 7.0 * (1.0 + 30.0 / (n as f64).powf(1.5)),
    }
}

/// By position in `all`: whether the others form two clusters, the slow one (with the node itself, if it is on that
/// side) more than a third of the fleet. Empty where nobody's do. `effect` is the smallest loss of the slow cluster,
/// `floor` the least relative spread within one, `grid` the relative grid step that the others of an index show.
pub(super) fn of(all: &Sums<'_>, effect: f64, floor: f64, grid: &dyn Fn(usize) -> f64) -> Vec<bool> {
    let bounds = Bounds { effect, floor, grid };
    let n = all.len();
    if n < 4 {
        return Vec::new();
    }
    let sizes = (n / 3).max(1)..=n / 2;
    let needed = needed(n);
    let rough = |own: usize| {
        let needed = needed / ROUGH;
        sizes.clone().any(|slow| Split::of(all, own, slow, &bounds).is_some_and(|split| split.apart >= needed))
    };
    if n >= LARGE && ![0, n / 2, n - 1].into_iter().any(rough) {
        return Vec::new();
    }
    let found: Vec<bool> = (0..n).map(|own| unclear(all, own, needed, &bounds)).collect();
    if found.contains(&true) { found } else { Vec::new() }
}

/// Whether the others of `own` are split best where the slow side is more than a third.
fn unclear(all: &Sums<'_>, own: usize, needed: f64, bounds: &Bounds<'_>) -> bool {
    let n = all.len();
    let mut before =
        if n / 3 > 1 { Split::of(all, own, n / 3 - 1, bounds).map_or(0.0, |split| split.apart) } else { 0.0 };
    for slow in (n / 3).max(1)..=(n / 2).min(n - 2) {
        let Some(split) = Split::of(all, own, slow, bounds) else { continue };
        // One fast node counted to the slow cluster leaves them far apart, but less so.
        if split.apart >= before && split.apart >= needed && split.loss >= bounds.effect && split.crowded(all, own) {
            return true;
        }
        before = split.apart;
    }
    false
}

/// The others, split into the `slow` slowest and the rest.
struct Split {
    slow: usize,
    /// Distance of the centres in spreads within the clusters.
    apart: f64,
    middle: f64,
    loss: f64,
}

impl Split {
    fn of(all: &Sums<'_>, own: usize, slow: usize, bounds: &Bounds<'_>) -> Option<Self> {
        let others = all.len() - 1;
        let (low, high) = (cluster(all, own, 0, slow), cluster(all, own, slow, others));
        let mean = (low.0 * slow as f64 + high.0 * (others - slow) as f64) / others as f64;
        let within = ((low.1 + high.1).max(0.0) / (others.max(3) - 2) as f64).sqrt();
        let grid = (bounds.grid)(all.order()[own] as usize);
        let within = within.max(bounds.floor * mean).hypot(0.6 * grid * mean);
        let (apart, loss) = ((high.0 - low.0) / within, (high.0 - low.0) / high.0);
        loss.is_finite().then_some(Self { slow, apart, middle: f64::midpoint(low.0, high.0), loss })
    }

    /// Whether the slow side, with `own` if it is there, is more than a third of the fleet.
    fn crowded(&self, all: &Sums<'_>, own: usize) -> bool {
        3 * (self.slow + usize::from(all.at(own) < self.middle)) > all.len()
    }
}

/// Mean, and sum of squares around it, of the others from position `low` to before `high`, `own` not counted.
fn cluster(all: &Sums<'_>, own: usize, low: usize, high: usize) -> (f64, f64) {
    let count = (high - low) as f64;
    let (mut sum, mut squares) = all.between(low + usize::from(own < low), high + usize::from(own < high));
    if (low..high).contains(&own) {
        let away = all.at(own) - all.pivot();
        (sum, squares) = (sum - away, squares - away * away);
    }
    (all.pivot() + sum / count, squares - sum * sum / count)
}

#[cfg(test)]
mod tests {
    use super::super::sorted::Sorted;
    use super::*;
    use crate::Chance;

    /// So many nodes near 100, of which the first `slow` are near 70.
    fn fleet(nodes: usize, slow: usize) -> Vec<f64> {
        let mut chance = Chance::new(nodes as u64);
        (0..nodes).map(|node| if node < slow { 70.0 } else { 100.0 } + 0.2 * chance.normal()).collect()
    }

    fn found(values: &[f64]) -> usize {
        of(&Sums::of(&Sorted::of(values)), 0.05, 0.001, &|_| 0.0).into_iter().filter(|found| *found).count()
    }

    #[test]
    fn two_clusters_are_seen_in_a_fleet_of_any_size_where_the_slow_one_is_more_than_a_third() {
        for nodes in [12, 40, 63, 64, 70, 131, 200] {
            let many = nodes * 2 / 5 + 1;
            assert!(found(&fleet(nodes, many)) > nodes / 2, "{nodes}: {}", found(&fleet(nodes, many)));
            for few in [0, 1, nodes / 5] {
                assert_eq!(found(&fleet(nodes, few)), 0, "{nodes} {few}");
            }
        }
        assert_eq!(found(&[70.0, 70.0, 100.0]), 0, "too few");
    }

    #[test]
    fn a_split_is_that_of_the_values_themselves() {
        let mut values = fleet(9, 4);
        values.sort_by(f64::total_cmp);
        let sorted = Sorted::of(&values);
        let (sums, bounds) = (Sums::of(&sorted), Bounds { effect: 0.05, floor: 0.0, grid: &|_| 0.0 });
        for own in 0..9 {
            let others: Vec<f64> = (0..9).filter(|at| *at != own).map(|at| values[at]).collect();
            for slow in 1..8 {
                let centre = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
                let around = |part: &[f64]| part.iter().map(|value| (value - centre(part)).powi(2)).sum::<f64>();
                let (low, high) = others.split_at(slow);
                let within = ((around(low) + around(high)) / 6.0).sqrt();
                let split = Split::of(&sums, own, slow, &bounds).unwrap();
                let apart = (centre(high) - centre(low)) / within;
                assert!((split.apart / apart - 1.0).abs() < 1e-6, "{own} {slow}: {} {apart}", split.apart);
                assert!((split.loss - (1.0 - centre(low) / centre(high))).abs() < 1e-9, "{own} {slow}");
            }
        }
    }
}

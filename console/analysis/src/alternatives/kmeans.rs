//! Which of two clusters of step series is the smaller: k-means with k = 2 on the raw vectors, as SuperBench
//! compares itself with. It needs aligned steps, so one late stall moves a healthy node.

use muster_wire::Direction;

use super::{Fleet, NotComparable};
use crate::Chance;
use crate::Sample;

/// Starts by k-means++ (Arthur and Vassilvitskii, SODA'07); the tightest result wins.
const RESTARTS: usize = 10;
/// Lloyd's iterations of one start at most; fleets settle in a handful.
const ROUNDS: usize = 300;

pub(super) fn split(fleet: &Fleet, seed: u64) -> Result<(Sample, Vec<usize>), NotComparable> {
    let points = fleet.steps();
    let first = points[0].len();
    if let Some(node) = points.iter().position(|p| p.len() != first) {
        return Err(NotComparable::Unaligned { node, len: points[node].len(), first });
    }
    let mut chance = Chance::new(seed);
    let mut best: Option<Clusters> = None;
    for _ in 0..RESTARTS {
        let found = lloyd(points, start(points, &mut chance));
        if best.as_ref().is_none_or(|b| found.spread < b.spread) {
            best = Some(found);
        }
    }
    let clusters = best.unwrap_or_else(|| lloyd(points, [points[0].clone(), points[0].clone()]));
    let [a, b] = [0, 1].map(|k| clusters.own.iter().filter(|&&own| own == k).count());
    let larger = if a == b { better(&clusters.centres, fleet.direction()) } else { usize::from(b > a) };
    let defects = (0..points.len()).filter(|&i| clusters.own[i] != larger).collect();
    let centre = Sample::new(&clusters.centres[larger]).map_err(|source| NotComparable::Bad { node: 0, source })?;
    Ok((centre, defects))
}

struct Clusters {
    centres: [Vec<f64>; 2],
    own: Vec<usize>,
    spread: f64,
}

/// The second centre is drawn in proportion to the squared distance from the first.
fn start(points: &[Vec<f64>], chance: &mut Chance) -> [Vec<f64>; 2] {
    let first = &points[chance.below(points.len())];
    let weights: Vec<f64> = points.iter().map(|p| squared(p, first)).collect();
    let mut left = chance.unit() * weights.iter().sum::<f64>();
    let drawn = weights.iter().position(|w| {
        left -= w;
        left < 0.0
    });
    [first.clone(), points[drawn.unwrap_or(points.len() - 1)].clone()]
}

fn lloyd(points: &[Vec<f64>], mut centres: [Vec<f64>; 2]) -> Clusters {
    let mut own: Vec<usize> = Vec::new();
    for _ in 0..ROUNDS {
        let next: Vec<usize> =
            points.iter().map(|p| usize::from(squared(p, &centres[1]) < squared(p, &centres[0]))).collect();
        if next == own {
            break;
        }
        own = next;
        for (k, centre) in centres.iter_mut().enumerate() {
            if let Some(mean) = mean(points.iter().zip(&own).filter(|(_, o)| **o == k).map(|(p, _)| p)) {
                *centre = mean;
            }
        }
    }
    let spread = points.iter().zip(&own).map(|(p, &k)| squared(p, &centres[k])).sum();
    Clusters { centres, own, spread }
}

fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// Element by element; `None` for an empty cluster, which keeps its centre.
fn mean<'a>(points: impl Iterator<Item = &'a Vec<f64>>) -> Option<Vec<f64>> {
    let mut sum: Vec<f64> = Vec::new();
    let mut n = 0.0;
    for point in points {
        sum.resize(point.len(), 0.0);
        sum.iter_mut().zip(point).for_each(|(s, v)| *s += v);
        n += 1.0;
    }
    (n > 0.0).then(|| sum.into_iter().map(|s| s / n).collect())
}

/// Two clusters of one size: the better-performing one is taken for the healthy one.
fn better(centres: &[Vec<f64>; 2], dir: Direction) -> usize {
    let [a, b] = [0, 1].map(|k| centres[k].iter().sum::<f64>());
    usize::from(if dir == Direction::HigherIsBetter { b > a } else { b < a })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_clouds_are_told_apart_and_the_smaller_is_defective() {
        let near = |level: f64, i: usize| vec![level + i as f64 * 0.01, level - i as f64 * 0.01];
        let points = (0..9).map(|i| near(if i < 6 { 100.0 } else { 50.0 }, i)).collect();
        let fleet = Fleet::new(points, Direction::HigherIsBetter).unwrap();
        let (centre, defects) = split(&fleet, 1).unwrap();
        assert_eq!(defects, [6, 7, 8]);
        assert!((centre.median() - 100.0).abs() < 0.1);
    }

    #[test]
    fn equal_nodes_are_one_cluster_and_unequal_lengths_are_refused() {
        let equal = Fleet::new(vec![vec![3.0, 4.0]; 4], Direction::HigherIsBetter).unwrap();
        assert!(split(&equal, 1).unwrap().1.is_empty());
        let ragged = Fleet::new(vec![vec![1.0], vec![1.0, 2.0], vec![1.0]], Direction::HigherIsBetter).unwrap();
        assert_eq!(split(&ragged, 1).unwrap_err(), NotComparable::Unaligned { node: 1, len: 2, first: 1 });
    }
}

//! Which node stands for a set of nodes: the one most like all others, the better-performing one of equals.

use std::cmp::Ordering;

use muster_wire::Direction;

use super::{raw_sums, similarity_sums};
use crate::Sample;

/// Sums that differ by less than this share are equal; rounding depends on the order of the nodes.
const EQUAL: f64 = 1e-10;

/// The centre of a set and how far the set lies around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Medoid {
    /// Index into the set.
    pub index: usize,
    /// Mean similarity over all pairs of the set, `None` for one node. Exact for single values; for series the
    /// raw distance over the median of medians stands for the pair's own normaliser.
    pub mean_similarity: Option<f64>,
}

/// Finds the centre: the largest sum of similarities where every node has one value, the smallest sum of raw
/// distances otherwise (a constant normaliser changes no minimum, and keeps the sweep linear). `None` for an
/// empty set.
#[must_use]
pub fn medoid(samples: &[&Sample], dir: Direction, tau: f64) -> Option<Medoid> {
    let n = samples.len() as f64;
    let scalar = samples.iter().all(|s| s.len() == 1);
    // Costs: smaller is more central.
    let costs: Vec<f64> = if scalar {
        let values: Vec<f64> = samples.iter().map(|s| s.values()[0]).collect();
        // Rounding takes the cost of equal values below zero, and no node would be the least costly.
        similarity_sums(&values).into_iter().map(|s| (n - s).max(0.0)).collect()
    } else {
        raw_sums(samples, dir, tau)
    };
    let least = costs.iter().copied().min_by(f64::total_cmp)?;
    let total: f64 = costs.iter().sum();
    let bound = least + EQUAL * (total / n).max(least);
    let index = (0..samples.len())
        .filter(|&i| costs[i] <= bound)
        .min_by(|&a, &b| better(samples[a], samples[b], dir).then(a.cmp(&b)))?;
    let pairs = n * (n - 1.0);
    let scale = if scalar { 1.0 } else { scale(samples) };
    let distance = if total <= 0.0 { 0.0 } else { (total / pairs / scale).min(1.0) };
    Some(Medoid { index, mean_similarity: (samples.len() > 1).then_some(1.0 - distance) })
}

/// Orders the better-performing sample first, by median and then step by step, never by position.
pub(crate) fn better(a: &Sample, b: &Sample, dir: Direction) -> Ordering {
    let by_median = a.median().total_cmp(&b.median());
    let by_steps = || a.values().iter().zip(b.values()).map(|(x, y)| x.total_cmp(y)).find(|o| o.is_ne());
    let order = by_median.then_with(|| by_steps().unwrap_or(Ordering::Equal)).then(a.len().cmp(&b.len()));
    if dir == Direction::HigherIsBetter { order.reverse() } else { order }
}

fn scale(samples: &[&Sample]) -> f64 {
    let mut medians: Vec<f64> = samples.iter().map(|s| s.median()).collect();
    let (below, middle, _) = {
        let at = medians.len() / 2;
        medians.select_nth_unstable_by(at, f64::total_cmp)
    };
    let middle = *middle;
    if samples.len() % 2 == 1 {
        return middle;
    }
    below.iter().copied().max_by(f64::total_cmp).map_or(middle, |lower| f64::midpoint(lower, middle))
}

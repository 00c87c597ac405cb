//! Which nodes' means are lonelier than their neighbours': the local outlier factor (Breunig et al., SIGMOD'00).

use super::Fleet;
use crate::Sample;

/// Neighbours asked, SuperBench's figure 6.
const NEIGHBOURS: usize = 20;
/// Factor from which a node is an outlier, the usual fixed threshold.
const OUTLIER: f64 = 1.5;
/// Keeps the density of equal values finite.
const EQUAL: f64 = 1e-10;

pub(super) fn split(fleet: &Fleet) -> (Sample, Vec<usize>) {
    let means = fleet.means();
    let factors = factors(&means);
    let defects: Vec<usize> = (0..means.len()).filter(|&i| factors[i] > OUTLIER).collect();
    let centre = fleet.middle_of(&means, &defects).unwrap_or(0);
    (fleet.samples()[centre].clone(), defects)
}

/// Local outlier factor of every value: about 1 inside a crowd, larger where the neighbours are denser.
fn factors(values: &[f64]) -> Vec<f64> {
    let n = values.len();
    let k = NEIGHBOURS.min(n - 1);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]).then(a.cmp(&b)));
    let sorted: Vec<f64> = order.iter().map(|&i| values[i]).collect();
    let scale = sorted[n / 2].abs().max(f64::MIN_POSITIVE);
    let near: Vec<(usize, usize)> = (0..n).map(|i| window(&sorted, i, k)).collect();
    // The window holds the node itself, so its farther end is the k-th neighbour.
    let reach: Vec<f64> =
        (0..n).map(|i| (sorted[i] - sorted[near[i].0]).max(sorted[near[i].1] - sorted[i]) / scale).collect();
    let neighbours = |i: usize| (near[i].0..=near[i].1).filter(move |&j| j != i);
    let density: Vec<f64> = (0..n)
        .map(|i| {
            let sum: f64 = neighbours(i).map(|j| reach[j].max((sorted[i] - sorted[j]).abs() / scale)).sum();
            1.0 / (sum / k as f64 + EQUAL)
        })
        .collect();
    let mut out = vec![1.0; n];
    for (i, &node) in order.iter().enumerate() {
        out[node] = neighbours(i).map(|j| density[j]).sum::<f64>() / k as f64 / density[i];
    }
    out
}

/// First and last of the `k + 1` sorted values nearest to value `i`, itself among them.
fn window(sorted: &[f64], i: usize, k: usize) -> (usize, usize) {
    let (mut low, mut high) = (i, i);
    while high - low < k {
        let below = low.checked_sub(1).map(|j| sorted[i] - sorted[j]);
        let above = sorted.get(high + 1).map(|v| v - sorted[i]);
        match (below, above) {
            (Some(b), Some(a)) if b <= a => low -= 1,
            (Some(_), None) => low -= 1,
            _ => high += 1,
        }
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lonely_value_stands_out_and_a_crowd_does_not() {
        let mut values: Vec<f64> = (0..40).map(|i| 100.0 + f64::from(i) * 0.01).collect();
        values.push(90.0);
        let factors = factors(&values);
        assert!(factors[40] > 10.0, "{}", factors[40]);
        assert!(factors[..40].iter().all(|f| *f < 1.5));
        assert!(super::factors(&[5.0; 30]).iter().all(|f| (*f - 1.0).abs() < 1e-9));
    }

    #[test]
    fn factors_equal_the_definition_spelled_out() {
        // Four values, three neighbours each: everyone is everyone's neighbour.
        let values = [0.0_f64, 1.0, 2.0, 10.0];
        let reach = [10.0, 9.0, 8.0, 10.0];
        let distance = |i: usize, j: usize| (values[i] - values[j]).abs();
        let density =
            |i: usize| 3.0 / (0..4).filter(|&j| j != i).map(|j| f64::max(reach[j], distance(i, j))).sum::<f64>();
        for (i, factor) in factors(&values).into_iter().enumerate() {
            let expected = (0..4).filter(|&j| j != i).map(density).sum::<f64>() / 3.0 / density(i);
            assert!((factor - expected).abs() < 1e-8, "{i}: {factor} {expected}");
        }
    }
}

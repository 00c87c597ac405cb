//! The baseline of the paper: moments of every metric, principal components, Mahalanobis distance.
//!
//! Mean, standard deviation, skewness and kurtosis of each metric over a window, each taken off the mean of all machines in the same window and divided by its standard
//! deviation over the span; principal components that hold [`HELD`] of the variance, each divided by its standard deviation; the distance of a machine to the others in these is
//! Mahalanobis' distance. The paper names these parts and no sizes: windows have [`LONG`] seconds, since four moments of eight seconds are noise; at most [`COMPONENTS`]
//! components, since every further one adds noise of the same size to all distances.

use std::ops::Range;

use super::calls::Far;
use super::distance::farthest;
use super::eigen::symmetric;
use super::grid::Grid;
use super::scaled::NODES;

/// Seconds of a window, and from one to the next.
const LONG: usize = 60;
const STRIDE: usize = 10;
/// Moments of a metric.
const MOMENTS: usize = 4;
/// Metrics that are taken together at most, the first in the order of priority.
const METRICS: usize = 32;
/// Share of the variance that the components hold, and most of them.
const HELD: f64 = 0.95;
const COMPONENTS: usize = 4;

/// The farthest machine of each window; nothing where fewer than four nodes show all the metrics that most nodes show.
pub(super) fn far(grid: &Grid, order: &[usize], span: Range<usize>) -> Option<Far> {
    let all = grid.size().0;
    let shown = |metric: &usize| (0..all).filter(|node| grid.series(*metric, *node).is_some()).count();
    let metrics: Vec<usize> = order.iter().copied().filter(|metric| 2 * shown(metric) > all).take(METRICS).collect();
    let has_all = |node: &usize| metrics.iter().all(|metric| grid.series(*metric, *node).is_some());
    let nodes: Vec<usize> = (0..all).filter(has_all).collect();
    if nodes.len() < NODES || metrics.is_empty() || span.len() < LONG {
        return None;
    }
    let wide = MOMENTS * metrics.len();
    let windows = (span.len() - LONG) / STRIDE + 1;
    let mut rows = Vec::with_capacity(windows * nodes.len() * wide);
    for window in 0..windows {
        let from = span.start + window * STRIDE;
        let first = rows.len();
        for &node in &nodes {
            let series = metrics.iter().filter_map(|metric| grid.series(*metric, node));
            series.for_each(|series| rows.extend(moments(&series[from..from + LONG])));
        }
        centre(&mut rows[first..], wide);
    }
    scale(&mut rows, wide);
    let axes = components(&rows, wide);
    let point = |row: &[f64]| -> Vec<f64> {
        let along = |(value, axis): &(f64, Vec<f64>)| dot(row, axis) / value.sqrt();
        axes.iter().map(along).collect()
    };
    let points: Vec<f64> = rows.chunks_exact(wide).flat_map(point).collect();
    let of_window = nodes.len() * axes.len();
    let tops = points.chunks_exact(of_window.max(1)).filter_map(|points| farthest(points, axes.len()));
    let tops = tops.map(|(place, score)| (nodes[place], score)).collect();
    Some(Far { metric: None, width: LONG, stride: STRIDE, tops })
}

/// Mean, standard deviation, skewness and kurtosis.
fn moments(values: &[f32]) -> [f64; MOMENTS] {
    let n = values.len() as f64;
    let mean = values.iter().map(|value| f64::from(*value)).sum::<f64>() / n;
    let power = |k: i32| values.iter().map(|value| (f64::from(*value) - mean).powi(k)).sum::<f64>() / n;
    let spread = power(2).sqrt();
    if spread <= 1e-9 * mean.abs().max(1e-9) {
        return [mean, 0.0, 0.0, 0.0];
    }
    [mean, spread, power(3) / spread.powi(3), power(4) / spread.powi(4)]
}

/// Takes the mean of all rows off each.
fn centre(rows: &mut [f64], wide: usize) {
    let count = (rows.len() / wide) as f64;
    for at in 0..wide {
        let mean = rows.iter().skip(at).step_by(wide).sum::<f64>() / count;
        rows.iter_mut().skip(at).step_by(wide).for_each(|value| *value -= mean);
    }
}

/// Divides each column by its standard deviation; a column that never changes stays zero.
fn scale(rows: &mut [f64], wide: usize) {
    let count = (rows.len() / wide) as f64;
    for at in 0..wide {
        let spread = (rows.iter().skip(at).step_by(wide).map(|value| value * value).sum::<f64>() / count).sqrt();
        if spread > 0.0 {
            rows.iter_mut().skip(at).step_by(wide).for_each(|value| *value /= spread);
        }
    }
}

/// The first principal axes with their variances.
fn components(rows: &[f64], wide: usize) -> Vec<(f64, Vec<f64>)> {
    let count = (rows.len() / wide) as f64;
    let mut covariance = vec![0.0; wide * wide];
    for row in rows.chunks_exact(wide) {
        for (a, x) in row.iter().enumerate() {
            covariance[a * wide..(a + 1) * wide].iter_mut().zip(row).for_each(|(sum, y)| *sum += x * y / count);
        }
    }
    let axes = symmetric(covariance, wide);
    let all: f64 = axes.iter().map(|(value, _)| value.max(0.0)).sum();
    let mut held = 0.0;
    let enough = |(value, _): &(f64, Vec<f64>)| {
        let more = held < HELD * all && *value > 1e-9 * all;
        held += value.max(0.0);
        more
    };
    axes.into_iter().take(COMPONENTS).take_while(enough).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::super::grid::Tick;
    use super::*;
    use muster_analysis::Chance;

    #[test]
    fn a_machine_whose_metrics_moved_together_is_the_farthest_in_most_windows_from_then_on() {
        let mut chance = Chance::new(3);
        let mut ticks = Vec::new();
        for (second, node) in (0..600_u32).flat_map(|second| (0..8_u16).map(move |node| (second, node))) {
            for metric in 0..3 {
                let level = if node == 5 && second >= 300 { 0.6 } else { 1.0 };
                let value = (level * (1.0 + 0.05 * chance.normal())) as f32;
                ticks.push(Tick { time_s: f64::from(second), value, node, metric });
            }
        }
        let grid = Grid::of(8, 3, &ticks).unwrap();
        assert!(far(&grid, &[0, 1, 2], 0..LONG - 1).is_none(), "shorter than a window");
        assert!(far(&grid, &[], 0..600).is_none(), "no metric");
        let few = ticks.iter().copied().filter(|tick| tick.node < 3).collect::<Vec<_>>();
        assert!(far(&Grid::of(3, 3, &few).unwrap(), &[0, 1, 2], 0..600).is_none(), "fewer than four machines");
        let far = far(&grid, &[0, 1, 2], 0..600).unwrap();
        let right = |from: usize| far.tops[from..].iter().filter(|(node, _)| *node == 5).count();
        let after = far.tops.len() - 31;
        assert!(4 * right(31) > 3 * after, "{:?}", far.tops);
        assert!(right(0) - right(24) < 18, "{:?}", far.tops);
        let moments = moments(&[1.0, 2.0, 3.0, 4.0]);
        assert!(
            (moments[0] - 2.5).abs() < 1e-12
                && (moments[1] - 1.25_f64.sqrt()).abs() < 1e-12
                && moments[2].abs() < 1e-12
        );
        assert!((moments[3] - 1.64).abs() < 1e-9, "{moments:?}");
        let skewed = super::moments(&[0.0, 0.0, 0.0, 4.0]);
        assert!((skewed[2] - 2.0 / 3.0_f64.sqrt()).abs() < 1e-12, "{skewed:?}");
    }
}

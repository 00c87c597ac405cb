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

    fn drawn(rows: usize, wide: usize, seed: u64) -> Vec<f64> {
        let mut chance = Chance::new(seed);
        // Columns that hang together, of different sizes, and one that never changes.
        let row = |_| {
            let common = chance.normal();
            let own: Vec<f64> = (0..wide)
                .map(|at| if at == 2 { 7.0 } else { (at + 1) as f64 * (2.0 * common + chance.normal()) })
                .collect();
            own
        };
        (0..rows).flat_map(row).collect()
    }

    fn column(rows: &[f64], wide: usize, at: usize) -> Vec<f64> {
        rows.iter().copied().skip(at).step_by(wide).collect()
    }

    #[test]
    fn columns_have_a_mean_of_nought_and_a_variance_of_one_where_they_change() {
        let mut rows = drawn(50, 5, 1);
        centre(&mut rows, 5);
        scale(&mut rows, 5);
        for at in 0..5 {
            let column = column(&rows, 5, at);
            let mean = column.iter().sum::<f64>() / 50.0;
            let variance = column.iter().map(|value| value * value).sum::<f64>() / 50.0;
            assert!(
                mean.abs() < 1e-9 && (variance - if at == 2 { 0.0 } else { 1.0 }).abs() < 1e-9,
                "{at}: {mean} {variance}"
            );
        }
    }

    #[test]
    fn the_components_are_the_fewest_that_hold_most_of_the_variance_and_four_at_most() {
        for (wide, seed) in [(3, 1), (5, 2), (12, 3)] {
            let mut rows = drawn(80, wide, seed);
            centre(&mut rows, wide);
            scale(&mut rows, wide);
            let axes = components(&rows, wide);
            let all: f64 = rows.iter().map(|value| value * value).sum::<f64>() / 80.0;
            let held: Vec<f64> = axes.iter().map(|(value, _)| value / all).collect();
            let before_last: f64 = held[..held.len() - 1].iter().sum();
            let sum: f64 = held.iter().sum();
            assert!(before_last < 0.95 && (sum >= 0.95 || held.len() == 4), "{wide}: {held:?}");
            assert!(held.len() <= 4 && held.is_sorted_by(|a, b| a >= b));
            for (value, axis) in &axes {
                let along = rows.chunks_exact(wide).map(|row| dot(row, axis).powi(2)).sum::<f64>() / 80.0;
                assert!((along - value).abs() < 1e-9 && (dot(axis, axis) - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn windows_of_a_minute_come_every_ten_seconds_and_take_the_nodes_that_show_what_most_show() {
        let mut chance = Chance::new(7);
        let mut ticks = Vec::new();
        for (second, node) in (0..100_u32).flat_map(|second| (0..6_u16).map(move |node| (second, node))) {
            for metric in 0..3 {
                // Node 1 never shows metric 1, and metric 2 is shown by half of the nodes only.
                if !(node == 1 && metric == 1 || metric == 2 && node < 3) {
                    ticks.push(Tick {
                        time_s: f64::from(second),
                        value: (1.0 + 0.1 * chance.normal()) as f32,
                        node,
                        metric,
                    });
                }
            }
        }
        let grid = Grid::of(6, 3, &ticks).unwrap();
        let tops = |span: Range<usize>| far(&grid, &[2, 1, 0], span).map(|far| far.tops);
        assert_eq!([60, 69, 70, 100].map(|end| tops(0..end).unwrap().len()), [1, 1, 2, 5]);
        assert!(tops(0..100).unwrap().iter().all(|(node, _)| *node != 1), "it does not show them all");
        let found = far(&grid, &[1, 0], 20..90).unwrap();
        assert_eq!((found.metric, found.width, found.stride, found.tops.len()), (None, 60, 10, 2));
        assert!(far(&grid, &[2], 0..100).is_none(), "a metric of half of the nodes is none of theirs");
    }

    #[test]
    fn what_never_changes_has_no_spread_and_no_shape() {
        assert_eq!(moments(&[5.0; 8]), [5.0, 0.0, 0.0, 0.0]);
        assert_eq!(moments(&[0.0; 8]), [0.0; 4]);
        let noise = moments(&[1e6, 1e6 + 1.0, 1e6, 1e6 + 1.0]);
        assert!((noise[1] - 0.5).abs() < 1e-9 && (noise[3] - 1.0).abs() < 1e-9, "{noise:?}");
    }

    #[test]
    fn distances_are_those_of_components_of_equal_variance_in_each_window() {
        let mut chance = Chance::new(12);
        let mut ticks = Vec::new();
        for (second, node) in (0..90_u32).flat_map(|second| (0..5_u16).map(move |node| (second, node))) {
            let common = chance.normal();
            for metric in 0..2 {
                let value = f64::from(node + 1) * (2.0 * common + chance.normal()) + f64::from(metric);
                ticks.push(Tick { time_s: f64::from(second), value: value as f32, node, metric });
            }
        }
        let grid = Grid::of(5, 2, &ticks).unwrap();
        let found = far(&grid, &[0, 1], 5..90).unwrap();
        // Windows from 5, 15 and 25 s on, five nodes in each, four moments of two metrics of each node.
        let mut rows = Vec::new();
        for from in [5, 15, 25] {
            let of = |node: usize, metric: usize| moments(&grid.series(metric, node).unwrap()[from..from + 60]);
            let mut own: Vec<f64> = (0..5).flat_map(|node| [of(node, 0), of(node, 1)].concat()).collect();
            centre(&mut own, 8);
            rows.extend(own);
        }
        scale(&mut rows, 8);
        let axes = components(&rows, 8);
        let along = |row: &[f64]| axes.iter().map(|(value, axis)| dot(row, axis) / value.sqrt()).collect::<Vec<f64>>();
        let points: Vec<Vec<f64>> = rows.chunks_exact(8).map(along).collect();
        assert_eq!((found.tops.len(), points.len()), (3, 15));
        for (window, top) in points.chunks_exact(5).zip(&found.tops) {
            let apart =
                |a: usize, b: usize| window[a].iter().zip(&window[b]).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
            let mean = |node: usize| (0..5).map(|other| apart(node, other)).sum::<f64>() / 5.0;
            let best = (0..5).max_by(|&a, &b| mean(a).total_cmp(&mean(b))).unwrap();
            assert!(top.0 == best && (top.1 - mean(best)).abs() < 1e-9, "{top:?} {best} {}", mean(best));
        }
    }
}

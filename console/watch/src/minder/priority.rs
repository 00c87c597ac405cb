//! Which metric is looked at first?
//!
//! As printed: for every window and metric the largest z-score of any machine; a decision tree over windows that are labelled abnormal or normal; metrics in the order in which
//! the tree splits by them, from its root. Metrics by which it never splits come last.

use super::grid::Grid;
use super::scaled::NODES;
use super::tree::{Rows, splits};
use super::vae::WIDTH;

/// Metrics that are looked at: the first so many of the order, as in the paper.
pub const USED: usize = 7;
/// The paper's order, by the names of recordings: what is taken where nothing can be learned.
pub const PRINTED: [&str; USED] =
    ["pfc_tx_pps", "cpu_util_pct", "gpu_util_pct", "gpu_power_w", "gr_active", "tensor_active", "nvlink_gbs"];
/// Most windows that are learned from; of more, every so many-th.
const WINDOWS: usize = 50_000;

/// A metric in the learned order.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Priority {
    /// Its name.
    pub metric: String,
    /// How deep in the tree its first split is, the root being 0; nothing where the tree never splits by it.
    pub depth: Option<u32>,
    /// Share of the windows' impurity that its splits take away, 0 to 1.
    pub gain: f64,
}

/// A labelled recording: its grid, the names of its metrics, and the spans in which a machine was faulty, in seconds of the grid.
pub type Labelled<'a> = (&'a Grid, &'a [String], Vec<(f64, f64)>);

/// All metrics of the recordings in the order in which they are looked at.
#[must_use]
pub fn priority(recordings: &[Labelled<'_>]) -> Vec<Priority> {
    let mut names: Vec<String> = recordings.iter().flat_map(|(_, names, _)| names.iter().cloned()).collect();
    names.sort_unstable();
    names.dedup();
    let rows = rows(recordings, &names);
    let all = rows.abnormal.len() as f64;
    let share = rows.abnormal.iter().filter(|abnormal| **abnormal).count() as f64 / all.max(1.0);
    let whole = 2.0 * share * (1.0 - share) * all;
    let splits = splits(&rows);
    let of = |(feature, metric): (usize, &String)| {
        let own = || splits.iter().filter(move |split| split.feature == feature);
        let place = splits.iter().position(|split| split.feature == feature);
        let gain = own().map(|split| split.gain).sum::<f64>() / whole.max(f64::MIN_POSITIVE);
        let depth = place.map(|place| splits[place].depth as u32);
        let printed = PRINTED.iter().position(|name| name == metric).unwrap_or(USED);
        ((place.unwrap_or(usize::MAX), printed), Priority { metric: metric.clone(), depth, gain })
    };
    let mut order: Vec<_> = names.iter().enumerate().map(of).collect();
    order.sort_by_key(|(place, _)| *place);
    order.into_iter().map(|(_, priority)| priority).collect()
}

/// One row a window: the largest z of any machine in each metric, zero for a metric that the recording lacks.
fn rows(recordings: &[Labelled<'_>], names: &[String]) -> Rows {
    let all: usize = recordings.iter().map(|(grid, ..)| grid.seconds() / WIDTH).sum();
    let every = all.div_ceil(WINDOWS).max(1);
    let mut rows = Rows { width: names.len(), ..Rows::default() };
    for (grid, own, faulty) in recordings {
        let places: Vec<Option<usize>> = names.iter().map(|name| own.iter().position(|own| own == name)).collect();
        for window in (0..grid.seconds() / WIDTH).step_by(every) {
            let from = window * WIDTH;
            rows.values.extend(places.iter().map(|place| place.map_or(0.0, |metric| largest_z(grid, metric, from))));
            let (begin, end) = (from as f64, (from + WIDTH) as f64);
            rows.abnormal.push(faulty.iter().any(|(onset, until)| *onset < end && *until > begin));
        }
    }
    rows
}

/// The largest z-score of the means of a window; zero with too few machines, or where all are the same.
fn largest_z(grid: &Grid, metric: usize, from: usize) -> f64 {
    // Sums have the same z-scores.
    let sum_of = |series: &[f32]| series[from..from + WIDTH].iter().map(|value| f64::from(*value)).sum::<f64>();
    let sums: Vec<f64> = (0..grid.size().0).filter_map(|node| grid.series(metric, node)).map(sum_of).collect();
    if sums.len() < NODES {
        return 0.0;
    }
    let n = sums.len() as f64;
    let mean = sums.iter().sum::<f64>() / n;
    let spread = (sums.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt();
    let far = sums.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max);
    if spread > 0.0 { far / spread } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::grid::Tick;
    use super::*;
    use muster_analysis::Chance;

    #[test]
    fn the_metric_in_which_faults_show_comes_first() {
        let mut chance = Chance::new(5);
        let names = ["mem_used_pct", "cpu_util_pct", "gpu_power_w"].map(str::to_owned);
        let grids: Vec<Grid> = (0..3_u16)
            .map(|culprit| {
                let mut ticks = Vec::new();
                for (second, node) in (0..800_u32).flat_map(|second| (0..8_u16).map(move |node| (second, node))) {
                    for metric in 0..3 {
                        let hurt = node == culprit && metric == 2 && (300..700).contains(&second);
                        let value = (if hurt { 0.6 } else { 1.0 } * (1.0 + 0.05 * chance.normal())) as f32;
                        ticks.push(Tick { time_s: f64::from(second), value, node, metric });
                    }
                }
                Grid::of(8, 3, &ticks).unwrap()
            })
            .collect();
        let labelled: Vec<Labelled<'_>> = grids.iter().map(|grid| (grid, &names[..], vec![(300.0, 700.0)])).collect();
        let order = priority(&labelled);
        assert_eq!((order[0].metric.as_str(), order[0].depth), ("gpu_power_w", Some(0)));
        assert!(order[0].gain > 0.5 && order.len() == 3, "{order:?}");
        // Without a label there is nothing to learn, and the paper's order stands.
        let unlabelled: Vec<Labelled<'_>> = grids.iter().map(|grid| (grid, &names[..], Vec::new())).collect();
        let order: Vec<String> = priority(&unlabelled).into_iter().map(|one| one.metric).collect();
        assert_eq!(order, ["cpu_util_pct", "gpu_power_w", "mem_used_pct"]);
    }

    /// Values of `nodes` over `seconds` of one metric.
    fn grid(nodes: u16, seconds: u32, value: impl Fn(u16, u32) -> f32) -> Grid {
        let at = (0..seconds).flat_map(|second| (0..nodes).map(move |node| (second, node)));
        let tick = |(second, node)| Tick { time_s: f64::from(second), value: value(node, second), node, metric: 0 };
        Grid::of(usize::from(nodes), 1, &at.map(tick).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn the_largest_z_is_that_of_the_farthest_mean_of_a_window() {
        // Means of the second window are 12, 12, 12 and 20, that are 14 on average with a standard deviation of 3.464.
        let grid = grid(4, 24, |node, second| {
            (second + if node == 3 && second >= 8 { 8 } else { 0 }) as f32 - 3.5 + if second < 8 { 0.0 } else { 4.0 }
        });
        let z = |from: usize| largest_z(&grid, 0, from);
        assert_eq!(z(0), 0.0, "all are the same");
        assert!((z(8) - 6.0 / 12.0_f64.sqrt()).abs() < 1e-9, "{}", z(8));
        let few = super::tests::grid(3, 8, |node, _| f32::from(node));
        assert_eq!(largest_z(&few, 0, 0), 0.0, "of three machines nobody is odd");
    }

    #[test]
    fn a_row_is_a_window_of_eight_seconds_and_abnormal_where_a_fault_touches_it() {
        let grid = grid(4, 40, |node, _| f32::from(node));
        let names = ["m".to_owned()];
        let all = [("a".to_owned()), ("m".to_owned())];
        let abnormal = |faulty: Vec<(f64, f64)>| rows(&[(&grid, &names[..], faulty)], &all).abnormal;
        assert_eq!(abnormal(vec![]), [false; 5]);
        assert_eq!(abnormal(vec![(8.0, 16.0)]), [false, true, false, false, false]);
        assert_eq!(abnormal(vec![(15.9, 16.1)]), [false, true, true, false, false]);
        assert_eq!(abnormal(vec![(0.0, 1.0), (39.0, f64::INFINITY)]), [true, false, false, false, true]);
        let found = rows(&[(&grid, &names[..], vec![])], &all);
        let z = 1.5 / 1.25_f64.sqrt();
        assert!(
            found.width == 2
                && found.values.len() == 10
                && found.values[0] == 0.0
                && (found.values[1] - z).abs() < 1e-6
        );
    }

    #[test]
    fn a_metric_that_tells_all_abnormal_windows_from_the_others_takes_all_of_the_impurity() {
        // 40 of 160 windows are abnormal, and in them alone is a node unlike the others.
        let odd = grid(4, 1_280, |node, second| if node == 3 && second < 320 { 5.0 } else { 1.0 });
        let names = ["m".to_owned()];
        let order = priority(&[(&odd, &names[..], vec![(0.0, 320.0)])]);
        assert_eq!((order.len(), order[0].depth, order[0].gain), (1, Some(0), 1.0));
        let none = priority(&[(&odd, &names[..], Vec::new())]);
        assert_eq!((none[0].depth, none[0].gain), (None, 0.0));
    }
}

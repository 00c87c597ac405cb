//! What did every node show in every second, with gaps filled as Minder fills them?

/// Most values of one grid: half a gigabyte.
pub const VALUES: usize = 1 << 27;

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tick {
    /// Epoch seconds.
    pub time_s: f64,
    /// In the metric's unit.
    pub value: f32,
    /// Place of the node among the names.
    pub node: u16,
    /// Place of the metric among the names.
    pub metric: u16,
}

/// Why samples make no grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoGrid {
    /// There are none.
    #[error("there is no usable value in it")]
    Empty,
    /// They span too much.
    #[error(
        "{nodes} nodes, {metrics} metrics and {seconds} s make more than {VALUES} values; cut the recording into shorter ones"
    )]
    TooLarge {
        /// Nodes.
        nodes: usize,
        /// Metrics.
        metrics: usize,
        /// Seconds from the first sample to the last.
        seconds: usize,
    },
}

/// Samples of a second, aligned over all nodes.
///
/// A second without a sample has the value of the nearest second that has one, the earlier of two; that is what the paper prints, and it means that a
/// node which falls silent keeps its last value. A node that never showed a metric has no values of it.
#[derive(Clone, Debug)]
pub struct Grid {
    nodes: usize,
    metrics: usize,
    start_s: f64,
    seconds: usize,
    /// By metric, node and second; NaN where the node never showed the metric.
    values: Vec<f32>,
}

impl Grid {
    /// The grid of some samples, in any order, of so many nodes and metrics.
    ///
    /// # Errors
    /// Without a sample, or with more than [`VALUES`] seconds of all metrics and nodes together.
    pub fn of(nodes: usize, metrics: usize, ticks: &[Tick]) -> Result<Self, NoGrid> {
        let known = |tick: &&Tick| usize::from(tick.node) < nodes && usize::from(tick.metric) < metrics;
        let ticks = || ticks.iter().filter(known).filter(|tick| tick.time_s.is_finite() && tick.value.is_finite());
        let (first, last) = ticks().fold((f64::INFINITY, f64::NEG_INFINITY), |(first, last), tick| {
            (first.min(tick.time_s), last.max(tick.time_s))
        });
        if first > last {
            return Err(NoGrid::Empty);
        }
        let start_s = first.floor();
        let seconds = (last - start_s) as usize + 1;
        let count = seconds.checked_mul(nodes * metrics).filter(|count| *count <= VALUES);
        let Some(count) = count else { return Err(NoGrid::TooLarge { nodes, metrics, seconds }) };
        let mut values = vec![f32::NAN; count];
        for tick in ticks() {
            let second = (tick.time_s - start_s) as usize;
            let series = usize::from(tick.metric) * nodes + usize::from(tick.node);
            values[series * seconds + second] = tick.value;
        }
        values.chunks_exact_mut(seconds).for_each(fill);
        Ok(Self { nodes, metrics, start_s, seconds, values })
    }

    /// Nodes and metrics.
    #[must_use]
    pub const fn size(&self) -> (usize, usize) {
        (self.nodes, self.metrics)
    }

    /// When the first second begins, epoch seconds.
    #[must_use]
    pub const fn start_s(&self) -> f64 {
        self.start_s
    }

    /// Seconds from the first sample to the last.
    #[must_use]
    pub const fn seconds(&self) -> usize {
        self.seconds
    }

    /// All seconds of a metric on a node; nothing where the node never showed it.
    #[must_use]
    pub fn series(&self, metric: usize, node: usize) -> Option<&[f32]> {
        let from = (metric * self.nodes + node) * self.seconds;
        self.values.get(from..from + self.seconds).filter(|series| series[0].is_finite())
    }
}

/// Gives each second without a value that of the nearest one that has one.
fn fill(series: &mut [f32]) {
    let mut last: Option<usize> = None;
    for at in 0..series.len() {
        if series[at].is_nan() {
            continue;
        }
        let (value, before) = (series[at], last.map_or(f32::NAN, |last| series[last]));
        let gap = last.map_or(0, |last| last + 1);
        // The middle of the gap, if there is one: up to it the value before is nearer.
        let turn = last.map_or(0, |last| usize::midpoint(last, at) + 1);
        series[gap..at].iter_mut().enumerate().for_each(|(nr, empty)| {
            *empty = if gap + nr < turn { before } else { value };
        });
        last = Some(at);
    }
    if let Some(last) = last {
        let value = series[last];
        series[last..].fill(value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tick(time_s: f64, node: u16, metric: u16, value: f32) -> Tick {
        Tick { time_s, value, node, metric }
    }

    #[test]
    fn a_gap_has_the_value_of_the_nearest_second() {
        let ticks = [tick(102.3, 0, 0, 1.0), tick(107.0, 0, 0, 2.0), tick(100.5, 1, 0, 5.0), tick(109.9, 1, 0, 6.0)];
        let grid = Grid::of(2, 2, &ticks).unwrap();
        assert_eq!((grid.start_s(), grid.seconds()), (100.0, 10));
        let expected = [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0];
        assert_eq!(grid.series(0, 0).unwrap(), expected);
        assert_eq!(grid.series(0, 1).unwrap()[..5], [5.0; 5]);
        assert_eq!(grid.series(1, 0), None);
    }

    #[test]
    fn nothing_and_a_year_are_refused() {
        assert_eq!(Grid::of(1, 1, &[tick(f64::NAN, 0, 0, 1.0)]).unwrap_err(), NoGrid::Empty);
        let year = [tick(0.0, 0, 0, 1.0), tick(1e11, 0, 0, 1.0)];
        assert!(matches!(Grid::of(1, 1, &year), Err(NoGrid::TooLarge { .. })));
    }

    proptest! {
        #[test]
        fn every_second_has_the_value_of_the_nearest_sample_and_of_equals_the_earlier(
            samples in proptest::collection::btree_map(0_usize..30, -9_i16..9, 1..8),
        ) {
            let ticks: Vec<Tick> = samples.iter().map(|(second, value)| tick(*second as f64 + 0.5, 0, 0, f32::from(*value))).collect();
            let grid = Grid::of(1, 1, &ticks).unwrap();
            let first = *samples.first_key_value().unwrap().0;
            let series = grid.series(0, 0).unwrap();
            prop_assert_eq!((grid.start_s(), series.len()), (first as f64, samples.last_key_value().unwrap().0 - first + 1));
            for (at, value) in series.iter().enumerate() {
                let second = first + at;
                let nearest = samples.iter().min_by_key(|(other, _)| (other.abs_diff(second), **other)).unwrap();
                prop_assert_eq!(*value, f32::from(*nearest.1), "second {}", second);
            }
        }
    }

    #[test]
    fn samples_of_strangers_and_what_is_no_number_are_left_out_and_of_one_second_the_last_counts() {
        let good = [tick(5.0, 0, 0, 1.0), tick(6.2, 1, 1, 2.0), tick(6.8, 1, 1, 3.0)];
        let bad = [
            tick(1.0, 2, 0, 9.0),
            tick(1.0, 0, 2, 9.0),
            tick(1.0, 0, 0, f32::NAN),
            tick(f64::INFINITY, 0, 0, 9.0),
            tick(f64::NAN, 1, 1, 9.0),
        ];
        let grid = Grid::of(2, 2, &[&bad[..], &good, &bad].concat()).unwrap();
        assert_eq!((grid.size(), grid.start_s(), grid.seconds()), ((2, 2), 5.0, 2));
        assert_eq!((grid.series(0, 0), grid.series(1, 1)), (Some(&[1.0, 1.0][..]), Some(&[3.0, 3.0][..])));
        assert_eq!((grid.series(0, 1), grid.series(1, 0)), (None, None));
        assert_eq!(Grid::of(2, 2, &bad).unwrap_err(), NoGrid::Empty);
    }

    #[test]
    fn a_grid_is_as_large_as_half_a_gigabyte_may_hold() {
        let seconds = 1 << 27;
        let long = |seconds: usize| Grid::of(2, 1, &[tick(0.0, 0, 0, 1.0), tick(seconds as f64 - 1.0, 0, 0, 1.0)]);
        assert_eq!(
            long(seconds / 2 + 1).unwrap_err(),
            NoGrid::TooLarge { nodes: 2, metrics: 1, seconds: seconds / 2 + 1 }
        );
        assert_eq!(VALUES, seconds);
    }
}

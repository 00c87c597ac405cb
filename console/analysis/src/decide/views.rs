//! How fast a node is, in two views of its steps: the median step, and the mean step without glitches.
//!
//! The median sees a node that is slow step after step; the mean one that stands still now and then. Both are speeds,
//! the reciprocal where lower is better. A few stalls of the operating system are nobody's fault: the mean leaves out
//! as many of the dearest steps as a healthy node may lose.

use muster_wire::Direction;

use super::{Metric, Settings, grid, sorted::Sorted, tails};
use crate::Sample;

/// Steps from which on the mean is looked at.
const MEAN_FROM: usize = 8;
/// Steps from which on a node's own steps tell how exact its median is.
const ERROR_FROM: usize = 6;
/// Chance that a healthy node loses more steps than are left out.
const DROPPED: f64 = 1e-7;
/// Slower than anything measured; keeps a rate of zero and a time of zero finite.
const TINY: f64 = 1e-100;
/// Smaller than anything measured, also where zeros were averaged with values.
const NOTHING: f64 = 1e-90;

/// Speeds of the nodes that have them.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Which node each speed is of, ascending.
    pub(super) nodes: Vec<u32>,
    /// Speed of each.
    pub(super) speeds: Vec<f64>,
    /// The same, in order.
    pub(super) sorted: Sorted,
}

impl View {
    /// How many nodes have it.
    pub(super) fn len(&self) -> usize {
        self.speeds.len()
    }

    /// Of the speeds of `nodes`.
    pub(super) fn of(nodes: Vec<u32>, speeds: Vec<f64>) -> Self {
        Self { sorted: Sorted::of(&speeds), nodes, speeds }
    }
}

/// One metric over the nodes that have it.
#[derive(Clone, Debug)]
pub(super) struct Column {
    /// By the median step.
    pub(super) median: View,
    /// By the mean step, of the nodes with enough steps.
    pub(super) mean: Option<View>,
    /// By the slowest steps, of the nodes with long series.
    pub(super) tail: Option<View>,
    /// Steps per node of the median view.
    pub(super) steps: Vec<u32>,
    /// Relative error of each node's median, as the others' steps have it; empty where all are 0.
    pub(super) errors: Vec<f64>,
    /// Relative step of the grid that the others' values lie on; empty where all are 0.
    pub(super) grid: Vec<f64>,
}

impl Column {
    /// Of the nodes that have `metric`.
    pub(super) fn of(metric: &Metric<'_>, settings: &Settings) -> Self {
        let direction = metric.direction;
        let present = || metric.samples.iter().zip(0..).filter_map(|(s, node): (_, u32)| Some(((*s)?, node)));
        let room = metric.samples.len();
        let (mut nodes, mut speeds) = (Vec::with_capacity(room), Vec::with_capacity(room));
        let (mut steps, mut samples) = (Vec::with_capacity(room), Vec::with_capacity(room));
        for (sample, node) in present() {
            nodes.push(node);
            speeds.push(median_speed(sample, direction));
            steps.push(u32::try_from(sample.len()).unwrap_or(u32::MAX));
            samples.push(sample);
        }
        let series = steps.iter().any(|count| *count as usize >= ERROR_FROM);
        let median = View::of(nodes, speeds);
        Self {
            grid: grid::steps(&samples, &median.sorted),
            median,
            mean: if series { mean_view(present(), direction, settings.glitch) } else { None },
            tail: if series { tails::view(metric) } else { None },
            errors: if series { errors(&samples, direction) } else { Vec::new() },
            steps,
        }
    }

    /// Index in this column of what is at `index` of `view`.
    pub(super) fn index(&self, view: &View, index: usize) -> usize {
        if view.nodes.len() == self.median.nodes.len() {
            return index;
        }
        let node = view.nodes[index];
        self.median.nodes.partition_point(|other| *other < node)
    }

    /// Error of the median of the node at `index`.
    pub(super) fn error(&self, index: usize) -> f64 {
        self.errors.get(index).copied().unwrap_or(0.0)
    }

    /// Grid step that the others of the node at `index` show.
    pub(super) fn grid(&self, index: usize) -> f64 {
        self.grid.get(index).copied().unwrap_or(0.0)
    }
}

/// Speed that a value stands for.
pub(super) fn speed(value: f64, direction: Direction) -> f64 {
    match direction {
        Direction::HigherIsBetter => value,
        Direction::LowerIsBetter => value.max(TINY).recip(),
    }
}

/// The value that a speed stands for: none was measured where zeros were kept finite.
pub(super) fn value(of: f64, direction: Direction) -> f64 {
    let value = speed(of, direction);
    if value.abs() < NOTHING { 0.0 } else { value }
}

pub(super) fn median_speed(sample: &Sample, direction: Direction) -> f64 {
    let (values, middle) = (sample.values(), sample.len() / 2);
    let upper = speed(values[middle], direction);
    if values.len() % 2 == 1 { upper } else { f64::midpoint(speed(values[middle - 1], direction), upper) }
}

fn mean_view<'a>(present: impl Iterator<Item = (&'a Sample, u32)>, direction: Direction, glitch: f64) -> Option<View> {
    let mut last = (0, 0);
    let (nodes, speeds): (Vec<u32>, Vec<f64>) = present
        .filter(|(sample, _)| sample.len() >= MEAN_FROM)
        .map(|(sample, node)| {
            if last.0 != sample.len() {
                last = (sample.len(), glitches(sample.len(), glitch));
            }
            (node, mean_speed(sample, direction, last.1))
        })
        .unzip();
    (nodes.len() > 3).then(|| View::of(nodes, speeds))
}

/// Speed of the mean cost without the `dropped` dearest steps.
pub(super) fn mean_speed(sample: &Sample, direction: Direction, dropped: usize) -> f64 {
    let values = sample.values();
    let kept = values.len() - dropped;
    let cost: f64 = match direction {
        Direction::HigherIsBetter => values[dropped..].iter().map(|value| value.max(TINY).recip()).sum(),
        Direction::LowerIsBetter => values[..kept].iter().sum(),
    };
    kept as f64 / cost.max(TINY)
}

/// Fewest steps to leave out so that a healthy node of `steps` loses more with a chance of at most [`DROPPED`]; one at least is kept.
pub(super) fn glitches(steps: usize, rate: f64) -> usize {
    let mut chance = (1.0 - rate).powi(i32::try_from(steps).unwrap_or(i32::MAX));
    let (mut dropped, mut left) = (0, Vec::new());
    // From the top: the tail summed from its small end keeps its digits.
    while dropped < steps {
        left.push(chance);
        chance *= (steps - dropped) as f64 / (dropped + 1) as f64 * rate / (1.0 - rate);
        dropped += 1;
        if chance < DROPPED * 1e-6 && dropped as f64 > steps as f64 * rate {
            break;
        }
    }
    let mut above = 0.0;
    for (at, chance) in left.iter().enumerate().rev() {
        if above + chance > DROPPED {
            return at;
        }
        above += chance;
    }
    0
}

/// Half the width of the 95 % range of a median by its own order statistics, in standard deviations, per root step.
fn error(sample: &Sample, direction: Direction) -> Option<f64> {
    let (values, n) = (sample.values(), sample.len() as f64);
    if values.len() < ERROR_FROM {
        return None;
    }
    let low = (n / 2.0 - n.sqrt()).floor().max(0.0) as usize;
    let high = ((n / 2.0 + n.sqrt()).ceil() as usize - 1).min(values.len() - 1);
    // Positions count from the slowest step.
    let at = |position: usize| match direction {
        Direction::HigherIsBetter => values[position],
        Direction::LowerIsBetter => speed(values[values.len() - 1 - position], direction),
    };
    Some((at(high) - at(low)) / 4.0 / median_speed(sample, direction) * n.sqrt()).filter(|e| e.is_finite())
}

/// Error of each node's median: the median of the others' errors per step, over the root of its own steps.
fn errors(samples: &[&Sample], direction: Direction) -> Vec<f64> {
    let each: Vec<Option<f64>> = samples.iter().map(|sample| error(sample, direction)).collect();
    let mut all: Vec<f64> = each.iter().flatten().copied().collect();
    all.sort_unstable_by(f64::total_cmp);
    let without = |own: Option<f64>| {
        let position = own.map_or(all.len(), |value| all.partition_point(|e| *e < value));
        let left = all.len() - usize::from(own.is_some());
        let at = |index: usize| all[index + usize::from(index >= position)];
        match left {
            0 => 0.0,
            n if n % 2 == 1 => at(n / 2),
            n => f64::midpoint(at(n / 2 - 1), at(n / 2)),
        }
    };
    samples.iter().zip(each).map(|(sample, own)| without(own) / (sample.len() as f64).sqrt()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{HigherIsBetter, LowerIsBetter};

    #[test]
    fn as_many_steps_are_left_out_as_a_healthy_node_may_lose() {
        // min(steps - 1, scipy.stats.binom.isf(1e-7, steps, rate))
        for (steps, rate, dropped) in [
            (8, 0.003, 3),
            (32, 0.003, 4),
            (256, 0.003, 9),
            (3072, 0.003, 29),
            (1, 0.2, 0),
            (8, 0.2, 7),
            (32, 0.2, 20),
            (256, 0.2, 87),
            (1, 0.0001, 0),
            (8, 0.0001, 2),
            (256, 0.0001, 3),
        ] {
            assert_eq!(glitches(steps, rate), dropped, "{steps} {rate}");
        }
    }

    #[test]
    fn a_speed_is_told_as_the_value_it_stands_for_and_zero_as_zero() {
        for direction in [HigherIsBetter, LowerIsBetter] {
            for of in [0.0, 1e-9, 5.0, 3e15] {
                assert!((value(speed(of, direction), direction) - of).abs() <= 1e-12 * of, "{of}");
            }
        }
        assert_eq!([0.5, 1.0].map(|times| value(times * NOTHING, HigherIsBetter)), [0.0, NOTHING]);
        let zeros = Sample::new(&[0.0, 0.0, 9.0]).unwrap();
        assert_eq!(value(mean_speed(&zeros, HigherIsBetter, 0), HigherIsBetter), 0.0);
    }

    #[test]
    fn a_speed_is_the_same_from_rates_and_from_times() {
        let times: Vec<f64> = (1..=9).map(f64::from).collect();
        let rates: Vec<f64> = times.iter().map(|t| 1.0 / t).collect();
        let (times, rates) = (Sample::new(&times).unwrap(), Sample::new(&rates).unwrap());
        assert_eq!(median_speed(&times, LowerIsBetter), median_speed(&rates, HigherIsBetter));
        let (a, b) = (mean_speed(&times, LowerIsBetter, 3), mean_speed(&rates, HigherIsBetter, 3));
        assert!((a - 6.0 / 21.0).abs() < 1e-12 && (a - b).abs() < 1e-12);
        let (a, b) = (error(&times, LowerIsBetter).unwrap(), error(&rates, HigherIsBetter).unwrap());
        assert!((a - b).abs() < 1e-12);
    }
}

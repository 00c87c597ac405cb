//! Whether a node was slow for a while only: one or two stretches of its steps, while its other steps are not.
//!
//! Somebody else's job, a backup, a clock step: what slows a node for part of one visit may never come back, and a second
//! visit tells. So the steps outside of the stretches must be slow too before a node fails. Everything here compares a
//! node with itself, so a node that gets slower in all its steps keeps its stretches.
//!
//! A stretch is the block of steps that explains most of how their costs differ, single spikes set aside, if its median is
//! also clearly above that of the other steps, by noise taken from differences of neighbouring steps. Slow steps that are
//! scattered among normal ones are no stretch: they raise that noise, or leave blocks too short.

use muster_wire::Direction;

use super::decision::View as Look;
use super::views::{glitches, mean_speed, median_speed, speed};
use crate::Sample;
use crate::sample::median_of_sorted;

/// Longer series are looked at in this many medians of neighbouring steps: a scan costs some microseconds at most.
const UNITS: usize = 64;
/// Shortest stretch, in units: a stall or two are the mean's to leave out, and short blocks occur in scattered steps.
const SHORTEST: usize = 3;
/// Share of the steps outside of one stretch, and of two, at least: a node slow nearly all of the time is slow, and one slow
/// more often than twice is slow now and then, not for a while.
const REST: [f64; 2] = [0.25, 0.125];
/// Smallest difference of log costs that matters.
const SHIFT: f64 = 0.05;
/// Smallest ratio of that difference to its own error. Of series of 12 to 32 steps without any stretch, one is found in 1 %
/// of those with independent normal steps, in 2 % with t steps of 3 degrees of freedom, in 11 % with a tenth of Pareto steps,
/// in 28 % that wander (AR(1), 0.5). The steps outside are compared with the peers in any case, so that one found by chance
/// costs little.
const CLEAR: f64 = 4.0;
/// Standard error of a median of normal values, in that of their mean.
const MEDIAN_ERROR: f64 = 1.25;
/// Median of absolute differences of neighbouring normal values, in their standard deviation.
const NEIGHBOURS: f64 = 0.6745 * std::f64::consts::SQRT_2;
/// Least spread assumed between the log costs of a node's steps.
const FLOOR: f64 = 0.001;

/// A node that was slow for a while.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    /// First and last slow step, counted from 1: those of the stretches, and whatever else is as slow.
    pub(super) from: u32,
    pub(super) to: u32,
    /// How many steps are slow.
    pub(super) slow: u32,
    /// Of how many.
    pub(super) steps: u32,
    /// The steps outside.
    rest: Sample,
}

/// Finds what was slow for a while in `sample`; nothing where it does not know the order of its steps.
pub(super) fn find(sample: &Sample, direction: Direction) -> Option<Stretch> {
    let values = sample.in_order()?;
    let size = values.len().div_ceil(UNITS);
    let costs: Vec<f64> = values.chunks(size).map(|unit| cost(unit, direction)).collect();
    let Slow { units, bar } = slow_units(&costs)?;
    let rest: Vec<f64> =
        values.iter().enumerate().filter(|(step, _)| !units[step / size]).map(|(_, value)| *value).collect();
    // A stretch takes in normal steps between slow ones, and slow ones lie outside where they are too few: what is said of the
    // node is what its steps are.
    let slow: Vec<usize> = (0..values.len()).filter(|step| log_cost(speed(values[*step], direction)) > bar).collect();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Some(Stretch {
        from: count(slow.first()? + 1),
        to: count(slow.last()? + 1),
        slow: count(slow.len()),
        steps: count(values.len()),
        rest: Sample::new(&rest).ok()?,
    })
}

/// The steps of `sample` that lie in no stretch; `None` where there is none.
pub(crate) fn outside(sample: &Sample, direction: Direction) -> Option<Sample> {
    find(sample, direction).map(|stretch| stretch.rest)
}

impl Stretch {
    /// Share of speed that the steps outside lose against `centre`, as a speed. Fewer steps say less: a loss counts by the
    /// root of their share, as though all of the peers' spread came from single steps.
    pub(super) fn loss(&self, look: Look, direction: Direction, centre: f64, glitch: f64) -> f64 {
        let own = match look {
            Look::MeanStep => mean_speed(&self.rest, direction, glitches(self.rest.len(), glitch)),
            Look::MedianStep | Look::SlowestSteps => median_speed(&self.rest, direction),
        };
        let loss = 1.0 - own / centre;
        loss.max(0.0).mul_add((self.rest.len() as f64 / f64::from(self.steps)).sqrt(), loss.min(0.0))
    }
}

/// Log cost of the middle of neighbouring steps.
fn cost(unit: &[f64], direction: Direction) -> f64 {
    let mut speeds: Vec<f64> = unit.iter().map(|value| speed(*value, direction)).collect();
    speeds.sort_unstable_by(f64::total_cmp);
    // Adding before taking the logarithm would make the middle of two depend on the unit.
    f64::midpoint(log_cost(speeds[(speeds.len() - 1) / 2]), log_cost(speeds[speeds.len() / 2]))
}

fn log_cost(speed: f64) -> f64 {
    -speed.max(f64::MIN_POSITIVE).ln()
}

/// Where a node was slow for a while.
struct Slow {
    /// Which units lie in a stretch.
    units: Vec<bool>,
    /// Log cost halfway from the other units to the mildest stretch: dearer steps are slow.
    bar: f64,
}

/// The stretches, if there are any.
fn slow_units(costs: &[f64]) -> Option<Slow> {
    let noise = noise(costs);
    let mut mildest = f64::INFINITY;
    let mut open: Vec<usize> = (0..costs.len()).collect();
    for share in REST {
        let least = SHORTEST.max((share * costs.len() as f64).ceil() as usize);
        let own: Vec<f64> = open.iter().map(|at| costs[*at]).collect();
        let Some(block) = block(&own, least) else { break };
        let (from, to) = whole(&own, block, least);
        let [inside, outside] = medians(&own, (from, to));
        let shift = inside - outside;
        let (slow, rest) = ((to - from) as f64, (open.len() - (to - from)) as f64);
        let error = MEDIAN_ERROR * noise * (1.0 / slow + 1.0 / rest).sqrt();
        if shift < SHIFT || shift < CLEAR * error {
            break;
        }
        mildest = mildest.min(inside);
        open.drain(from..to);
    }
    let mut units = vec![true; costs.len()];
    open.iter().for_each(|at| units[*at] = false);
    let mut rest: Vec<f64> = open.iter().map(|at| costs[*at]).collect();
    rest.sort_unstable_by(f64::total_cmp);
    let bar = f64::midpoint(median_of_sorted(&rest), mildest);
    (open.len() < costs.len()).then_some(Slow { units, bar })
}

/// Median cost inside of a block and outside.
fn medians(costs: &[f64], (from, to): (usize, usize)) -> [f64; 2] {
    [costs[from..to].to_vec(), [&costs[..from], &costs[to..]].concat()].map(|mut part| {
        part.sort_unstable_by(f64::total_cmp);
        median_of_sorted(&part)
    })
}

/// The block with those of its neighbours that are nearer to its median than to the others': its ends may be taken for
/// spikes.
fn whole(costs: &[f64], (mut from, mut to): (usize, usize), least: usize) -> (usize, usize) {
    let [inside, outside] = medians(costs, (from, to));
    let belongs = |at: usize| costs[at] > f64::midpoint(inside, outside);
    let room = |from: usize, to: usize| costs.len() - (to - from) > least;
    while to < costs.len() && room(from, to) && belongs(to) {
        to += 1;
    }
    while from > 0 && room(from, to) && belongs(from - 1) {
        from -= 1;
    }
    (from, to)
}

/// Standard deviation of a cost, by its neighbours: a stretch changes two differences only.
fn noise(costs: &[f64]) -> f64 {
    let mut steps: Vec<f64> = costs.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    steps.sort_unstable_by(f64::total_cmp);
    (median_of_sorted(&steps) / NEIGHBOURS).max(FLOOR)
}

/// The block that explains most of how costs differ (least squares), of which `least` others are left.
fn block(costs: &[f64], least: usize) -> Option<(usize, usize)> {
    let n = costs.len();
    let calm = without_spikes(costs);
    let mean = calm.iter().sum::<f64>() / n as f64;
    let mut sums = vec![0.0; n + 1];
    for (at, cost) in calm.into_iter().enumerate() {
        sums[at + 1] = sums[at] + cost - mean;
    }
    let mut best = (0.0, None);
    for from in 0..n {
        for to in from + SHORTEST..=n.min(from + n.saturating_sub(least)) {
            let (sum, slow) = (sums[to] - sums[from], (to - from) as f64);
            let clear = sum / (slow * (n as f64 - slow)).sqrt();
            if clear > best.0 {
                best = (clear, Some((from, to)));
            }
        }
    }
    best.1
}

/// The middle of every cost and its neighbours; at the ends, the lower of two.
fn without_spikes(costs: &[f64]) -> Vec<f64> {
    let middle = |at: usize| {
        let (own, after) = (costs[at], costs.get(at + 1).copied());
        match (at.checked_sub(1).map(|before| costs[before]), after) {
            (Some(before), Some(after)) => own.clamp(before.min(after), before.max(after)),
            (Some(beside), None) | (None, Some(beside)) => own.min(beside),
            (None, None) => own,
        }
    };
    (0..costs.len()).map(middle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chance;
    use Direction::{HigherIsBetter, LowerIsBetter};

    #[test]
    fn a_spike_is_lowered_to_its_neighbours_and_an_end_to_the_one_beside_it() {
        assert_eq!(without_spikes(&[1.0, 9.0, 2.0, 3.0]), [1.0, 2.0, 3.0, 2.0]);
        assert_eq!((without_spikes(&[4.0]), without_spikes(&[])), (vec![4.0], vec![]));
    }

    /// Share of series without a stretch in which one is found.
    fn found(steps: usize, series: impl Fn(&mut Chance, usize) -> Vec<f64>) -> f64 {
        let mut chance = Chance::new(5);
        let one =
            |chance: &mut Chance| find(&Sample::in_steps(&series(chance, steps)).unwrap(), LowerIsBetter).is_some();
        (0..2000).filter(|_| one(&mut chance)).count() as f64 / 2000.0
    }

    fn normal(chance: &mut Chance, steps: usize) -> Vec<f64> {
        (0..steps).map(|_| (0.2 * chance.normal()).exp()).collect()
    }

    fn t3(chance: &mut Chance, steps: usize) -> Vec<f64> {
        (0..steps).map(|_| (0.1 * chance.normal() / (chance.gamma(1.5) / 1.5).sqrt()).exp()).collect()
    }

    fn pareto(chance: &mut Chance, steps: usize) -> Vec<f64> {
        let tail = |chance: &mut Chance| if chance.unit() < 0.1 { chance.unit().max(0.05).powf(-0.7) } else { 1.0 };
        (0..steps).map(|_| (0.1 * chance.normal()).exp() * tail(chance)).collect()
    }

    fn wandering(chance: &mut Chance, steps: usize) -> Vec<f64> {
        let mut at = chance.normal();
        let mut next = || {
            at = 0.5f64.mul_add(at, 0.75f64.sqrt() * chance.normal());
            (0.2 * at).exp()
        };
        (0..steps).map(|_| next()).collect()
    }

    /// Costs around 1 with the steps `from..to` of each of `slow` that much dearer.
    fn disturbed(steps: usize, slow: &[(std::ops::Range<usize>, f64)]) -> Vec<f64> {
        let mut costs: Vec<f64> = normal(&mut Chance::new(3), steps).iter().map(|cost| cost.powf(0.1)).collect();
        for (range, factor) in slow {
            costs[range.clone()].iter_mut().for_each(|cost| *cost *= factor);
        }
        costs
    }

    fn seen(costs: &[f64]) -> Option<(u32, u32, u32)> {
        find(&Sample::in_steps(costs).unwrap(), LowerIsBetter).map(|of| (of.from, of.to, of.slow))
    }

    #[test]
    fn a_stretch_of_slow_steps_is_found_where_it_lies() {
        assert_eq!(seen(&disturbed(32, &[(12..31, 3.0)])), Some((13, 31, 19)));
        assert_eq!(seen(&disturbed(32, &[(0..5, 1.3)])), Some((1, 5, 5)));
        assert_eq!(seen(&disturbed(32, &[(0..8, 1.5), (20..29, 4.0)])), Some((1, 29, 17)));
        // Of 1,000 steps, sixteen at a time are looked at.
        assert_eq!(seen(&disturbed(1000, &[(320..640, 1.5)])), Some((321, 640, 320)));
    }

    #[test]
    fn what_is_said_of_slow_steps_is_what_the_steps_are() {
        let three = disturbed(64, &[(4..16, 2.0), (25..37, 2.0), (46..58, 2.0)]);
        assert_eq!(seen(&three), Some((5, 58, 36)));
        let mut scattered = disturbed(64, &[(29..32, 2.0)]);
        [2, 9, 16, 44, 51, 60].into_iter().for_each(|step: usize| scattered[step] *= 2.0);
        assert_eq!(seen(&scattered), Some((3, 61, 9)));
    }

    #[test]
    fn slow_throughout_or_now_and_then_is_no_stretch() {
        assert_eq!(seen(&disturbed(32, &[])), None);
        assert_eq!(seen(&disturbed(32, &[(0..32, 3.0)])), None);
        assert_eq!(seen(&disturbed(32, &[(0..30, 3.0)])), None);
        for period in [2, 3, 5] {
            let mut costs = disturbed(32, &[]);
            costs.iter_mut().skip(period / 2).step_by(period).for_each(|cost| *cost += 4.0);
            assert_eq!(seen(&costs), None, "every {period} steps");
        }
        let sorted = Sample::new(&disturbed(32, &[(12..31, 3.0)])).unwrap();
        assert!(find(&sorted, LowerIsBetter).is_none(), "the order of steps is not known");
    }

    #[test]
    fn the_steps_outside_are_the_same_from_rates_and_from_times() {
        let times = disturbed(32, &[(12..31, 3.0)]);
        let rates: Vec<f64> = times.iter().map(|cost| 7.0 / cost).collect();
        let loss = |values: &[f64], direction, centre: f64| {
            let stretch = find(&Sample::in_steps(values).unwrap(), direction).unwrap();
            [Look::MedianStep, Look::MeanStep].map(|look| stretch.loss(look, direction, centre, 0.003))
        };
        let (down, up) = (loss(&times, LowerIsBetter, 2.0), loss(&rates, HigherIsBetter, 14.0));
        assert!(down.iter().zip(up).all(|(a, b)| (a - b).abs() < 1e-9), "{down:?} {up:?}");
        // Half as fast by 13 steps of 32: as much as 0.32 by all of them.
        assert!((down[0] - 0.5 * (13.0f64 / 32.0).sqrt()).abs() < 0.01, "{down:?}");
    }

    #[test]
    fn the_block_is_the_one_that_explains_most_of_all_that_are_dearer_than_the_rest() {
        let mut chance = Chance::new(11);
        for _ in 0..400 {
            let (n, least) = (4 + chance.below(24), 1 + chance.below(9));
            let costs: Vec<f64> =
                (0..n).map(|_| chance.normal() + if chance.unit() < 0.3 { 2.0 } else { 0.0 }).collect();
            let calm = without_spikes(&costs);
            let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
            // Sum of squares between the two parts: what their means explain.
            let explained = |(from, to): (usize, usize)| {
                let rest = [&calm[..from], &calm[to..]].concat();
                let apart = mean(&calm[from..to]) - mean(&rest);
                apart.max(0.0).powi(2) * ((to - from) * rest.len()) as f64
            };
            let all = (0..n).flat_map(|from| (from + SHORTEST..=n).map(move |to| (from, to)));
            let fits = all.filter(|(from, to)| to - from + least <= n);
            let most = fits.map(explained).fold(0.0, f64::max);
            let found = block(&costs, least);
            assert_eq!(found.is_some(), most > 0.0, "{costs:?} {least}");
            if let Some(found) = found {
                assert!(found.1 - found.0 >= SHORTEST && found.1 - found.0 + least <= n, "{found:?} {n} {least}");
                assert!((explained(found) / most - 1.0).abs() < 1e-9, "{costs:?} {least}: {found:?}");
            }
        }
    }

    #[test]
    fn a_block_takes_in_neighbours_that_are_nearer_to_it_first_after_it_and_leaves_the_least() {
        let costs = [0.0, 0.6, 0.7, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.0, 0.0, 0.9];
        assert_eq!(medians(&costs, (3, 6)), [1.0, 0.6]);
        let costs = [0.0, 0.0, 0.7, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.0, 0.0, 0.0];
        assert_eq!(medians(&costs, (3, 6)), [1.0, 0.0]);
        for (least, of) in [(1, (2, 8)), (6, (2, 8)), (7, (3, 8)), (8, (3, 7)), (9, (3, 6)), (12, (3, 6))] {
            assert_eq!(whole(&costs, (3, 6), least), of, "{least}");
        }
        assert_eq!(whole(&[1.0, 1.0, 1.0, 0.0, 0.0], (1, 3), 2), (0, 3), "up to the first");
        assert_eq!(whole(&[0.0, 0.0, 1.0, 1.0, 1.0], (2, 4), 2), (2, 5), "and the last");
    }

    #[test]
    fn noise_is_that_of_neighbours_and_a_stretch_must_be_clear_of_it() {
        assert!((noise(&[0.0, 1.0, 0.0, 1.0, 5.0]) - 1.0 / (0.6745 * 2.0f64.sqrt())).abs() < 1e-9);
        assert_eq!(noise(&[3.0; 5]), FLOOR);
        // Every other of 32 costs is dearer by 0.1; of the middle eight all are, by so much.
        let found = |by: f64, apart: f64| {
            let cost = |at: usize| by * f64::from(u8::from((12..20).contains(&at))) + apart * (at % 2) as f64;
            slow_units(&(0..32).map(cost).collect::<Vec<_>>()).map(|of| (of.units, of.bar))
        };
        // Standard error of the difference of the medians of eight and of 24.
        let error = 1.25 * 0.1 / (0.6745 * 2.0f64.sqrt()) * (1.0 / 8.0 + 1.0 / 24.0f64).sqrt();
        assert!(found(3.9 * error, 0.1).is_none());
        let (units, bar) = found(4.3 * error, 0.1).unwrap();
        assert_eq!(units.iter().filter(|slow| **slow).count(), 8);
        assert!((bar - (0.05 + 4.3 * error / 2.0)).abs() < 1e-9, "{bar}");
        assert!(found(0.049, 0.0).is_none() && found(0.051, 0.0).is_some(), "a difference that matters");
    }

    #[test]
    fn a_stretch_is_seldom_found_by_chance() {
        for steps in [12, 16, 32] {
            let [normal, t3, pareto, wandering] =
                [found(steps, normal), found(steps, t3), found(steps, pareto), found(steps, wandering)];
            println!("{steps} steps: normal {normal}, t3 {t3}, pareto {pareto}, wandering {wandering}");
            assert!(normal <= 0.02 && t3 <= 0.03 && pareto <= 0.15 && wandering <= 0.35, "{steps} steps");
        }
    }
}

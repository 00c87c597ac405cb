//! Weak evidence that lasts: a few percent for many minutes, which no single block shows.

use super::cell::Cell;
use super::order::spread;
use super::settings::{MISSING, RECENT, RING};

/// Standard deviations of the last minute past which it is evidence, and what a block counts at most.
const USUAL: f64 = 1.5;
const MOST: f64 = 4.0;
/// Standard deviations below which the minute is calm, and what it then takes away in addition.
const CALM: f64 = 0.75;
const CALM_TAKES: f64 = 1.5;
/// What a block takes away at most.
const LEAST: f64 = -3.0;
/// Evidence that names a machine if a second metric has half of it.
pub(super) const NAMES: f64 = 40.0;
/// How far evidence may exceed that, so that it also ends.
const CEILING: f64 = 2.2 * NAMES;
/// Blocks of the last minute that must have a value.
const PRESENT: usize = 4;
/// Standard deviations to which one block of the minute is cut.
const CUT: f64 = 3.0;
/// Smallest mean deviation that is worth an accusation.
const WORTH: f64 = 0.08;
/// Correction of a spread taken from few blocks.
const FEW: f64 = 8.0;

/// Weak evidence that a node is on one side of its peers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slow {
    pub(super) sum: f64,
    /// The last block without evidence.
    pub(super) zero: i64,
    /// Whether it began together with the evidence of a whole group.
    pub(super) shared: bool,
    /// Deviations since then, added up.
    drift: f64,
}

impl Slow {
    pub(super) const fn new(block: i64) -> Self {
        Self { sum: 0.0, zero: block, shared: false, drift: 0.0 }
    }

    pub(super) fn forget(&mut self) {
        (self.sum, self.shared, self.drift) = (0.0, false, 0.0);
    }

    /// Takes what a block adds, and its deviation towards this side.
    fn add(&mut self, step: f64, deviation: f64, block: i64) {
        self.sum = (self.sum + step).clamp(0.0, CEILING);
        if self.sum <= 0.0 {
            (self.zero, self.shared, self.drift) = (block, false, 0.0);
        } else {
            self.drift += deviation.clamp(-1.0, 1.0);
        }
    }

    /// Mean deviation since the evidence began.
    fn mean(&self, block: i64) -> f64 {
        self.drift / (block - self.zero).max(1) as f64
    }

    /// The evidence where the deviation is worth it, otherwise none.
    pub(super) fn worth(&self, block: i64, floor: f64) -> f64 {
        if self.mean(block) >= WORTH.max(2.0 * floor) { self.sum } else { 0.0 }
    }

    /// The evidence where the deviation is so large that it needs no second metric.
    pub(super) fn alone(&self, block: i64, floor: f64) -> f64 {
        if self.mean(block) >= 2.0 * WORTH { self.worth(block, floor) } else { 0.0 }
    }
}

/// What a block takes or adds, by the deviation of the last minute towards this side.
fn step(z6: f64) -> f64 {
    let calm = if z6 < CALM { CALM_TAKES } else { 0.0 };
    (z6.clamp(-MOST, MOST) - USUAL - calm).max(LEAST)
}

/// Spread of the means of six consecutive learned ratios; NaN with fewer.
pub(super) fn spread_of_means(cell: &Cell, scratch: &mut Vec<f64>) -> f64 {
    let mut ratios = [0.0; RING];
    let mut n = 0;
    for (place, ratio) in ratios.iter_mut().zip(cell.usual.in_order()) {
        *place = ratio / cell.now.gain - 1.0;
        n += 1;
    }
    scratch.clear();
    scratch.extend(ratios[..n].windows(RECENT).map(|six| (six.iter().sum::<f64>() / RECENT as f64).abs()));
    spread(scratch)
}

impl Cell {
    /// Mean deviation of the last minute in standard deviations, from the `spread` of such means, its own or the usual one.
    pub(super) fn minute(&self, spread: f64, floor: f64) -> f64 {
        let (sum, n) = self.recent.iter().filter(|d| d.is_finite()).fold((0.0, 0), |(sum, n), d| (sum + d, n + 1));
        let sigma = (spread * (1.0 + FEW / self.usual.count().max(1) as f64)).hypot(floor);
        let z6 = sum / n as f64 / sigma;
        if n >= PRESENT && self.is_settled() && z6.is_finite() { z6 } else { 0.0 }
    }

    /// Remembers the deviation of `block` for the minute.
    pub(super) fn remember(&mut self, block: i64) {
        let (now, place) = (self.now, block.rem_euclid(RECENT as i64) as usize);
        let cut = CUT * now.sigma;
        self.recent[place] = if now.ready { now.deviation.clamp(-cut, cut) } else { f64::NAN };
    }

    /// Adds the weak evidence of `block`.
    pub(super) fn add_slow(&mut self, block: i64) {
        let known = self.recent.iter().filter(|d| d.is_finite()).count() >= PRESENT;
        for (slow, side) in self.slow.iter_mut().zip(super::cell::Side::BOTH) {
            let toward = |value: f64| if self.now.ready { side.sign() * value } else { 0.0 };
            let step = match () {
                () if self.now.ready && known => step(side.sign() * self.now.z6),
                () if self.missing > MISSING => -USUAL,
                () => 0.0,
            };
            slow.add(step, toward(self.now.deviation), block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lasting_weak_deviation_adds_up_and_a_small_one_is_not_worth_it() {
        let mut slow = Slow::new(0);
        (1..=30).for_each(|block| slow.add(step(4.0), 0.10, block));
        assert!(slow.worth(30, 0.02) >= NAMES && slow.alone(30, 0.02) <= 0.0, "{slow:?}");
        assert!(slow.worth(30, 0.06) <= 0.0, "twice the smallest spread is more than that");
        let mut large = Slow::new(0);
        (1..=40).for_each(|block| large.add(step(4.0), 0.30, block));
        assert!(large.alone(40, 0.02) >= 2.0 * NAMES, "{large:?}");
    }

    #[test]
    fn what_is_calm_again_is_forgotten() {
        let mut slow = Slow::new(0);
        slow.add(step(4.0), 0.1, 1);
        (2..=5).for_each(|block| slow.add(step(0.0), 0.0, block));
        assert!(slow.sum <= 0.0 && slow.zero == 5 && slow.drift == 0.0);
    }

    #[test]
    fn a_block_adds_by_the_deviation_of_its_minute() {
        for (z6, adds) in [
            (9.0, 2.5),
            (4.0, 2.5),
            (2.5, 1.0),
            (1.5, 0.0),
            (1.0, -0.5),
            (0.75, -0.75),
            // Below that it is calm, which takes more.
            (0.7, -2.3),
            (0.0, -3.0),
            (-9.0, -3.0),
        ] {
            assert!((step(z6) - adds).abs() < 1e-12, "{z6}: {}", step(z6));
        }
    }

    #[test]
    fn evidence_is_worth_its_sum_from_eight_per_cent_on_average_and_alone_from_sixteen() {
        let of = |deviation: f64, floor: f64| {
            let mut slow = Slow::new(10);
            (11..=20).for_each(|block| slow.add(2.5, deviation, block));
            (slow.worth(20, floor), slow.alone(20, floor))
        };
        assert_eq!(of(0.081, 0.02), (25.0, 0.0));
        assert_eq!(of(0.079, 0.02), (0.0, 0.0));
        assert_eq!((of(0.159, 0.02), of(0.161, 0.02)), ((25.0, 0.0), (25.0, 25.0)));
        assert_eq!(
            (of(0.19, 0.10), of(0.21, 0.10)),
            ((0.0, 0.0), (25.0, 25.0)),
            "twice the least that is taken seriously"
        );
        // Nothing counts for more than all of the level.
        let mut slow = Slow::new(0);
        slow.add(2.5, 40.0, 1);
        (2..=10).for_each(|block| slow.add(0.0, 0.0, block));
        assert!((slow.mean(10) - 0.1).abs() < 1e-12 && slow.mean(0) == 1.0);
    }

    #[test]
    fn weak_evidence_has_a_ceiling_so_that_it_also_ends() {
        let mut slow = Slow::new(0);
        (1..=99).for_each(|block| slow.add(2.5, 0.1, block));
        assert!((slow.sum - 88.0).abs() < 1e-9, "{slow:?}");
        slow.shared = true;
        (100..=128).for_each(|block| slow.add(-3.0, 0.0, block));
        assert!(slow.sum > 0.0 && slow.shared && slow.zero == 0);
        slow.add(-3.0, 0.0, 130);
        assert!(slow.sum == 0.0 && !slow.shared && slow.zero == 130);
    }

    #[test]
    fn the_spread_of_a_minute_is_that_of_means_of_six_blocks_in_their_order() {
        let mut cell = Cell::new(0);
        let ratios: Vec<f64> = (0..70).map(|at| 0.8 + 0.01 * f64::from(at * 7 % 11)).collect();
        ratios.iter().for_each(|ratio| cell.usual.push(*ratio));
        cell.now.gain = 0.9;
        let last = &ratios[10..];
        let mut means: Vec<f64> = (0..=54)
            .map(|at| (last[at..at + 6].iter().map(|ratio| ratio / 0.9 - 1.0).sum::<f64>() / 6.0).abs())
            .collect();
        let expected = spread(&mut means);
        let found = spread_of_means(&cell, &mut Vec::new());
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        let mut young = Cell::new(0);
        (0..5).for_each(|_| young.usual.push(1.0));
        assert!(spread_of_means(&young, &mut Vec::new()).is_nan());
    }

    #[test]
    fn a_minute_of_four_values_is_measured_by_its_spread_which_is_wider_while_little_is_known() {
        let minute = |present: usize, learned: usize, spread: f64| {
            let mut cell = Cell::new(0);
            (0..learned).for_each(|_| cell.usual.push(1.0));
            cell.recent[..present].fill(0.12);
            cell.minute(spread, 0.02)
        };
        let expected = 0.12 / (0.05 * (1.0 + 8.0 / 32.0_f64)).hypot(0.02);
        assert!((minute(6, 32, 0.05) - expected).abs() < 1e-12 && (minute(4, 32, 0.05) - expected).abs() < 1e-12);
        assert_eq!((minute(3, 32, 0.05), minute(6, 23, 0.05), minute(6, 32, f64::NAN)), (0.0, 0.0, 0.0));
        assert!(minute(6, 24, 0.05) > 0.0);
    }

    #[test]
    fn one_block_counts_three_deviations_at_most_in_its_minute_and_none_that_could_not_be_judged() {
        let mut cell = Cell::new(0);
        for (block, deviation, ready, kept) in
            [(0, 0.05, true, 0.05), (1, 0.5, true, 0.3), (2, -0.5, true, -0.3), (9, 0.2, true, 0.2)]
        {
            (cell.now.deviation, cell.now.sigma, cell.now.ready) = (deviation, 0.1, ready);
            cell.remember(block);
            assert!((cell.recent[block as usize % 6] - kept).abs() < 1e-12);
        }
        cell.now.ready = false;
        cell.remember(0);
        assert!(cell.recent[0].is_nan() && cell.recent[1..4].iter().all(|value| value.is_finite()));
    }

    #[test]
    fn what_is_missing_for_long_takes_evidence_away_and_a_short_gap_changes_nothing() {
        let added = |ready: bool, recent: usize, missing: u32| {
            let mut cell = Cell::new(0);
            cell.slow[0].sum = 20.0;
            cell.recent[..recent].fill(0.1);
            (cell.now.ready, cell.now.z6, cell.now.deviation, cell.missing) = (ready, 4.0, 0.1, missing);
            cell.add_slow(1);
            cell.slow[0].sum - 20.0
        };
        assert_eq!(added(true, 6, 0), 2.5);
        assert_eq!((added(true, 4, 0), added(true, 3, 0)), (2.5, 0.0), "four blocks of the minute are needed");
        assert_eq!((added(false, 6, 6), added(false, 6, 7)), (0.0, -1.5));
    }
}

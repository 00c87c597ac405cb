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
}

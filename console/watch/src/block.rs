//! One value from the seconds of a block.

use super::settings::{BLOCK, KEPT, OPEN};

/// Samples with which the smallest and the largest are left out.
const TRIM: usize = 5;
/// Samples that make a value.
const LEAST: usize = 3;
/// A sensor that shows the same number for a whole block is frozen, unless that number is about the largest seen: 100 % may last.
const NEAR_TOP: f64 = 0.98;
/// Share of earlier blocks in which a sensor must have moved to be called frozen when it does not.
const MOVES: f64 = 0.8;

/// Seconds of the blocks that wait for their end, and of the last four minutes before them. No sensor has more digits than single
/// precision.
#[derive(Clone, Debug)]
pub(super) struct Seconds {
    samples: [[f32; BLOCK]; KEPT],
    /// Blocks with a value, and those of them whose samples differed.
    counted: u32,
    moved: u32,
}

impl Default for Seconds {
    fn default() -> Self {
        Self { samples: [[f32::NAN; BLOCK]; KEPT], counted: 0, moved: 0 }
    }
}

/// The samples of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summary {
    count: usize,
    sum: f64,
    least: f64,
    /// Largest sample; minus infinity without any.
    pub(super) most: f64,
}

impl Seconds {
    /// Takes a value; a later one of the same second replaces it.
    pub(super) fn put(&mut self, block: i64, second: usize, value: f64) {
        self.samples[place(block)][second % BLOCK] = value as f32;
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        self.samples = [[f32::NAN; BLOCK]; KEPT];
    }

    /// The sample of an epoch second of the last blocks; NaN without one.
    pub(super) fn at(&self, second: i64) -> f64 {
        let block = second.div_euclid(BLOCK as i64);
        f64::from(self.samples[place(block)][second.rem_euclid(BLOCK as i64) as usize])
    }

    /// The samples of `block`; the oldest give their room to the block that may now begin.
    pub(super) fn take(&mut self, block: i64) -> Summary {
        let mut all = Summary { count: 0, sum: 0.0, least: f64::INFINITY, most: f64::NEG_INFINITY };
        for value in self.samples[place(block)].iter().copied().map(f64::from) {
            if value.is_finite() {
                all.count += 1;
                all.sum += value;
                (all.least, all.most) = (all.least.min(value), all.most.max(value));
            }
        }
        self.samples[place(block + OPEN as i64)].fill(f32::NAN);
        all
    }

    /// Mean of the samples without the smallest and the largest; NaN where there are too few, and where the sensor is frozen.
    /// `top` is the largest sample that any node has shown in this metric.
    pub(super) fn value(&mut self, all: Summary, top: f64) -> f64 {
        if all.count < LEAST {
            return f64::NAN;
        }
        let same = all.least >= all.most;
        let usually_moves = f64::from(self.moved) > MOVES * f64::from(self.counted);
        self.counted = self.counted.saturating_add(1);
        self.moved = self.moved.saturating_add(u32::from(!same));
        if same && all.most > 0.0 && all.most < NEAR_TOP * top && usually_moves {
            return f64::NAN;
        }
        if all.count >= TRIM {
            (all.sum - all.least - all.most) / (all.count - 2) as f64
        } else {
            all.sum / all.count as f64
        }
    }
}

const fn place(block: i64) -> usize {
    block.rem_euclid(KEPT as i64) as usize
}

#[cfg(test)]
mod tests {
    use super::super::settings::HISTORY;
    use super::*;

    fn value(seconds: &mut Seconds, samples: &[f64], top: f64) -> f64 {
        for (second, &sample) in samples.iter().enumerate() {
            seconds.put(0, second, sample);
        }
        let all = seconds.take(0);
        let value = seconds.value(all, top);
        seconds.clear();
        value
    }

    #[test]
    fn a_block_is_the_mean_without_its_extremes_and_needs_three_samples() {
        let mut seconds = Seconds::default();
        assert!((value(&mut seconds, &[1.0, 2.0, 3.0, 4.0, 90.0], 100.0) - 3.0).abs() < 1e-12);
        assert!((value(&mut seconds, &[1.0, 2.0, 6.0, f64::NAN], 100.0) - 3.0).abs() < 1e-12);
        assert!(value(&mut seconds, &[1.0, 2.0], 100.0).is_nan());
    }

    #[test]
    fn a_sensor_that_stands_still_is_missing_unless_it_always_did_or_shows_the_top() {
        let mut seconds = Seconds::default();
        assert!((value(&mut seconds, &[50.0; 10], 100.0) - 50.0).abs() < 1e-12, "nothing is known of it yet");
        for _ in 0..9 {
            value(&mut seconds, &[49.0, 50.0, 51.0], 100.0);
        }
        assert!(value(&mut seconds, &[50.0; 10], 100.0).is_nan());
        assert!((value(&mut seconds, &[99.0; 10], 100.0) - 99.0).abs() < 1e-12);
        assert!(value(&mut seconds, &[0.0; 10], 100.0).abs() < 1e-12, "idle is no frozen sensor");
    }

    #[test]
    fn several_blocks_are_open_at_once_and_four_minutes_are_remembered() {
        let mut seconds = Seconds::default();
        for block in 0..100 {
            (0..=4).for_each(|ahead| seconds.put(block + ahead, 3, (block + ahead) as f64));
            assert_eq!(seconds.take(block).count, 1);
            let first = 0.max(block + 1 - HISTORY as i64);
            (first..=block).for_each(|old| assert!((seconds.at(10 * old + 3) - old as f64).abs() < 1e-9, "{old}"));
        }
        assert!(seconds.at(10 * 99 + 4).is_nan());
        assert_eq!(seconds.take(99 + OPEN as i64).count, 0, "what is new is empty");
    }

    #[test]
    fn a_sensor_is_frozen_below_98_per_cent_of_the_top_and_where_it_moved_in_more_than_four_of_five_blocks() {
        let frozen = |moved: usize, still: usize, shows: f64| {
            let mut seconds = Seconds::default();
            (0..moved).for_each(|_| {
                value(&mut seconds, &[49.0, 50.0, 51.0], 100.0);
            });
            // At nought nobody calls it frozen.
            (0..still).for_each(|_| {
                value(&mut seconds, &[0.0; 3], 100.0);
            });
            value(&mut seconds, &[shows; 3], 100.0).is_nan()
        };
        assert!(frozen(9, 2, 97.9) && !frozen(9, 2, 98.0));
        assert!(frozen(9, 2, 50.0) && !frozen(8, 2, 50.0) && frozen(5, 1, 50.0));
        assert!(!frozen(9, 0, -3.0), "what is below nought is no such sensor");
    }

    #[test]
    fn of_four_samples_all_count_and_of_five_the_extremes_do_not() {
        let mut seconds = Seconds::default();
        assert!((value(&mut seconds, &[1.0, 2.0, 3.0, 90.0], 100.0) - 24.0).abs() < 1e-9);
        assert!((value(&mut seconds, &[1.0, 2.0, 3.0, 4.0, 90.0, 5.0], 100.0) - 3.5).abs() < 1e-9);
    }

    #[test]
    fn half_a_minute_may_be_waited_for_and_four_minutes_are_looked_back_on() {
        // Three blocks that wait, the one that lasts, the next one, and one to spare.
        assert_eq!((OPEN, HISTORY, KEPT), (6, 24, 30));
    }
}

//! How a node's monotonic clock stands to ours: what the console's own time is at one of its readings.

use std::time::Duration;

/// A clock as one question and its answer showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// Its reading at our epoch, nanoseconds.
    at_epoch_ns: i128,
    /// Half of the fastest round trip: it cannot be more wrong than that.
    pub(super) error_ns: u64,
}

impl Clock {
    /// From a question sent at `sent` since the epoch, answered after `trip` with a reading taken in between.
    pub(super) fn from_answer(sent: Duration, trip: Duration, reading_ns: u64) -> Self {
        let middle = sent + trip / 2;
        Self { at_epoch_ns: i128::from(reading_ns) - middle.as_nanos() as i128, error_ns: trip.as_nanos() as u64 / 2 }
    }

    /// What it reads at a time since the epoch.
    pub(super) fn at(self, since_epoch: Duration) -> u64 {
        (self.at_epoch_ns + since_epoch.as_nanos() as i128).clamp(0, i128::from(u64::MAX)) as u64
    }

    /// Seconds from the epoch to one of its readings; negative before it.
    pub(super) fn since_epoch_s(self, reading_ns: u64) -> f64 {
        (i128::from(reading_ns) - self.at_epoch_ns) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_known_to_half_a_round_trip() {
        let ms = Duration::from_millis;
        // The reading was taken somewhere within the 4 ms of the trip.
        for taken in 10..=14 {
            let clock = Clock::from_answer(ms(10), ms(4), 1_000_000_000 + taken * 1_000_000);
            assert_eq!(clock.error_ns, 2_000_000);
            assert!(clock.at(ms(100)).abs_diff(1_100_000_000) <= clock.error_ns);
            assert!((clock.since_epoch_s(1_100_000_000) - 0.1).abs() <= 0.002_000_001);
        }
    }
}

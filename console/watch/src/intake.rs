//! Which ticks are taken, and in which second of which block they lie.

use super::settings::{BLOCK, GRACE, LONGEST_GRACE};

/// Blocks ahead of or behind the open one past which a time is not believed at once: one hour.
const FAR: i64 = 360;
/// Ticks in a row at such a time after which it is believed: the recording has a gap, or the first time was wrong.
const BELIEVED: u32 = 64;
/// Seconds of calm after which late nodes are waited for no longer.
const FORGIVEN: f64 = 600.0;
/// Epoch seconds past which a time is none, and magnitude past which a value is none.
const LATEST: f64 = 1e11;
const LARGEST: f64 = 1e30;

/// A node of a [`super::Watch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeIndex(pub(super) usize);

/// A metric of a [`super::Watch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricIndex(pub(super) usize);

/// Ticks that were not taken, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Not a number, infinite, or larger than any sensor shows.
    pub values: u64,
    /// Not a time.
    pub times: u64,
    /// Older than the open block: late, or of a clock that ran backwards.
    pub late: u64,
    /// More than an hour ahead.
    pub ahead: u64,
    /// Names past the limits of nodes, metrics or cells.
    pub names: u64,
}

/// Where a tick belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere; it was counted.
    Dropped,
    /// To this second of this block.
    At(i64, usize),
    /// The same, and what was learned before lies too far away.
    Afresh(i64, usize),
}

/// The open block and what was taken so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Intake {
    pub(super) dropped: Dropped,
    /// The block that is open; ticks of the next one are taken, too.
    pub(super) open: Option<i64>,
    /// First and last time taken.
    pub(super) span: Option<(f64, f64)>,
    /// Newest time since the last new beginning.
    newest: f64,
    far: u32,
    /// Seconds that rows were late by at most, and when a row was as late for the last time.
    lateness: f64,
    late_at: f64,
}

impl Intake {
    /// Where a tick belongs, by its time and value.
    pub(super) fn place(&mut self, time_s: f64, value: f64) -> Place {
        if !(0.0..=LATEST).contains(&time_s) {
            self.dropped.times += 1;
            return Place::Dropped;
        }
        if value.is_nan() || value.abs() > LARGEST {
            self.dropped.values += 1;
            return Place::Dropped;
        }
        let block = (time_s / BLOCK as f64).floor() as i64;
        let second = (time_s.floor() as i64 - block * BLOCK as i64).clamp(0, BLOCK as i64 - 1) as usize;
        let apart = self.open.map_or(0, |open| block - open);
        let far = apart.abs() > FAR;
        self.far = if far { self.far + 1 } else { 0 };
        if far && self.far >= BELIEVED {
            *self =
                Self { dropped: self.dropped, span: self.span, open: Some(block), newest: time_s, ..Self::default() };
            self.take(time_s);
            return Place::Afresh(block, second);
        }
        if apart < 0 {
            self.dropped.late += 1;
            self.wait_for(self.newest - (block + 1) as f64 * BLOCK as f64);
        } else if far {
            self.dropped.ahead += 1;
        }
        if apart < 0 || far {
            return Place::Dropped;
        }
        self.open.get_or_insert(block);
        self.newest = self.newest.max(time_s);
        self.take(time_s);
        if apart == 0 && self.is_as_late(self.newest - time_s) {
            self.late_at = self.newest;
        }
        Place::At(block, second)
    }

    fn take(&mut self, time_s: f64) {
        let (first, last) = self.span.unwrap_or((time_s, time_s));
        self.span = Some((first.min(time_s), last.max(time_s)));
    }

    /// A row came `late` seconds after the end of its block, which was closed. Blocks wait so long from now on, within a bound:
    /// rows of the same exporter are then taken. Who is on time pays nothing; who is late delays every alert by what is waited.
    fn wait_for(&mut self, late: f64) {
        if (GRACE..LONGEST_GRACE).contains(&late) {
            // The row that comes next may be a second later still.
            self.lateness = self.lateness.max((late + 1.0).min(LONGEST_GRACE));
            self.late_at = self.newest;
        }
    }

    fn is_as_late(&self, late: f64) -> bool {
        self.lateness > 0.0 && late > GRACE
    }

    /// Seconds that a block waits for late rows.
    pub(super) fn grace(&self) -> f64 {
        if self.newest - self.late_at <= FORGIVEN { GRACE.max(self.lateness) } else { GRACE }
    }

    /// The next block that is complete; it is then closed.
    pub(super) fn complete(&mut self) -> Option<i64> {
        if self.newest - self.late_at > FORGIVEN {
            self.lateness = 0.0;
        }
        self.close_if(self.grace())
    }

    /// The same at the end of a recording, when nothing late will come.
    pub(super) fn last(&mut self) -> Option<i64> {
        self.close_if(-1.0)
    }

    fn close_if(&mut self, grace: f64) -> Option<i64> {
        let open = self.open?;
        let over = self.newest >= ((open + 1) * BLOCK as i64) as f64 + grace;
        over.then(|| {
            self.open = Some(open + 1);
            open
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_placed_by_its_own_time_and_late_ones_are_counted() {
        let mut intake = Intake::default();
        assert_eq!(intake.place(1_000.7, 1.0), Place::At(100, 0));
        assert_eq!(intake.place(1_014.9, 1.0), Place::At(101, 4));
        assert_eq!(intake.complete(), None, "late rows may come for five seconds");
        intake.place(1_015.0, 1.0);
        assert_eq!((intake.complete(), intake.complete()), (Some(100), None));
        assert_eq!(intake.place(1_009.0, 1.0), Place::Dropped);
        assert_eq!(intake.dropped, Dropped { late: 1, ..Dropped::default() });
        intake.place(1_019.2, 1.0);
        assert_eq!((intake.last(), intake.last()), (Some(101), None));
    }

    #[test]
    fn a_late_exporter_is_waited_for_within_a_bound_and_not_for_ever() {
        let mut intake = Intake::default();
        let mut lost = Vec::new();
        for second in 0..400 {
            // One node is on time, one 17 s late, and nothing of a third that is minutes late is taken.
            intake.place(10_000.0 + f64::from(second), 1.0);
            while intake.complete().is_some() {}
            let before = intake.dropped.late;
            intake.place(10_000.0 + f64::from(second) - 17.0, 1.0);
            if second >= 17 && intake.dropped.late > before {
                lost.push(second);
            }
            intake.place(10_000.0 + f64::from(second) - 200.0, 1.0);
        }
        assert!(lost.len() <= 20 && lost.iter().all(|second| *second < 60), "{lost:?}");
        assert!((GRACE..=18.0).contains(&intake.grace()), "{}", intake.grace());
        for second in 400..1_200 {
            intake.place(10_000.0 + f64::from(second), 1.0);
            while intake.complete().is_some() {}
        }
        assert!((intake.grace() - GRACE).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_time_or_no_value_is_counted() {
        let mut intake = Intake::default();
        for (time, value) in [(f64::NAN, 1.0), (-1.0, 1.0), (1e300, 1.0), (5.0, f64::NAN), (5.0, 1e308)] {
            assert_eq!(intake.place(time, value), Place::Dropped);
        }
        assert_eq!((intake.dropped.times, intake.dropped.values, intake.open), (3, 2, None));
    }

    #[test]
    fn one_wrong_clock_does_not_carry_everybody_away_but_a_gap_is_believed() {
        let mut intake = Intake::default();
        intake.place(1_000.0, 1.0);
        assert_eq!(intake.place(90_000.0, 1.0), Place::Dropped);
        assert_eq!(intake.place(1_001.0, 1.0), Place::At(100, 1));
        let places: Vec<Place> = (0..64).map(|_| intake.place(90_000.0, 1.0)).collect();
        assert_eq!(places[63], Place::Afresh(9_000, 0));
        assert_eq!((intake.dropped.ahead, intake.open), (64, Some(9_000)));
    }
}

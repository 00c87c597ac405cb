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

    #[test]
    fn times_and_values_are_taken_up_to_their_bounds() {
        let place = |time_s: f64, value: f64| Intake::default().place(time_s, value);
        assert_eq!((place(0.0, 1.0), place(1e11, 1.0)), (Place::At(0, 0), Place::At(10_000_000_000, 0)));
        assert_eq!((place(-0.1, 1.0), place(1.1e11, 1.0)), (Place::Dropped, Place::Dropped));
        for (value, taken) in [(1e30, true), (-1e30, true), (1.1e30, false), (f64::NEG_INFINITY, false)] {
            assert_eq!(place(5.0, value) == Place::At(0, 5), taken, "{value}");
        }
        assert_eq!((place(9.999, 1.0), place(10.0, 1.0)), (Place::At(0, 9), Place::At(1, 0)));
    }

    #[test]
    fn an_hour_ahead_is_taken_and_more_is_believed_only_after_many_in_a_row() {
        let opened = || {
            let mut intake = Intake::default();
            intake.place(1_000.0, 1.0);
            intake
        };
        assert_eq!(opened().place(4_609.0, 1.0), Place::At(460, 9), "360 blocks after the open one");
        assert_eq!(opened().place(4_610.0, 1.0), Place::Dropped);
        let mut intake = opened();
        for _ in 0..3 {
            (0..63).for_each(|_| assert_eq!(intake.place(9_000.0, 1.0), Place::Dropped));
            assert_eq!(intake.place(1_001.0, 1.0), Place::At(100, 1), "one of the usual times begins the count anew");
        }
        assert_eq!((intake.dropped.ahead, intake.dropped.late), (189, 0));
        let back: Vec<Place> = (0..64).map(|_| intake.place(5_000.0 - 9_000.0 + 4_001.0, 1.0)).collect();
        assert_eq!(
            (back[62], back[63], intake.dropped.late),
            (Place::Dropped, Place::Dropped, 64),
            "100 blocks behind are not far"
        );
    }

    #[test]
    fn a_clock_that_was_set_back_by_hours_is_believed_too_and_the_span_holds_both() {
        let mut intake = Intake::default();
        intake.place(90_000.0, 1.0);
        let places: Vec<Place> = (0..64).map(|_| intake.place(1_003.0, 1.0)).collect();
        assert_eq!((places[62], places[63]), (Place::Dropped, Place::Afresh(100, 3)));
        assert_eq!((intake.span, intake.dropped.late), (Some((1_003.0, 90_000.0)), 63));
        assert_eq!(intake.complete(), None);
        intake.place(1_015.0, 1.0);
        assert_eq!(intake.complete(), Some(100), "five seconds after the end of the block, by the new clock");
    }

    #[test]
    fn who_is_late_by_five_to_thirty_seconds_is_waited_for_a_second_longer() {
        let late_by = |seconds: f64| {
            let mut intake = Intake::default();
            intake.place(100.0, 1.0);
            intake.place(115.0, 1.0);
            assert_eq!(intake.complete(), Some(10));
            intake.place(110.0 + seconds, 1.0);
            intake.place(109.0, 1.0);
            assert_eq!(intake.dropped.late, 1);
            intake.grace()
        };
        let found = [5.0, 17.0, 29.0, 29.5, 30.0, 300.0].map(late_by);
        assert_eq!(found, [6.0, 18.0, 30.0, 30.0, 5.0, 5.0]);
    }

    #[test]
    fn nobody_is_waited_for_any_more_ten_minutes_after_the_last_late_row() {
        let mut intake = Intake::default();
        intake.place(100.0, 1.0);
        intake.place(115.0, 1.0);
        intake.complete();
        intake.place(120.0, 1.0);
        intake.place(109.0, 1.0);
        assert_eq!((intake.grace(), intake.newest), (11.0, 120.0));
        // A row that is as late as that goes on being waited for.
        intake.place(300.0, 1.0);
        while intake.complete().is_some() {}
        intake.place(intake.open.unwrap() as f64 * 10.0 + 1.0, 1.0);
        intake.place(900.0, 1.0);
        assert_eq!(intake.grace(), 11.0, "600 s after 300 s");
        intake.place(900.5, 1.0);
        assert_eq!(intake.grace(), GRACE);
    }
}

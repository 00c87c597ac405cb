//! Which frames stand in which column, and how a moment is written.

use std::sync::Arc;

use muster_playbook::report::rfc3339;
use muster_watch::Frame;

/// The columns of time on the screen: each gathers `each` frames, and the last one is `last`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    /// Frames a column.
    pub(crate) each: u64,
    /// Number of the last column; the first frame of a watch is in column 0.
    pub(crate) last: u64,
    /// Columns.
    pub(crate) columns: u64,
}

impl Window {
    /// The column, from the left, that holds the frame with this number.
    pub(crate) fn column(&self, seq: u64) -> Option<u16> {
        let at = (seq / self.each.max(1)).checked_sub(self.first())?;
        u16::try_from(at).ok().filter(|at| u64::from(*at) < self.columns)
    }

    /// Number of the first column; until the columns are full, the watch begins at the left.
    pub(crate) fn first(&self) -> u64 {
        (self.last + 1).saturating_sub(self.columns)
    }

    /// The frames of column `x` from the left.
    pub(crate) fn frames<'f>(&self, frames: &'f [Arc<Frame>], x: u16) -> &'f [Arc<Frame>] {
        let Some(oldest) = frames.first().map(|frame| frame.seq) else { return &[] };
        let place = |seq: u64| usize::try_from(seq.saturating_sub(oldest)).unwrap_or(usize::MAX).min(frames.len());
        let begin = (self.first() + u64::from(x)) * self.each;
        &frames[place(begin)..place(begin + self.each)]
    }
}

/// The frame with this number, and where it stands.
pub(crate) fn find(frames: &[Arc<Frame>], seq: u64) -> Option<&Arc<Frame>> {
    let oldest = frames.first()?.seq;
    frames.get(usize::try_from(seq.checked_sub(oldest)?).ok()?)
}

/// The number of the frame that ends at `at_s` or just after it.
pub(crate) fn at(frames: &[Arc<Frame>], at_s: f64) -> Option<u64> {
    frames.iter().find(|frame| frame.end_s() >= at_s).or(frames.last()).map(|frame| frame.seq)
}

/// `14:03:20`, UTC.
pub(crate) fn clock(at_s: f64) -> String {
    rfc3339((at_s.max(0.0) * 1e3) as u64).get(11..19).unwrap_or_default().to_owned()
}

/// `14:03`, UTC.
pub(crate) fn minute(at_s: f64) -> String {
    clock(at_s).get(..5).unwrap_or_default().to_owned()
}

/// `40 s`, `2 min 10 s`, `1 h 5 min`.
pub(crate) fn lasting(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, _) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, rest) => format!("{minutes} min {rest} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_keep_their_frames_as_new_ones_come() {
        let window = |last| Window { each: 4, last, columns: 10 };
        assert_eq!(window(3).first(), 0, "a young watch begins at the left");
        assert_eq!((window(3).column(0), window(3).column(15), window(3).column(40)), (Some(0), Some(3), None));
        let late = window(30);
        assert_eq!((late.first(), late.column(84), late.column(123), late.column(83)), (21, Some(0), Some(9), None));
    }

    #[test]
    fn times_are_two_units_at_most() {
        assert_eq!(clock(1_760_000_593.0), "09:03:13");
        assert_eq!([40.0, 120.0, 130.0, 3_900.0].map(lasting), ["40 s", "2 min", "2 min 10 s", "1 h 5 min"]);
    }
}

//! A replay: which part of a recording is shown, and how fast it goes on.

use muster_playbook::report::rfc3339;

/// Where a replay is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replay {
    /// The moment that is shown, milliseconds since 1970 UTC.
    pub at_ms: u64,
    /// The first one.
    pub from_ms: u64,
    /// The last one.
    pub until_ms: u64,
    /// Seconds of it that pass in a second.
    pub speed: f64,
    /// Whether it stands still.
    pub paused: bool,
}

impl Replay {
    /// Whether it is of one moment, as that of a case is: there is no time to go through.
    #[must_use]
    pub const fn is_moment(&self) -> bool {
        self.from_ms >= self.until_ms
    }

    /// `0:42 of 3:10`: how far it is.
    #[must_use]
    pub fn far(&self) -> String {
        let since = |ms: u64| clock(ms.saturating_sub(self.from_ms));
        format!("{} of {}", since(self.at_ms), since(self.until_ms))
    }

    /// `12x`: how fast it goes on.
    #[must_use]
    pub fn fast(&self) -> String {
        if self.speed >= 9.95 {
            format!("{:.0}x", self.speed)
        } else {
            format!("{}x", (self.speed * 10.0).round() / 10.0)
        }
    }

    /// `paused`, or `over` at the end; nothing while it goes on.
    #[must_use]
    pub const fn word(&self) -> Option<&'static str> {
        match self {
            Self { at_ms, until_ms, .. } if *at_ms >= *until_ms => Some("over"),
            Self { paused: true, .. } => Some("paused"),
            _ => None,
        }
    }

    /// The moment that is shown, as a day and a time of UTC.
    #[must_use]
    pub fn moment(&self) -> [String; 2] {
        let text = rfc3339(self.at_ms);
        [0..10, 11..19].map(|range| text.get(range).unwrap_or_default().to_owned())
    }
}

/// `3:10`, `1:02:03`.
fn clock(ms: u64) -> String {
    let (s, m, h) = (ms / 1_000 % 60, ms / 60_000 % 60, ms / 3_600_000);
    if h > 0 { format!("{h}:{m:02}:{s:02}") } else { format!("{m}:{s:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_says_how_far_it_is_how_fast_and_whether_it_stands() {
        let replay = Replay { at_ms: 1_042_900, from_ms: 1_000_000, until_ms: 4_790_000, speed: 12.4, paused: false };
        let said = |replay: Replay| (replay.far(), replay.fast(), replay.word());
        assert_eq!(said(replay), ("0:42 of 1:03:10".to_owned(), "12x".to_owned(), None));
        let slow = Replay { speed: 0.5, paused: true, ..replay };
        assert_eq!(said(slow), ("0:42 of 1:03:10".to_owned(), "0.5x".to_owned(), Some("paused")));
        assert_eq!(Replay { at_ms: 4_790_000, ..slow }.word(), Some("over"));
        assert_eq!(Replay { speed: 3.0, ..replay }.fast(), "3x");
        assert!(Replay { until_ms: 1_000_000, ..replay }.is_moment() && !replay.is_moment());
        assert_eq!(Replay { at_ms: 1_795_269_642_000, ..replay }.moment(), ["2026-11-21", "14:00:42"]);
    }
}

//! When is a result too old to describe the node as it is today, and how is that shown?
//!
//! Age changes no verdict. A stale pass is shown as stale, since nobody knows whether the node would still pass. A stale failure
//! stays a failure until the node is measured again, and is shown with its age.

use crate::judgement::{State, word};
use crate::snapshot::{NodeRow, Snapshot};
use crate::text::whole_age;
use crate::theme::{Role, Theme};
use crate::ui::Ui;

/// The word for it.
pub const WORD: &str = "stale";

/// What is stale at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Stale {
    limit_ms: u64,
    now_ms: u64,
}

impl Stale {
    /// Whatever is older than `limit_ms` at `now_ms`.
    #[must_use]
    pub const fn new(limit_ms: u64, now_ms: u64) -> Self {
        Self { limit_ms, now_ms }
    }

    /// By the clock of the screen.
    pub(crate) const fn now(ui: &Ui, snapshot: &Snapshot) -> Self {
        Self { limit_ms: snapshot.stale_result_ms, now_ms: ui.data_ms(snapshot) }
    }

    /// By the clock of the snapshot.
    pub(crate) const fn then(snapshot: &Snapshot) -> Self {
        let now_ms = match snapshot.replay() {
            Some(replay) => replay.at_ms,
            None => snapshot.now_ms,
        };
        Self { limit_ms: snapshot.stale_result_ms, now_ms }
    }

    fn age(self, at_ms: Option<u64>) -> Option<u64> {
        at_ms.map(|at| self.now_ms.saturating_sub(at)).filter(|age| *age > self.limit_ms)
    }

    /// Whether a result of that time is stale; one that never came is not.
    #[must_use]
    pub fn is(self, at_ms: Option<u64>) -> bool {
        self.age(at_ms).is_some()
    }

    /// `stale (41 d)`, if a result of that time is.
    #[must_use]
    pub fn words(self, at_ms: Option<u64>) -> Option<String> {
        self.age(at_ms).map(|age| format!("{WORD} ({})", days(age)))
    }

    /// `pass`, or `pass, stale (41 d)`.
    #[must_use]
    pub fn state(self, state: State, at_ms: Option<u64>) -> String {
        self.words(at_ms).map_or_else(|| word(state).to_owned(), |stale| format!("{}, {stale}", word(state)))
    }

    /// Glyph and word for a cell of a table, and how they are drawn.
    pub(crate) fn cell(self, theme: &Theme, state: State, at_ms: Option<u64>) -> (String, Role) {
        if hides(state) && self.is(at_ms) {
            return (format!("{} {WORD}", glyph(theme)), Role::Dim);
        }
        (format!("{} {}", theme.glyph(state), word(state)), Theme::state_role(state))
    }

    /// Why the node is stale, and what to do; `None` where some result of it is fresh.
    pub(crate) fn sentence(self, node: &NodeRow) -> Option<String> {
        let (stale, limit) = (self.words(node.result_ms)?, days(self.limit_ms));
        Some(format!("{}: {stale}, no result is newer than {limit}; measure it again (space, then R)", node.name))
    }
}

/// Whether a stale result of that state is shown only as stale: an old pass no longer counts as a pass, an old failure still fails.
pub(crate) const fn hides(state: State) -> bool {
    matches!(state, State::Pass | State::NotApplicable)
}

/// What stands before the word.
pub(crate) const fn glyph(theme: &Theme) -> &'static str {
    theme.pick("◷", "o")
}

/// `41 d`; below two days as precise as other ages.
fn days(ms: u64) -> String {
    const DAY_MS: u64 = 86_400_000;
    if ms >= 2 * DAY_MS { format!("{} d", ms / DAY_MS) } else { whole_age(ms) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000;
    const STALE: Stale = Stale { limit_ms: 30 * DAY, now_ms: 100 * DAY };

    #[test]
    fn a_result_is_stale_past_the_limit_and_not_at_it() {
        assert_eq!(STALE.words(Some(70 * DAY)), None);
        assert_eq!(STALE.words(Some(70 * DAY - 1)).unwrap(), "stale (30 d)");
        assert_eq!(STALE.words(None), None, "what was never measured has no age");
        assert_eq!(STALE.words(Some(200 * DAY)), None, "a clock that went back makes nothing old");
        let hours = Stale { limit_ms: DAY / 4, ..STALE };
        assert_eq!(hours.words(Some(99 * DAY + DAY / 2)).unwrap(), "stale (12h00)");
    }

    #[test]
    fn a_stale_pass_is_told_as_stale_and_a_stale_failure_still_as_a_failure() {
        let old = Some(59 * DAY);
        for (state, cell, words) in [
            (State::Pass, "◷ stale", "pass, stale (41 d)"),
            (State::NotApplicable, "◷ stale", "n/a, stale (41 d)"),
            (State::Unknown, "? unknown", "unknown, stale (41 d)"),
            (State::Warn, "! warn", "warn, stale (41 d)"),
            (State::Fail, "✗ fail", "fail, stale (41 d)"),
        ] {
            let theme = Theme::new(true, false);
            assert_eq!(STALE.cell(&theme, state, old).0, cell);
            assert_eq!(STALE.state(state, old), words);
            assert_eq!(STALE.state(state, Some(99 * DAY)), word(state));
        }
    }
}

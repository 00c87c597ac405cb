//! What a run's exit code is, and where `--fail-on` moves the line.

use muster_analysis::State;
use serde::{Deserialize, Serialize};

/// How many nodes ended how. A node that was not run or to which nothing applied counts as unknown: nothing was
/// found out about it. How bad a node is and whether all of it was decided are two things: `undecided` counts nodes
/// that `warn` and `fail` count too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Everything asked for ran and passed.
    pub pass: usize,
    /// Worse than the fleet, without enough evidence to accuse.
    pub warn: usize,
    /// Worse than the fleet, or failed.
    pub fail: usize,
    /// Not decided, not reached, not run.
    pub unknown: usize,
    /// Of those with a warning or a failure, how many have something else that was asked for and not decided.
    #[serde(default)]
    pub undecided: usize,
}

impl Summary {
    /// Counts nodes, each with its state and whether any of it is undecided.
    #[must_use]
    pub fn of(nodes: impl IntoIterator<Item = (State, bool)>) -> Self {
        let mut summary = Self::default();
        for (state, undecided) in nodes {
            summary.undecided += usize::from(undecided && matches!(state, State::Warn | State::Fail));
            *match state {
                State::Pass => &mut summary.pass,
                State::Warn => &mut summary.warn,
                State::Fail => &mut summary.fail,
                State::Unknown | State::NotRun | State::NotApplicable => &mut summary.unknown,
            } += 1;
        }
        summary
    }

    /// How many nodes there were.
    #[must_use]
    pub const fn nodes(&self) -> usize {
        self.pass + self.warn + self.fail + self.unknown
    }
}

/// The mildest finding that makes the exit code non-zero. From mild to grave: warn, undecided, fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailOn {
    /// Anything but a pass.
    #[default]
    Warn,
    /// Anything undecided, or a failed node; warnings exit 0.
    Unknown,
    /// A failed node; warnings and undecided nodes exit 0.
    Fail,
}

/// Exit code of a run that came to its end: the gravest finding at or above the line.
///
/// | found | warn (default) | unknown | fail |
/// |---|---|---|---|
/// | all passed | 0 | 0 | 0 |
/// | warnings only | 1 | 0 | 0 |
/// | anything undecided, beside warnings too, none failed | 3 | 3 | 0 |
/// | at least one failed | 2 | 2 | 2 |
/// | no node at all | 3 | 3 | 0 |
#[must_use]
pub fn exit_code(summary: &Summary, fail_on: FailOn) -> u8 {
    if summary.fail > 0 {
        return 2;
    }
    if fail_on == FailOn::Fail {
        return 0;
    }
    if summary.unknown + summary.undecided > 0 || summary.nodes() == 0 {
        return 3;
    }
    u8::from(summary.warn > 0 && fail_on == FailOn::Warn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_follow_the_documented_table() {
        let found = |pass, warn, fail, unknown| Summary { pass, warn, fail, unknown, undecided: 0 };
        let partly = Summary { undecided: 1, ..found(7, 1, 0, 0) };
        for (summary, warn, unknown, fail) in [
            (found(8, 0, 0, 0), 0, 0, 0),
            (found(7, 1, 0, 0), 1, 0, 0),
            (found(0, 8, 0, 0), 1, 0, 0),
            (found(7, 0, 0, 1), 3, 3, 0),
            (found(6, 1, 0, 1), 3, 3, 0),
            (found(0, 0, 0, 8), 3, 3, 0),
            (partly, 3, 3, 0),
            (found(7, 0, 1, 0), 2, 2, 2),
            (found(5, 1, 1, 1), 2, 2, 2),
            (found(0, 0, 0, 0), 3, 3, 0),
        ] {
            assert_eq!(exit_code(&summary, FailOn::Warn), warn, "{summary:?}");
            assert_eq!(exit_code(&summary, FailOn::Unknown), unknown, "{summary:?}");
            assert_eq!(exit_code(&summary, FailOn::Fail), fail, "{summary:?}");
        }
        assert_eq!(FailOn::default(), FailOn::Warn);
    }

    #[test]
    fn a_node_that_was_not_run_never_counts_as_passed() {
        let states = [State::Pass, State::NotRun, State::NotApplicable, State::Unknown, State::Fail];
        let summary = Summary::of(states.map(|state| (state, state == State::Unknown)));
        assert_eq!(summary, Summary { pass: 1, warn: 0, fail: 1, unknown: 3, undecided: 0 });
        assert_eq!(summary.nodes(), 5);
    }

    #[test]
    fn a_warning_does_not_hide_what_was_not_decided() {
        let summary =
            Summary::of([(State::Warn, true), (State::Fail, true), (State::Warn, false), (State::Pass, false)]);
        assert_eq!(summary, Summary { pass: 1, warn: 2, fail: 1, unknown: 0, undecided: 2 });
    }
}

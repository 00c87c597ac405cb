//! What a run's exit code is, and where `--fail-on` moves the line.

use muster_analysis::State;
use serde::{Deserialize, Serialize};

/// How many nodes ended how. A node that was not run or to which nothing applied counts as unknown: nothing was
/// found out about it.
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
}

impl Summary {
    /// Counts node states.
    #[must_use]
    pub fn of(states: impl IntoIterator<Item = State>) -> Self {
        let mut summary = Self::default();
        for state in states {
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

/// The mildest finding that makes the exit code non-zero. From mild to grave: warn, unknown, fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailOn {
    /// Anything but a pass.
    #[default]
    Warn,
    /// An undecided or failed node; warnings exit 0.
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
/// | undecided nodes, none failed | 3 | 3 | 0 |
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
    if summary.unknown > 0 || summary.nodes() == 0 {
        return 3;
    }
    u8::from(summary.warn > 0 && fail_on == FailOn::Warn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_follow_the_documented_table() {
        let found = |pass, warn, fail, unknown| Summary { pass, warn, fail, unknown };
        for (summary, warn, unknown, fail) in [
            (found(8, 0, 0, 0), 0, 0, 0),
            (found(7, 1, 0, 0), 1, 0, 0),
            (found(0, 8, 0, 0), 1, 0, 0),
            (found(7, 0, 0, 1), 3, 3, 0),
            (found(6, 1, 0, 1), 3, 3, 0),
            (found(0, 0, 0, 8), 3, 3, 0),
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
        let summary = Summary::of([State::Pass, State::NotRun, State::NotApplicable, State::Unknown, State::Fail]);
        assert_eq!(summary, Summary { pass: 1, warn: 0, fail: 1, unknown: 3 });
        assert_eq!(summary.nodes(), 5);
    }
}

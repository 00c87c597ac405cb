//! How much a line says about the cause.

use serde::{Deserialize, Serialize};

/// How much a line says about the cause, most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A part of this machine is broken: reason enough to take the machine away.
    Critical,
    /// Something failed that can be the root, and that alone condemns no machine: the program, its settings, storage, the scheduler.
    Error,
    /// Two machines lost each other; either of them, or what lies between, may be the root.
    Distributed,
    /// Something else failed before: this line only tells of it.
    Consequence,
    /// Worth knowing beside a cause, never one itself: a corrected error, a repair that awaits a reset.
    Notice,
    /// Known to be harmless.
    Benign,
    /// The job works: an iteration, a collective, a communicator.
    Progress,
}

impl Kind {
    /// Name in rule files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Error => "error",
            Self::Distributed => "distributed",
            Self::Consequence => "consequence",
            Self::Notice => "notice",
            Self::Benign => "benign",
            Self::Progress => "progress",
        }
    }

    /// Whether a line of this kind may be a root cause.
    #[must_use]
    pub const fn may_be_root(self) -> bool {
        matches!(self, Self::Critical | Self::Error | Self::Distributed)
    }
}

/// What kind of log it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// The kernel's own.
    Kernel,
    /// What a job printed.
    Job,
    /// A system log, which mixes; and what nobody said anything about.
    #[default]
    Any,
}

impl Stream {
    /// Whether a rule for `self` is asked in a log of kind `log`.
    #[must_use]
    pub fn holds_in(self, log: Self) -> bool {
        self == Self::Any || log == Self::Any || self == log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_for_one_kind_of_log_is_asked_in_those_and_in_logs_that_mix() {
        use Stream::{Any, Job, Kernel};
        for (rule, log, holds) in [
            (Kernel, Kernel, true),
            (Kernel, Job, false),
            (Kernel, Any, true),
            (Job, Kernel, false),
            (Job, Job, true),
            (Job, Any, true),
            (Any, Kernel, true),
            (Any, Job, true),
            (Any, Any, true),
        ] {
            assert_eq!(rule.holds_in(log), holds, "{rule:?} in {log:?}");
        }
    }

    #[test]
    fn a_kind_is_written_by_its_name_and_only_the_first_three_may_be_a_cause() {
        use Kind::{Benign, Consequence, Critical, Distributed, Error, Notice, Progress};
        let all = [Critical, Error, Distributed, Consequence, Notice, Benign, Progress];
        for (at, kind) in all.into_iter().enumerate() {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
            assert_eq!(kind.may_be_root(), at < 3, "{kind:?}");
        }
    }
}

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

//! How likely is it that what was found is right?
//!
//! Independent kinds of evidence add up as chances of being wrong multiply: `1 - Π(1 - w)`, at most [`MOST`]. Two lines of the same
//! log are one kind. The weights are what one kind alone is worth; docs/TRIAGE.md lists them.

/// One kind of evidence, with what it is worth alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// A critical line of the kernel, in the window of the job's end.
    KernelCritical,
    /// The same, when nothing says when it was written or when the job ended.
    KernelUndated,
    /// A line of the job that itself names broken hardware.
    LogCritical,
    /// A line that is a root of its own: an exception, a stalled loader, a server that does not answer.
    Line,
    /// The flight recorder's walk ends there.
    Recorder,
    /// RAS stands still over two polls, and the walk ends there.
    RasStill,
    /// One poll of RAS only: between two steps that is normal.
    RasOnce,
    /// RAS misses the process.
    RasGone,
    /// The process is stopped or frozen.
    Stopped,
    /// The process waits for storage at every look.
    Blocked,
    /// The process is not there any more, and those of other ranks are.
    Vanished,
    /// The node could not be reached.
    Unreached,
    /// It computes while the others wait.
    Busy,
    /// What it has to send to others stays on its way.
    Backlog,
    /// A watch of the job found this machine unlike its peers.
    Watched,
    /// It fails a health check that the others pass.
    Check,
    /// One of its parts counts errors as no other node's does.
    Counted,
    /// A test without the job points at it.
    Tested,
    /// The watchdogs' numbers end there.
    Watchdog,
    /// All other ranks told a time-out and this one did not.
    Silent,
    /// Nearly all complaints touch this machine.
    Complaints,
    /// One pair complains of each other: this end.
    OneOfPair,
    /// Ranks ask for different things.
    Mismatch,
    /// Late in operation after operation.
    Late,
    /// Late now and then, or behind in one poll.
    Sometimes,
    /// Several nodes see the same.
    ManyNodes,
    /// Ranks that others wait for run there.
    HoldsBack,
    /// Said again and again.
    Repeated,
    /// The job and the kernel both say so.
    BothLogs,
    /// Of two that lost each other, the one that was lost first or more often.
    LostFirst,
    /// A communicator of both ends is the oldest that does not end.
    OpenGroup,
    /// Most ranks tell the same error.
    MostRanks,
    /// No machine says that it is broken.
    NoHardware,
    /// Slow against communicators of its kind, and transfers tell the end.
    LinkTold,
    /// Slow against communicators of its kind, at one of several ends.
    LinkOneOf,
    /// A notice that fits, such as a thermal slowdown.
    Notice,
    /// The scheduler says that it ended the job.
    Scheduler,
    /// RAS saw the job move, or all ranks level.
    Moving,
    /// All ranks were timed and none stands out.
    Even,
}

/// Confidence from which a suspect may be acted on.
pub const SURE: f64 = 0.8;
/// The most that is ever said.
pub const MOST: f64 = 0.98;

impl Weight {
    /// What it is worth alone.
    #[must_use]
    pub const fn alone(self) -> f64 {
        match self {
            Self::Mismatch => 0.92,
            Self::KernelCritical | Self::Late | Self::Scheduler | Self::Stopped => 0.88,
            Self::LinkTold | Self::Recorder | Self::Tested => 0.85,
            Self::LogCritical | Self::Even => 0.82,
            Self::RasStill | Self::Complaints | Self::ManyNodes => 0.80,
            Self::Line | Self::Vanished => 0.75,
            Self::KernelUndated => 0.70,
            Self::Watchdog => 0.65,
            Self::Silent
            | Self::HoldsBack
            | Self::LostFirst
            | Self::Blocked
            | Self::Unreached
            | Self::Backlog
            | Self::Watched
            | Self::Check
            | Self::Counted => 0.60,
            Self::RasGone | Self::OneOfPair | Self::Moving | Self::MostRanks => 0.50,
            Self::Busy | Self::LinkOneOf | Self::Notice | Self::Repeated | Self::BothLogs | Self::NoHardware => 0.40,
            Self::RasOnce | Self::Sometimes | Self::OpenGroup => 0.30,
        }
    }
}

/// What a suspicion that was worth `before` is worth with one more kind of evidence.
#[must_use]
pub fn with_another(before: f64, kind: Weight) -> f64 {
    let wrong = (1.0 - before) * (1.0 - kind.alone());
    ((1.0 - wrong).min(MOST).max(before) * 100.0).round() / 100.0
}

/// All kinds together.
#[must_use]
pub fn confidence(kinds: &[Weight]) -> f64 {
    let mut kinds = kinds.to_vec();
    kinds.sort_unstable();
    kinds.dedup();
    let wrong: f64 = kinds.iter().map(|kind| 1.0 - kind.alone()).product();
    ((1.0 - wrong).min(MOST) * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_kind_adds_and_the_same_kind_again_does_not() {
        let one = confidence(&[Weight::RasStill]);
        assert_eq!(confidence(&[Weight::RasStill, Weight::RasStill]), one);
        assert!(confidence(&[Weight::RasStill, Weight::Silent]) > one);
        assert!(confidence(&[Weight::RasOnce]) < 0.5);
        assert_eq!(confidence(&[]), 0.0);
    }

    #[test]
    fn chances_of_being_wrong_multiply_and_nothing_is_said_for_certain() {
        assert_eq!(confidence(&[Weight::RasGone, Weight::Silent]), 0.8, "1 - 0.5 * 0.4");
        assert_eq!(confidence(&[Weight::Mismatch, Weight::KernelCritical, Weight::Stopped]), MOST);
        assert_eq!(with_another(0.6, Weight::Tested), 0.94, "1 - 0.4 * 0.15");
        assert_eq!((with_another(0.0, Weight::Tested), with_another(0.9, Weight::Mismatch)), (0.85, MOST));
        assert_eq!(with_another(0.99, Weight::Tested), 0.99, "what was surer stays so");
    }
}

//! Which judgements can be shown: the states of a node and of a criterion, in words and glyphs.

pub use muster_analysis::{State, Status};

/// Every state, worst first: the order of counts in the header and of rows sorted by state.
pub const BY_SEVERITY: [State; 6] =
    [State::Fail, State::Warn, State::Unknown, State::NotRun, State::Pass, State::NotApplicable];

/// Rank of a state; 0 is the worst.
#[must_use]
pub const fn severity(state: State) -> usize {
    match state {
        State::Fail => 0,
        State::Warn => 1,
        State::Unknown => 2,
        State::NotRun => 3,
        State::Pass => 4,
        State::NotApplicable => 5,
    }
}

/// The word for a state.
#[must_use]
pub const fn word(state: State) -> &'static str {
    match state {
        State::Pass => "pass",
        State::Warn => "warn",
        State::Fail => "fail",
        State::Unknown => "unknown",
        State::NotRun => "not run",
        State::NotApplicable => "n/a",
    }
}

/// What stands behind the word of a state that results still to come may change.
pub const PROVISIONAL: &str = "~";

/// The same in a sentence.
pub const PROVISIONAL_ABOUT: &str = "provisional: results that may change it are still being measured";

/// The word for a criterion's status.
#[must_use]
pub const fn status_word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Provisional => "provisional",
        Status::NoConsensus => "no consensus",
        Status::Bimodal => "two groups",
        Status::NotRepeatable => "not repeatable here",
    }
}

/// What a status means for a reader of verdicts, one sentence.
#[must_use]
pub const fn status_about(status: Status) -> &'static str {
    match status {
        Status::Ok => "enough nodes agree; verdicts stand",
        Status::Provisional => "few nodes so far; verdicts may change",
        Status::NoConsensus => "the nodes do not agree on a normal; nothing is judged",
        Status::Bimodal => "two groups disagree; look for two kinds of hardware",
        Status::NotRepeatable => "healthy nodes differ from run to run; only wide gaps are judged",
    }
}

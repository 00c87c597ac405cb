//! What can be run, and the progress of a run.

use std::sync::Arc;

use muster_wire::Profile;

use crate::text;

/// A playbook that can be run.
#[derive(Clone, Debug)]
pub struct PlaybookRow {
    /// Name on the command line.
    pub name: String,
    /// One line.
    pub title: String,
    /// A few sentences.
    pub about: String,
    /// How much work by default.
    pub profile: Profile,
    /// In order.
    pub steps: Arc<[StepRow]>,
}

/// A step of a playbook.
#[derive(Clone, Debug)]
pub struct StepRow {
    /// Identity in the file.
    pub id: String,
    /// One sentence.
    pub about: String,
    /// Collectors and benchmarks, in order.
    pub work: Vec<String>,
}

/// A run and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunInfo {
    /// Identity in the database.
    pub id: String,
    /// Playbook, or what was imported.
    pub playbook: String,
    /// How much work.
    pub profile: Profile,
    /// Start.
    pub started_ms: u64,
    /// End, `None` while it goes on or where it never ended.
    pub ended_ms: Option<u64>,
    /// What it does.
    pub phase: RunPhase,
}

/// How far a run is.
#[derive(Clone, Debug, Default)]
pub struct RunProgress {
    /// How long it will still take; `None` once it has ended, or if that cannot be known.
    pub left: Option<Left>,
    /// Work items done over all nodes.
    pub done: usize,
    /// Work items over all nodes.
    pub total: usize,
    /// In the playbook's order.
    pub steps: Arc<[StepProgress]>,
}

/// How long a run will still take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Milliseconds.
    pub ms: u64,
    /// Whether it is based on measured times; otherwise it is the playbook's plan.
    pub measured: bool,
}

impl Left {
    /// `about 25 minutes left`, or `planned: about 25 minutes` where nothing is measured yet.
    #[must_use]
    pub fn words(self) -> String {
        let about = text::about(self.ms);
        if self.measured { format!("{about} left") } else { format!("planned: {about}") }
    }
}

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPhase {
    /// Goes on.
    Running,
    /// Was told to stop and is waiting for its nodes.
    Cancelling,
    /// Ran to its end.
    Finished,
    /// Ran to its end without some nodes that were lost on the way; can be resumed.
    Incomplete,
    /// Stopped on request.
    Cancelled,
    /// Ended without saying so; can be resumed.
    Interrupted,
}

impl RunPhase {
    /// Whether nodes are still at work.
    #[must_use]
    pub const fn is_going(self) -> bool {
        matches!(self, Self::Running | Self::Cancelling)
    }

    /// The word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Cancelling => "cancelling",
            Self::Finished => "finished",
            Self::Incomplete => "incomplete",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
}

/// How far one step is.
#[derive(Clone, Debug)]
pub struct StepProgress {
    /// Identity in the file.
    pub id: String,
    /// Work items done, among them those that failed.
    pub done: usize,
    /// Work items that failed.
    pub failed: usize,
    /// Work items in all.
    pub total: usize,
    /// Nodes in the same place of the step, folded.
    pub groups: Arc<[StepGroup]>,
}

/// Nodes that are in the same place of a step.
#[derive(Clone, Debug)]
pub struct StepGroup {
    /// `done`, `cpu-gemm`, `waiting`, `failed: no route to host`.
    pub what: String,
    /// How many.
    pub count: usize,
    /// Folded names, such as `node[001-004,007]`.
    pub nodes: String,
    /// Share of the step that they have done, 0 to 1.
    pub done: f64,
}

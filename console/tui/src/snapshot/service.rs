//! In whose hands is a node: in service, kept as a spare, in repair? And what became of it before?

use std::sync::Arc;

use muster_analysis::service::Service;

/// In whose hands one node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRow {
    /// The state.
    pub state: Service,
    /// Since when, where that is known.
    pub since_ms: Option<u64>,
    /// Who put it there; empty where nobody did.
    pub who: String,
    /// Why, in words; may be empty.
    pub why: String,
    /// Who replaces it, or whom it replaces, or why nobody does: `n101 replaces it (same leaf)`; and of a swap that was made the other node:
    /// `replaced by n101 on 2026-11-28`. Empty where that is no question.
    pub swap: String,
    /// Parts of it that failed before, such as `third time this GPU fails here (gpu:3, 1654922000123)`.
    pub repeated: Arc<[String]>,
    /// The commands for Slurm that replace it, for a person to look at and run.
    pub commands: Arc<[String]>,
}

/// What became of a node before, and what stands between it and its return.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServicePast {
    /// What giving it back still needs, in sentences; `None` of a node that is in service.
    pub needs: Option<Arc<[String]>>,
    /// Its parts that failed, newest first.
    pub failures: Arc<[FailureRow]>,
    /// Who put it into which hands, newest first.
    pub handed: Arc<[HandedRow]>,
}

/// A part of a node that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureRow {
    /// When.
    pub at_ms: u64,
    /// Where in the node, such as `gpu:3`.
    pub component: String,
    /// Serial number of the part; `None` where the node reported none.
    pub serial: Option<String>,
    /// `third time this GPU fails here`; empty of a part's first failure, and of all but its last.
    pub said: String,
    /// What was found.
    pub reason: String,
}

/// A node was put into other hands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandedRow {
    /// When.
    pub at_ms: u64,
    /// Into which: `in repair`.
    pub into: &'static str,
    /// Who did it; may be empty.
    pub who: String,
    /// Why; may be empty.
    pub why: String,
    /// The other node of a swap: `replaced by n101`; empty where it was none.
    pub swap: String,
}

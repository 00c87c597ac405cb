//! Which runs are stored?

use std::sync::Arc;

use muster_wire::Profile;

use crate::snapshot::RunPhase;

/// The stored runs, newest first.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// One row each.
    pub rows: Arc<[RunRow]>,
}

/// A stored run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
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
    /// Where it stands.
    pub phase: RunPhase,
    /// How many nodes.
    pub nodes: usize,
    /// Their folded names.
    pub names: String,
    /// Benchmarks, checks and collectors that were planned for every node.
    pub plan: Arc<[String]>,
    /// Whether it holds the newest result of at least one node.
    pub current: bool,
}

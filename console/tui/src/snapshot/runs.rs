//! Which runs are stored?

use std::sync::Arc;

use crate::snapshot::RunInfo;

/// The stored runs, newest first.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// One row each.
    pub rows: Arc<[RunRow]>,
}

/// A stored run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// Which one.
    pub run: RunInfo,
    /// How many nodes.
    pub nodes: usize,
    /// Their folded names.
    pub names: String,
    /// Benchmarks, checks and collectors that were planned for every node.
    pub plan: Arc<[String]>,
    /// Whether it holds the newest result of at least one node.
    pub current: bool,
}

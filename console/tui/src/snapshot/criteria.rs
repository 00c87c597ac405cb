//! Which criteria were ever learned, and what is known of each version.

use std::sync::Arc;

use muster_analysis::Criterion;

/// Every stored version, by metric, then group, then age.
#[derive(Clone, Debug, Default)]
pub struct Criteria {
    /// The versions.
    pub versions: Arc<[VersionRow]>,
}

/// One version of a criterion.
#[derive(Clone, Debug)]
pub struct VersionRow {
    /// What it demands.
    pub criterion: Arc<Criterion>,
    /// Which nodes it is for, such as `profile=quick,sku=h100`; empty for all.
    pub group: String,
    /// When it was learned.
    pub learned_ms: u64,
    /// Run or file it was learned from.
    pub source: String,
    /// Whether it is the one that judges this metric and group.
    pub frozen: bool,
    /// Nodes that were outside it then, with their similarity; least similar first.
    pub outside: Arc<[(String, Option<f64>)]>,
}

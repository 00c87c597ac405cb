//! The published document `muster.swap`.

use muster_analysis::service::{Near, Service};
use muster_playbook::report::rfc3339;
use serde::Serialize;

use crate::service::Standing;

/// Who is replaced by whom.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    pub schema: &'static str,
    pub version: u32,
    /// Defective nodes.
    pub swaps: Vec<Row>,
    /// The hot buffer.
    pub spares: Vec<SpareRow>,
}

/// A defective node and what replaces it.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub node: String,
    /// Since when; null where nobody knows.
    pub since: Option<String>,
    pub reason: String,
    /// Models of its processors and GPUs, or its label; null where nobody knows.
    pub hardware: Option<String>,
    pub leaf: Option<String>,
    pub rack: Option<String>,
    /// The spare; null where none is left.
    pub replacement: Option<String>,
    /// How near the spare is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<Near>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Parts of it that failed before, such as `third time this GPU fails here (gpu:3, 1654922000123)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repeated: Vec<String>,
    /// For Slurm.
    #[serde(skip)]
    pub commands: Vec<String>,
}

/// A spare.
#[derive(Debug, Serialize)]
pub(super) struct SpareRow {
    pub node: String,
    pub hardware: Option<String>,
    pub leaf: Option<String>,
    pub rack: Option<String>,
    /// Why it cannot replace anyone; left out of one that can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Whom it replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
}

/// A node and in whose hands it is.
#[derive(Debug, Serialize)]
pub(super) struct StateRow {
    pub node: String,
    pub state: Service,
    /// Since when; null where nobody knows.
    pub since: Option<String>,
    pub reason: String,
    /// The newest run that says something of it.
    pub run: Option<String>,
}

impl StateRow {
    pub(super) fn of(standing: &Standing) -> Self {
        Self {
            node: standing.machine.name.clone(),
            state: standing.service,
            since: standing.since_ms.map(rfc3339),
            reason: standing.why.clone(),
            run: standing.run.clone(),
        }
    }
}

//! The published document `muster.swap`.

use muster_analysis::service::{Near, Service};
use muster_playbook::report::rfc3339;
use serde::Serialize;

use crate::service::{Counterpart, Standing, day};

/// Who is replaced by whom.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    pub schema: &'static str,
    pub version: u32,
    /// Defective nodes.
    pub swaps: Vec<Row>,
    /// The hot buffer.
    pub spares: Vec<SpareRow>,
    /// Nodes in repair.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_repair: Vec<RepairRow>,
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

/// The other node of a swap.
#[derive(Debug, Serialize)]
pub(super) struct Other {
    pub node: String,
    /// Since when the one is in the place of the other.
    pub since: String,
    /// Until when; left out while it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// Both sides of a swap: who took the node's place, and whose place it took.
#[derive(Debug, Default, Serialize)]
pub(super) struct Sides {
    /// Of a node in repair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<Other>,
    /// Of one in service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_place_of: Option<Other>,
}

impl Sides {
    pub(super) fn of(counterpart: Option<&Counterpart>) -> Self {
        let other = |node: &String, since_ms: u64, until_ms: Option<u64>| {
            Some(Other { node: node.clone(), since: rfc3339(since_ms), until: until_ms.map(rfc3339) })
        };
        match counterpart {
            None => Self::default(),
            Some(Counterpart::ReplacedBy { node, since_ms, until_ms }) => {
                Self { replaced_by: other(node, *since_ms, *until_ms), in_place_of: None }
            }
            Some(Counterpart::InPlaceOf { node, since_ms }) => {
                Self { replaced_by: None, in_place_of: other(node, *since_ms, None) }
            }
        }
    }
}

/// A node in repair.
#[derive(Debug, Serialize)]
pub(super) struct RepairRow {
    pub node: String,
    /// Since when; null where nobody knows.
    pub since: Option<String>,
    pub reason: String,
    /// The node that took its place; left out where none is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<Other>,
    /// All of it in words.
    #[serde(skip)]
    pub said: String,
}

impl RepairRow {
    pub(super) fn of(standing: &Standing) -> Self {
        let mut said = format!("{} is in repair", standing.machine.name);
        if let Some(since_ms) = standing.since_ms {
            said += &format!(" since {}", day(since_ms));
        }
        if let Some(other) = &standing.counterpart {
            said += &format!(", {}", other.sentence());
        }
        if !standing.why.is_empty() {
            said += &format!(": {}", standing.why);
        }
        Self {
            node: standing.machine.name.clone(),
            since: standing.since_ms.map(rfc3339),
            reason: standing.why.clone(),
            replaced_by: Sides::of(standing.counterpart.as_ref()).replaced_by,
            said,
        }
    }
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
    /// The other node of its swap, as long as one of the two is in repair.
    #[serde(flatten)]
    pub swap: Sides,
    /// The same in words; may be empty.
    #[serde(skip)]
    pub said: String,
}

impl StateRow {
    pub(super) fn of(standing: &Standing) -> Self {
        Self {
            node: standing.machine.name.clone(),
            state: standing.service,
            since: standing.since_ms.map(rfc3339),
            reason: standing.why.clone(),
            run: standing.run.clone(),
            swap: Sides::of(standing.counterpart.as_ref()),
            said: standing.counterpart.as_ref().map_or_else(String::new, Counterpart::sentence),
        }
    }
}

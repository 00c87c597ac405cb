//! What a run is: one execution of a playbook.

use muster_wire::Profile;
use serde::{Deserialize, Serialize};

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// A console is working on it.
    Running,
    /// Every piece of work was acknowledged.
    Finished,
    /// It came to its end, and some nodes were lost on the way: the next run of the same kind asks those again.
    Incomplete,
    /// A person stopped it.
    Cancelled,
    /// Its console went away without a word. Never written to disk: it is what a run without an end is called
    /// once no console holds the database.
    Interrupted,
}

impl RunState {
    /// The word used in lists and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Incomplete => "incomplete",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
}

/// One execution of a playbook on some nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// File name of the run: letters, digits, `-`, `_` and `.`, at most 96 bytes. Lists are sorted by start, then id.
    pub id: String,
    /// Playbook name.
    pub playbook: String,
    /// How much work was asked for.
    pub profile: Profile,
    /// Start, milliseconds since 1970 UTC. A resumed run keeps its first start.
    pub started_ms: u64,
    /// End, when there was one.
    pub ended_ms: Option<u64>,
    /// Nodes chosen, by name.
    pub nodes: Vec<String>,
    /// Names of the work planned for every node.
    pub plan: Vec<String>,
    /// Where it stands.
    pub state: RunState,
}

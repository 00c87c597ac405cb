//! What many nodes are asked to train together.

use serde::{Deserialize, Serialize};

use crate::{Rank, Secret};

/// Name of the benchmark under which the values of a training over many nodes are kept.
pub const TRAIN_DDP: &str = "train-ddp";
/// Models that can be trained over many nodes, smallest of each kind first.
pub const TRAIN_MODELS: [&str; 8] =
    ["gpt2-nano", "gpt2-small", "bert-nano", "bert-base", "lstm-nano", "lstm", "resnet-nano", "resnet50"];
/// Most ranks of one node.
pub const RANKS_PER_NODE: u16 = 64;

/// Take part in a training; ends with [`Paired`](crate::Paired). Every node gets the same order but for its first rank. The node
/// has opened a port for each of its ranks: that of its rank `i` was listened for as visit `visit + i`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainOrder {
    /// Number of the visit.
    pub visit: u64,
    /// Known to these ranks only.
    pub secret: Secret,
    /// The first rank of this node.
    pub first: u16,
    /// Ranks of a node, 1 to [`RANKS_PER_NODE`].
    pub per_node: u16,
    /// All ranks, those of a node one after another, named by their node; 2 to [`RANKS`](crate::RANKS).
    pub ranks: Vec<Rank>,
    /// One of [`TRAIN_MODELS`].
    pub model: String,
    /// Batches of each rank in a step.
    pub batches: u32,
    /// Steps; 0 where the time alone ends it.
    pub steps: u64,
    /// Time after which the first rank ends it, milliseconds; 0 where the steps alone do.
    pub duration_ms: u32,
    /// All ranks must have met within this, milliseconds.
    pub meet_ms: u32,
    /// One operation must be over within this, milliseconds.
    pub timeout_ms: u32,
    /// Everything must be over within this, milliseconds; what still runs then is killed.
    pub limit_ms: u32,
}

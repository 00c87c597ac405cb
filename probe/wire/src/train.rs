//! What many nodes are asked to train together.

use serde::{Deserialize, Serialize};

use crate::{Rank, Secret};

/// Name of the benchmark under which the values of a training over many nodes are kept.
pub const TRAIN_DDP: &str = "train-ddp";
/// Key of the fact that says how gradients got from node to node: `nccl-2.21`, or `tcp, n003: ` and why.
pub const BETWEEN: &str = "between";
/// Models that can be trained over many nodes, smallest of each kind first.
pub const TRAIN_MODELS: [&str; 8] =
    ["gpt2-nano", "gpt2-small", "bert-nano", "bert-base", "lstm-nano", "lstm", "resnet-nano", "resnet50"];
/// Most ranks of one node.
pub const RANKS_PER_NODE: u16 = 64;

/// By which way GPUs of many nodes all-reduce their gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Between {
    /// NCCL where every node has it in one version, else TCP.
    #[default]
    Auto,
    /// NCCL, or not at all.
    Nccl,
    /// A ring over TCP, through the host.
    Tcp,
}

impl Between {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Nccl, Self::Tcp];

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Nccl => "nccl",
            Self::Tcp => "tcp",
        }
    }
}

impl std::str::FromStr for Between {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|between| between.name() == text);
        found.ok_or_else(|| format!("'{text}' is none of auto, nccl, tcp"))
    }
}

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
    /// How gradients get from node to node where GPUs compute.
    #[serde(default)]
    pub between: Between,
    /// All ranks must have met within this, milliseconds.
    pub meet_ms: u32,
    /// One operation must be over within this, milliseconds.
    pub timeout_ms: u32,
    /// Everything must be over within this, milliseconds; what still runs then is killed.
    pub limit_ms: u32,
}

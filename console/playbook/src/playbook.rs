//! What a playbook says: which steps, in which order, how much work in each.

use std::time::Duration;

use muster_wire::Profile;

/// A checked playbook: every name in it exists, every step does something, nothing is measured twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Playbook {
    /// Name used on the command line: lower-case letters, digits, dashes.
    pub name: String,
    /// A few words for lists.
    pub title: String,
    /// A sentence or two: when to use it. May be empty.
    pub about: String,
    /// How much work each benchmark does, unless its step says otherwise.
    pub profile: Profile,
    /// In the order they run; never empty.
    pub steps: Vec<Step>,
}

/// One step: first its collectors, then its benchmarks, each in the order written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Unique within the playbook: lower-case letters, digits, dashes.
    pub id: String,
    /// A sentence for lists. May be empty.
    pub about: String,
    /// Collector names.
    pub collect: Vec<String>,
    /// Benchmark names.
    pub run: Vec<String>,
    /// Which pairs of nodes are measured, all other work of the step aside.
    pub pairs: Option<Pairs>,
    /// Overrides the playbook's profile.
    pub profile: Option<Profile>,
    /// Nodes that have failed by the end of this step leave the later ones.
    pub drop_failed: bool,
    /// Longest the whole step may take on one node; without it, the sum of what its parts may take.
    pub limit: Option<Duration>,
    /// Line of the file where the step begins, from 1.
    pub line: usize,
}

/// Name under which the store keeps what was measured between nodes.
pub const PAIRS: &str = "net-pair";

/// Which pairs of nodes are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// All, in one round less than there are nodes.
    Full,
    /// Every node once at every hop distance.
    Quick,
    /// Some rounds of a full scan, drawn by lot.
    Sample {
        /// How many.
        rounds: u32,
    },
    /// As few as it takes to know what is wrong.
    Bisect,
}

impl Pairs {
    /// The words used in playbooks and on the command line.
    pub const NAMES: [&'static str; 4] = ["full", "quick", "sample", "bisect"];

    /// The method called `name`; `rounds` counts only for a sample.
    #[must_use]
    pub fn named(name: &str, rounds: u32) -> Option<Self> {
        Some(match name {
            "full" => Self::Full,
            "quick" => Self::Quick,
            "sample" => Self::Sample { rounds },
            "bisect" => Self::Bisect,
            _ => return None,
        })
    }

    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Quick => "quick",
            Self::Sample { .. } => "sample",
            Self::Bisect => "bisect",
        }
    }

    /// Rounds over `nodes` nodes, at most.
    #[must_use]
    pub const fn rounds(self, nodes: usize) -> usize {
        let full = nodes.saturating_sub(1) | 1;
        match self {
            Self::Full => full,
            Self::Sample { rounds } => {
                if (rounds as usize) < full {
                    rounds as usize
                } else {
                    full
                }
            }
            // Hop distances of any tree in use, and for a bisection twice the logarithm of any fleet besides.
            Self::Quick => 8,
            Self::Bisect => 48,
        }
    }
}

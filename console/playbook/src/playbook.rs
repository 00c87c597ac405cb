//! What a playbook says: which steps, in which order, how much work in each.

use std::time::Duration;

use muster_wire::{Collective, Profile};

use crate::Train;

/// A checked playbook: every name in it exists, every step does something, nothing is measured twice.
#[derive(Clone, Debug, PartialEq)]
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

/// One step: first its collectors, then its benchmarks, each in the order written; its checks are answered from what
/// the collectors saw.
#[derive(Clone, Debug, PartialEq)]
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
    /// What all nodes compute together, all other work of the step aside.
    pub collective: Vec<Collective>,
    /// What all nodes train together, all other work of the step aside.
    pub train: Option<Train>,
    /// Ids of its checks, areas spelt out, each once.
    pub check: Vec<String>,
    /// Those of them that every login must be able to answer.
    pub demand: Vec<String>,
    /// Limits of checks that the step moves, by name.
    pub limits: Vec<(String, f64)>,
    /// What the step expects of every node, by name.
    pub expect: Vec<(String, f64)>,
    /// Overrides the playbook's profile.
    pub profile: Option<Profile>,
    /// Longest wait before the benchmarks until others leave the CPUs alone; no gate without it.
    pub idle: Option<Duration>,
    /// Nodes that have failed by the end of this step leave the later ones.
    pub drop_failed: bool,
    /// Runs only the benchmarks that the Selector picks.
    pub select: bool,
    /// Longest the whole step may take on one node; without it, the sum of what its parts may take.
    pub limit: Option<Duration>,
    /// Line of the file where the step begins, from 1.
    pub line: usize,
}

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

impl Playbook {
    /// Whether a step leaves its benchmarks to the Selector: then it also says which nodes take part.
    #[must_use]
    pub fn selects(&self) -> bool {
        self.steps.iter().any(|step| step.select)
    }

    /// The playbook with only `picked` benchmarks in the steps that leave them to the Selector; steps that have nothing
    /// left to do are gone.
    #[must_use]
    pub fn picked(mut self, picked: &[String]) -> Self {
        for step in self.steps.iter_mut().filter(|step| step.select) {
            step.run.retain(|name| picked.contains(name));
        }
        self.steps.retain(|step| {
            let looks = !step.collect.is_empty() || !step.check.is_empty();
            let together = step.pairs.is_some() || !step.collective.is_empty() || step.train.is_some();
            looks || !step.run.is_empty() || together
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::find_builtin;

    #[test]
    fn a_selection_leaves_what_was_picked_and_every_look() {
        let regular = find_builtin("regular").expect("it is built in");
        assert!(regular.selects() && !find_builtin("cbd").expect("it is built in").selects());
        let picked = regular.clone().picked(&["disk".to_owned()]);
        let run: Vec<&String> = picked.steps.iter().flat_map(|step| &step.run).collect();
        assert_eq!(run, ["disk"]);
        let looks = |steps: &[crate::Step]| steps.iter().flat_map(|step| step.collect.clone()).count();
        assert_eq!(looks(&picked.steps), looks(&regular.steps));
    }
}

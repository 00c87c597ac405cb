//! What a playbook says: which steps, in which order, how much work in each.

use std::time::Duration;

use muster_wire::Profile;

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
    /// Ids of its checks, areas spelt out, each once.
    pub check: Vec<String>,
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
    /// Longest the whole step may take on one node; without it, the sum of what its parts may take.
    pub limit: Option<Duration>,
    /// Line of the file where the step begins, from 1.
    pub line: usize,
}

//! Settles what the store keeps and what it can be asked: runs, records, criteria, and the `Store` trait.

use std::collections::{BTreeMap, BTreeSet};

use muster_wire::{Fact, MetricId, Outcome, Profile, Series};
use serde::{Deserialize, Serialize};

use crate::StoreError;

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// A console is working on it.
    Running,
    /// Every piece of work was acknowledged.
    Finished,
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

/// Everything one piece of work gave on one node. A second record of the same run, node and work replaces the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Run it belongs to.
    pub run: String,
    /// Node it came from.
    pub node: String,
    /// Benchmark or collector, or `link`.
    pub work: String,
    /// How it ended.
    pub outcome: Outcome,
    /// When the console had all of it, milliseconds since 1970 UTC.
    pub at_ms: u64,
    /// Time it took on the node, nanoseconds.
    pub elapsed_ns: u64,
    /// Raw samples, bit for bit as they arrived.
    pub series: Vec<Series>,
    /// Facts of a collector, or about the circumstances of a benchmark.
    pub facts: Vec<Fact>,
}

/// Between the name of a benchmark and the number of a further visit.
const VISIT: char = '#';

/// Name of the work that measures `work` for the time number `visit`: `disk`, then `disk#2`. Every visit is a record of its own.
#[must_use]
pub fn visit_name(work: &str, visit: usize) -> String {
    if visit > 1 { format!("{work}{VISIT}{visit}") } else { work.to_owned() }
}

impl Record {
    /// Benchmark or collector, whichever visit it was.
    #[must_use]
    pub fn benchmark(&self) -> &str {
        visit_of(&self.work).0
    }

    /// Number of the visit, from 1.
    #[must_use]
    pub fn visit(&self) -> usize {
        visit_of(&self.work).1
    }

    /// The series of every metric in the order measured, found in one pass: a record of an import holds thousands of metrics.
    #[must_use]
    pub fn by_metric(&self) -> BTreeMap<&MetricId, Vec<&Series>> {
        let mut found: BTreeMap<&MetricId, Vec<&Series>> = BTreeMap::new();
        for series in &self.series {
            found.entry(&series.metric).or_default().push(series);
        }
        found
    }
}

/// Values of several series of one metric, in their order.
#[must_use]
pub fn joined<'s>(series: impl IntoIterator<Item = &'s Series>) -> Vec<f64> {
    series.into_iter().flat_map(|series| &series.values).copied().collect()
}

/// The benchmark and the number of the visit in the name of a work.
#[must_use]
pub fn visit_of(work: &str) -> (&str, usize) {
    let further =
        work.rsplit_once(VISIT).and_then(|(name, visit)| Some((name, visit.parse().ok().filter(|n| *n > 1)?)));
    further.unwrap_or((work, 1))
}

/// A record without its samples and facts; costs no look into the run file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Node it came from.
    pub node: String,
    /// Benchmark or collector, or `link`.
    pub work: String,
    /// How it ended.
    pub outcome: Outcome,
    /// When, milliseconds since 1970 UTC.
    pub at_ms: u64,
    /// Time it took, nanoseconds.
    pub elapsed_ns: u64,
    /// Series it holds.
    pub series: u64,
    /// Values in all of them.
    pub values: u64,
    /// Facts it holds.
    pub facts: u64,
}

/// A node that some run has a record of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSeen {
    /// Its name.
    pub name: String,
    /// Time of its newest record, milliseconds since 1970 UTC.
    pub last_ms: u64,
    /// Runs with a record of it.
    pub runs: u64,
}

/// A stored criterion, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriterionSeen {
    /// Its name.
    pub name: String,
    /// When it was stored, milliseconds since 1970 UTC.
    pub at_ms: u64,
}

/// One line of the incident log: a time during which a node could not be used. A later line of the same node, start
/// and source replaces it, which is how an incident ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// Name of the node.
    pub node: String,
    /// When it began, milliseconds since 1970 UTC.
    pub start_ms: u64,
    /// When the node was usable again; none while it is not.
    #[serde(default)]
    pub end_ms: Option<u64>,
    /// What broke, by the analysis' name of it.
    pub category: String,
    /// In words.
    pub reason: String,
    /// Where it was learnt: `muster <run>` for a failed verdict, `csv`, `sacctmgr`, `operator`.
    pub source: String,
    /// Who recorded it.
    pub who: String,
    /// Benchmarks that show the defect; empty when they ran and none did, none when nobody looked.
    #[serde(default)]
    pub found_by: Option<Vec<String>>,
}

/// A stored incident model, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSeen {
    /// Counts from 1.
    pub version: u64,
    /// When it was stored, milliseconds since 1970 UTC.
    pub at_ms: u64,
    /// Its size.
    pub bytes: usize,
}

/// What the console needs of a database. `Db` is the one implementation; the trait is the way out of sled.
pub trait Store: Send {
    /// Starts `run`, or goes on with the run of that id. Durable on return.
    ///
    /// # Errors
    /// [`StoreError`], as for every method here.
    fn begin(&mut self, run: &Run) -> Result<(), StoreError>;

    /// Keeps `record`. Durable on return.
    ///
    /// # Errors
    /// On error nothing of the record is kept and everything before it is.
    fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        self.append_many(std::slice::from_ref(record))
    }

    /// Keeps `records` with one sync per run named in them. Durable on return.
    ///
    /// # Errors
    /// On error no record of the run named in the error is kept; those of runs before it in the slice are.
    fn append_many(&mut self, records: &[Record]) -> Result<(), StoreError>;

    /// Ends `run`. Durable on return.
    ///
    /// # Errors
    /// [`StoreError`].
    fn end(&mut self, run: &str, state: RunState, at_ms: u64) -> Result<(), StoreError>;

    /// Every run, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    fn runs(&self) -> Result<Vec<Run>, StoreError>;

    /// The run called `id`.
    ///
    /// # Errors
    /// [`StoreError`].
    fn run(&self, id: &str) -> Result<Option<Run>, StoreError>;

    /// Every record of `run`, sorted by node, then work. A record whose bytes rotted is left out and told in
    /// [`Store::notices`].
    ///
    /// # Errors
    /// [`StoreError::NoRun`] among others.
    fn records(&self, run: &str) -> Result<Vec<Record>, StoreError>;

    /// The records of one node, sorted by work.
    ///
    /// # Errors
    /// [`StoreError::NoRun`] among others.
    fn records_of(&self, run: &str, node: &str) -> Result<Vec<Record>, StoreError>;

    /// Every record of `run` without samples and facts, sorted by node, then work.
    ///
    /// # Errors
    /// [`StoreError::NoRun`] among others.
    fn summaries(&self, run: &str) -> Result<Vec<Summary>, StoreError>;

    /// (node, work) pairs that were acknowledged, whatever their outcome: a resumed run need not measure them again.
    ///
    /// # Errors
    /// [`StoreError::NoRun`] among others.
    fn done(&self, run: &str) -> Result<BTreeSet<(String, String)>, StoreError>;

    /// Every node that some run has a record of, by name.
    ///
    /// # Errors
    /// [`StoreError`].
    fn nodes(&self) -> Result<Vec<NodeSeen>, StoreError>;

    /// Keeps `bytes` under `name`; the newest wins, older ones stay in the file. Durable on return.
    ///
    /// # Errors
    /// [`StoreError`].
    fn put_criterion(&mut self, name: &str, bytes: &[u8]) -> Result<(), StoreError>;

    /// The newest bytes kept under `name`.
    ///
    /// # Errors
    /// [`StoreError`].
    fn criterion(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Every stored criterion, by name.
    ///
    /// # Errors
    /// [`StoreError`].
    fn criteria(&self) -> Result<Vec<CriterionSeen>, StoreError>;

    /// Adds to the incident log what it does not hold already; returns how many lines that were. Durable on return,
    /// all of them or none.
    ///
    /// # Errors
    /// [`StoreError`].
    fn record_incidents(&mut self, incidents: &[Incident]) -> Result<usize, StoreError>;

    /// Every incident as last told, by node and start.
    ///
    /// # Errors
    /// [`StoreError`].
    fn incidents(&self) -> Result<Vec<Incident>, StoreError>;

    /// Keeps an incident model and returns its version. Durable on return.
    ///
    /// # Errors
    /// [`StoreError`].
    fn put_model(&mut self, bytes: &[u8]) -> Result<u64, StoreError>;

    /// The model of that version, or the newest.
    ///
    /// # Errors
    /// [`StoreError`].
    fn model(&self, version: Option<u64>) -> Result<Option<Vec<u8>>, StoreError>;

    /// Every stored model, the oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    fn models(&self) -> Result<Vec<ModelSeen>, StoreError>;

    /// Damage met and repairs made since the last call, in words for the log.
    fn notices(&self) -> Vec<String>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visit_has_a_name_of_its_own_and_the_first_that_of_its_work() {
        for (work, visit, name) in [("disk", 1, "disk"), ("disk", 2, "disk#2"), ("collect/nic", 12, "collect/nic#12")] {
            assert_eq!(visit_name(work, visit), name);
            assert_eq!(visit_of(name), (work, visit));
        }
        assert_eq!(visit_of("c#"), ("c#", 1));
        assert_eq!((visit_of("c#1"), visit_of("c#x")), (("c#1", 1), ("c#x", 1)));
    }
}

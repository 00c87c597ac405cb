//! Settles what the store can be asked: the `Store` trait, and what it keeps beside runs and records.

use std::collections::BTreeSet;
use std::sync::Arc;

use muster_run::{Record, Run, RunState, Summary};
use serde::{Deserialize, Serialize};

use crate::{Overview, StoreError, Table};

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

/// An entry of a table, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntrySeen {
    /// Its key.
    pub key: String,
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

    /// The same of some of its nodes, in their order; nothing of those without a record.
    ///
    /// # Errors
    /// [`StoreError::NoRun`] among others.
    fn summaries_of(&self, run: &str, nodes: &[&str]) -> Result<Vec<Summary>, StoreError>;

    /// The run in short: what lists and the Selector need of it. Costs no look at its records where that was kept.
    ///
    /// # Errors
    /// [`StoreError::NoRun`] among others.
    fn overview(&self, run: &str) -> Result<Arc<Overview>, StoreError>;

    /// Every record of `run` without its series, otherwise as [`Store::records`].
    ///
    /// # Errors
    /// [`StoreError::NoRun`] among others.
    fn facts(&self, run: &str) -> Result<Vec<Record>, StoreError>;

    /// What [`Store::keep_beside`] kept, as long as the run file is, byte for byte, the one it was kept for.
    fn beside(&self, run: &str) -> Option<Vec<u8>>;

    /// Keeps what was made of the whole run, if it can be kept: whoever asks for it does without. Nothing is kept of a damaged
    /// file.
    fn keep_beside(&self, run: &str, bytes: &[u8]);

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

    /// Keeps `bytes` under `key`; the newest wins, older ones stay in the file. Durable on return.
    ///
    /// # Errors
    /// [`StoreError`].
    fn put(&mut self, table: Table, key: &str, bytes: &[u8]) -> Result<(), StoreError>;

    /// The newest bytes kept under `key`.
    ///
    /// # Errors
    /// [`StoreError`].
    fn get(&self, table: Table, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Every entry of a table, by key.
    ///
    /// # Errors
    /// [`StoreError`].
    fn list(&self, table: Table) -> Result<Vec<EntrySeen>, StoreError>;

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

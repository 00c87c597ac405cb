//! What one piece of work gave on one node.

use std::collections::BTreeMap;

use muster_wire::{Fact, MetricId, Outcome, Series};
use serde::{Deserialize, Serialize};

use crate::names::visit_of;

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

/// A record that the console makes of a node.
#[must_use]
pub fn noted(run: &str, node: &str, work: &str, facts: Vec<Fact>, at_ms: u64) -> Record {
    Record {
        run: run.to_owned(),
        node: node.to_owned(),
        work: work.to_owned(),
        outcome: Outcome::Done,
        at_ms,
        elapsed_ns: 0,
        series: Vec::new(),
        facts,
    }
}

/// Values of several series of one metric, in their order.
#[must_use]
pub fn joined<'s>(series: impl IntoIterator<Item = &'s Series>) -> Vec<f64> {
    series.into_iter().flat_map(|series| &series.values).copied().collect()
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

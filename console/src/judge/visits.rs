//! How often was each node measured?

use std::collections::{BTreeMap, BTreeSet};

use muster_run::Record;
use muster_wire::benchmark;

/// How often each node was measured by each benchmark, by the records alone, so that a resumed scan goes on as it would have.
#[derive(Debug, Default)]
pub struct Visits {
    counts: BTreeMap<(String, String), usize>,
    most: usize,
}

impl Visits {
    /// Counts the records of a run.
    pub fn new<'r>(records: impl IntoIterator<Item = &'r Record>) -> Self {
        let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
        for record in records.into_iter().filter(|record| benchmark(record.benchmark()).is_some()) {
            let visits = counts.entry((record.node.clone(), record.benchmark().to_owned())).or_default();
            *visits = record.visit().max(*visits);
        }
        let most = counts.values().copied().max().unwrap_or(0).max(1);
        Self { counts, most }
    }

    /// Number of the last visit of `node` by `benchmark`.
    #[must_use]
    pub fn of(&self, node: &str, benchmark: &str) -> usize {
        self.counts.get(&(node.to_owned(), benchmark.to_owned())).copied().unwrap_or(0)
    }

    /// Number of the last visit of any node.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most.max(1)
    }

    /// Nodes that were measured again.
    #[must_use]
    pub fn again(&self) -> BTreeSet<String> {
        self.counts.iter().filter(|(_, visits)| **visits > 1).map(|((node, _), _)| node.clone()).collect()
    }
}

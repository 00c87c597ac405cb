//! The records of a run that goes on, read once: after more visits only the nodes that took part are read again.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use muster_run::Record;
use muster_store::Store;

use super::observe::{Observer, Update};

/// Records as they were read, and who has more of them since.
#[derive(Debug, Default)]
pub(super) struct Held {
    records: Vec<Record>,
    changed: BTreeSet<String>,
}

impl Held {
    /// All records of `run`.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn of(store: &dyn Store, run: &str) -> Result<Self> {
        let records = store.records(run).context("reading back the results")?;
        Ok(Self { records, changed: BTreeSet::new() })
    }

    /// The same as a store that is asked for all of them: by node, then work.
    ///
    /// # Errors
    /// When those of a node that has more cannot be read.
    pub(super) fn renewed(&mut self, store: &dyn Store, run: &str) -> Result<&[Record]> {
        let changed = std::mem::take(&mut self.changed);
        if !changed.is_empty() {
            self.records.retain(|record| !changed.contains(&record.node));
            for node in &changed {
                self.records.extend(store.records_of(run, node).context("reading back the results")?);
            }
            self.records.sort_by(|a, b| a.node.cmp(&b.node));
        }
        Ok(&self.records)
    }
}

impl Observer for Held {
    fn see(&mut self, update: &Update<'_>) {
        if let Update::Recorded(record) = update
            && !self.changed.contains(&record.node)
        {
            self.changed.insert(record.node.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_run::{Run, RunState, noted};
    use muster_store::{Db, Options};
    use muster_wire::{Outcome, Profile};

    #[test]
    fn what_is_read_again_of_some_nodes_is_what_the_store_says_of_all() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Db::open(dir.path(), &Options::default()).unwrap();
        let nodes: Vec<String> = ["n1", "n10", "n2", "n2-a", "n3"].map(str::to_owned).to_vec();
        let run = Run {
            id: "r".to_owned(),
            playbook: "demo".to_owned(),
            profile: Profile::Smoke,
            started_ms: 1,
            ended_ms: None,
            nodes: nodes.clone(),
            plan: vec!["disk".to_owned()],
            state: RunState::Running,
        };
        store.begin(&run).unwrap();
        let record = |node: &str, work: &str| Record { outcome: Outcome::Done, ..noted("r", node, work, vec![], 2) };
        let first = nodes[1..].iter().flat_map(|node| [record(node, "disk"), record(node, "collect/nic")]);
        store.append_many(&first.collect::<Vec<_>>()).unwrap();
        let mut held = Held::of(&store, "r").unwrap();
        assert_eq!(held.renewed(&store, "r").unwrap(), store.records("r").unwrap());
        for later in [vec![record("n2", "disk#2"), record("n1", "disk")], vec![record("n2", "disk#3")], vec![]] {
            store.append_many(&later).unwrap();
            later.iter().for_each(|record| held.see(&Update::Recorded(record)));
            assert_eq!(held.renewed(&store, "r").unwrap(), store.records("r").unwrap());
        }
    }
}

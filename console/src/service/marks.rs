//! What people said of machines: put into repair, kept as a spare, given back. Nothing is ever taken out of it.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use muster_analysis::service::Marked;
use muster_store::{Store, Table};
use muster_wire::clean;
use serde::{Deserialize, Serialize};

use crate::clock::now_ms;
use crate::who;

/// Most entries of one machine; the oldest go.
const MOST: usize = 1000;
/// Longest reason, bytes.
const REASON: usize = 1000;

/// What somebody said of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// In whose hands it is from then on.
    pub state: Marked,
    /// Since when, milliseconds since 1970 UTC.
    pub at_ms: u64,
    /// Who said so.
    pub who: String,
    /// Why, in words.
    pub why: String,
    /// The other machine of a swap: of one in repair the one that took its place, of one in service the one whose place it took. Marks of
    /// earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counterpart: Option<String>,
}

impl Mark {
    /// What the user says at this moment.
    #[must_use]
    pub fn now(state: Marked, reason: &str) -> Self {
        Self { state, at_ms: now_ms(), who: who::user(), why: clean(reason.trim(), REASON), counterpart: None }
    }

    /// The swap in words, such as `replaced by n101`; empty where it is none.
    #[must_use]
    pub fn swap(&self) -> String {
        match (&self.counterpart, self.state) {
            (Some(other), Marked::InRepair) => format!("replaced by {other}"),
            (Some(other), _) => format!("in place of {other}"),
            (None, _) => String::new(),
        }
    }
}

/// What was said of every machine, oldest first.
///
/// # Errors
/// When the store cannot be read, or an entry is corrupt.
pub fn marks(store: &dyn Store) -> Result<BTreeMap<String, Vec<Mark>>> {
    let mut all = BTreeMap::new();
    for node in store.list(Table::Service)?.into_iter().map(|seen| seen.key) {
        let said = of(store, &node)?;
        all.insert(node, said);
    }
    Ok(all)
}

fn of(store: &dyn Store, node: &str) -> Result<Vec<Mark>> {
    let Some(bytes) = store.get(Table::Service, node)? else { return Ok(Vec::new()) };
    serde_json::from_slice(&bytes).with_context(|| format!("what was said of {node} is corrupt (run: muster db check)"))
}

/// Adds to what was said of a machine.
///
/// # Errors
/// When the store fails.
pub fn mark(store: &mut dyn Store, node: &str, mark: Mark) -> Result<()> {
    let mut said = of(store, node)?;
    said.push(mark);
    let begin = said.len().saturating_sub(MOST);
    store.put(Table::Service, node, &serde_json::to_vec(&said[begin..])?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use muster_store::{Db, Options};

    use super::*;

    #[test]
    fn all_that_was_said_of_a_machine_is_kept_in_its_order() {
        let dir = tempfile::tempdir().unwrap();
        let mut db = Db::open(dir.path(), &Options::default()).unwrap();
        let said = |state, at_ms| Mark { state, at_ms, who: "kim".into(), why: "RMA 4711".into(), counterpart: None };
        mark(&mut db, "n7", said(Marked::InRepair, 5)).unwrap();
        mark(&mut db, "n7", said(Marked::InService, 9)).unwrap();
        mark(&mut db, "n8", said(Marked::HotBuffer, 7)).unwrap();
        let all = marks(&db).unwrap();
        assert_eq!(all["n7"], [said(Marked::InRepair, 5), said(Marked::InService, 9)]);
        assert_eq!(all["n8"], [said(Marked::HotBuffer, 7)]);
        assert!(crate::judge::versions(&db).unwrap().is_empty(), "no criterion");
    }

    #[test]
    fn marks_of_earlier_versions_name_no_other_machine_and_those_without_one_are_written_as_before() {
        let dir = tempfile::tempdir().unwrap();
        let mut db = Db::open(dir.path(), &Options::default()).unwrap();
        let old = r#"[{"state":"in-repair","at_ms":5,"who":"kim","why":"RMA 4711"}]"#;
        db.put(Table::Service, "n7", old.as_bytes()).unwrap();
        let said = marks(&db).unwrap().remove("n7").unwrap();
        assert_eq!((said[0].state, said[0].counterpart.as_deref()), (Marked::InRepair, None));
        assert_eq!(serde_json::to_string(&said).unwrap(), old);
        let replaced = Mark { counterpart: Some("n101".into()), ..said[0].clone() };
        mark(&mut db, "n7", replaced.clone()).unwrap();
        assert_eq!(marks(&db).unwrap()["n7"].last(), Some(&replaced));
        assert_eq!(replaced.swap(), "replaced by n101");
        assert_eq!(Mark { state: Marked::InService, ..replaced }.swap(), "in place of n101");
    }
}

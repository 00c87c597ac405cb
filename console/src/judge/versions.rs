//! Versions of criteria in the store: which there are, where each came from, and which of them are frozen.
//!
//! A version is kept under its content's identity and never changes. What is frozen is a second entry that points at
//! a version; the newest pointer of a group and metric holds.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use muster_analysis::decide::Frozen;
use muster_analysis::{Criterion, Learned, State, Status};
use muster_store::{Store, Table};
use muster_wire::clean;
use serde::{Deserialize, Serialize};

/// Nodes outside a criterion that are kept as its evidence, worst first.
const OUTSIDE: usize = 100;

/// One version of a criterion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// What it demands; its id is the version's.
    pub criterion: Criterion,
    /// Which nodes it is for, such as `profile=quick,sku=h100`; empty for all.
    pub group: String,
    /// When it was learned, milliseconds since 1970 UTC.
    pub learned_ms: u64,
    /// Run or file it was learned from.
    pub source: String,
    /// Nodes that were outside it then, least similar first.
    pub outside: Vec<Outside>,
    /// How far nodes and runs differ by it, over all runs it was frozen from; `None` until it is frozen.
    #[serde(default)]
    pub spread: Option<Frozen>,
}

/// A node outside a criterion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outside {
    /// Its name.
    pub node: String,
    /// One-sided similarity; `None` where its benchmark failed.
    pub similarity: Option<f64>,
}

impl Version {
    /// What was learned just now.
    #[must_use]
    pub fn of(learned: &Learned, group: &str, source: &str, learned_ms: u64) -> Self {
        let bad = learned.verdicts.iter().filter(|v| v.state >= State::Warn);
        let mut outside: Vec<Outside> =
            bad.map(|v| Outside { node: v.node.to_string(), similarity: v.similarity }).collect();
        outside.sort_by(|a, b| a.similarity.unwrap_or(-1.0).total_cmp(&b.similarity.unwrap_or(-1.0)));
        outside.truncate(OUTSIDE);
        let (group, source) = (group.to_owned(), source.to_owned());
        Self { criterion: learned.criterion.clone(), group, learned_ms, source, outside, spread: None }
    }

    /// Metric as the pointers name it.
    #[must_use]
    pub fn metric(&self) -> String {
        self.criterion.metric.to_string()
    }

    /// Why it should not judge anybody, if so.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        let criterion = &self.criterion;
        let why = match criterion.status {
            Status::Ok => return None,
            Status::Provisional => format!("only {} nodes agreed on it", criterion.n),
            Status::NoConsensus => "the nodes did not agree on what is normal".to_owned(),
            Status::Bimodal => "the nodes fell into two groups: learn it per group".to_owned(),
            Status::NotRepeatable => "the metric did not repeat".to_owned(),
        };
        Some(why)
    }
}

/// What a metric of a group is judged by, and since when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Pointer {
    /// The version; `None` once thawed.
    id: Option<String>,
    /// Milliseconds since 1970 UTC.
    at_ms: u64,
}

/// Every version, by metric, then group, then age. Entries that another muster wrote otherwise are told and left out.
///
/// # Errors
/// When the store cannot be read.
pub fn versions(store: &dyn Store) -> Result<Vec<Version>> {
    let mut found = Vec::new();
    for name in store.list(Table::Criteria)?.into_iter().map(|seen| seen.key) {
        let Some(bytes) = store.get(Table::Criteria, &name)? else { continue };
        match serde_json::from_slice::<Version>(&bytes) {
            Ok(version) => found.push(version),
            Err(why) => log::warn!("criterion {} is of another muster and left out: {why}", clean(&name, 200)),
        }
    }
    found.sort_by_cached_key(|v| (v.metric(), v.group.clone(), v.learned_ms));
    Ok(found)
}

/// The version called `name`: an identity or its beginning, or a metric, of which the newest is meant.
///
/// # Errors
/// When there is none, or several metrics or groups are meant.
pub fn find(store: &dyn Store, name: &str) -> Result<Version> {
    let fits = |v: &Version| {
        let metric = v.metric();
        v.criterion.id.starts_with(name) && name.contains('#') || metric == name || v.criterion.metric.path() == name
    };
    let all: Vec<Version> = versions(store)?.into_iter().filter(fits).collect();
    let mut kinds: Vec<(String, &str)> = all.iter().map(|v| (v.metric(), v.group.as_str())).collect();
    kinds.dedup();
    if kinds.len() > 1 {
        let ids: Vec<String> = all.iter().map(|v| format!("{} ({})", v.criterion.id, v.group)).collect();
        bail!("'{name}' may mean {}", ids.join(" or "));
    }
    all.into_iter().next_back().with_context(|| format!("no criterion '{name}'; see `muster criteria list`"))
}

/// Keeps a version; `false` when it was there already.
///
/// # Errors
/// When the store cannot keep it.
pub fn keep(store: &mut dyn Store, version: &Version) -> Result<bool> {
    if store.get(Table::Criteria, &version.criterion.id)?.is_some() {
        return Ok(false);
    }
    store.put(Table::Criteria, &version.criterion.id, &serde_json::to_vec(version)?)?;
    Ok(true)
}

/// Identities of the frozen versions, by group and metric.
///
/// # Errors
/// When the store cannot be read.
pub fn frozen(store: &dyn Store) -> Result<BTreeMap<(String, String), String>> {
    let mut found = BTreeMap::new();
    for key in store.list(Table::Frozen)?.into_iter().map(|seen| seen.key) {
        let Some((group, metric)) = key.split_once('|') else { continue };
        let Some(bytes) = store.get(Table::Frozen, &key)? else { continue };
        let pointer: Pointer = serde_json::from_slice(&bytes)
            .with_context(|| format!("frozen criterion for {metric} is corrupt (run: muster db check)"))?;
        if let Some(id) = pointer.id {
            found.insert((group.to_owned(), metric.to_owned()), id);
        }
    }
    Ok(found)
}

/// From now on runs are judged by `version` and the spread that it carries, until it is thawed or another one of its group and
/// metric is frozen.
///
/// # Errors
/// When the store cannot keep it.
pub fn freeze(store: &mut dyn Store, version: &Version) -> Result<()> {
    // Kept anew: the spread is learned when it is frozen.
    store.put(Table::Criteria, &version.criterion.id, &serde_json::to_vec(version)?)?;
    point(store, &version.group, &version.metric(), Some(version.criterion.id.clone()))
}

/// From now on runs are judged by what they show themselves.
///
/// # Errors
/// When the store cannot keep it.
pub fn thaw(store: &mut dyn Store, group: &str, metric: &str) -> Result<()> {
    point(store, group, metric, None)
}

fn point(store: &mut dyn Store, group: &str, metric: &str, id: Option<String>) -> Result<()> {
    let pointer = Pointer { id, at_ms: crate::clock::now_ms() };
    store.put(Table::Frozen, &format!("{group}|{metric}"), &serde_json::to_vec(&pointer)?)?;
    Ok(())
}

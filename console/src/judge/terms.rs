//! By what a run is judged: thresholds, groups and frozen criteria, written down when the run begins.
//!
//! Verdicts are recomputed from samples, so what they were computed with has to be kept as well, or a criterion that is
//! frozen today would change what was said yesterday.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use muster_analysis::decide::Frozen;
use muster_analysis::records::cards::Cards;
use muster_analysis::{Criterion, Params};
use muster_run::Run;
use muster_store::{Store, Table};
use muster_wire::{MetricId, Profile};
use serde::{Deserialize, Serialize};

use super::cards::known;
use super::steps::{Profiled, kept_steps};
use super::versions::{Version, frozen};

/// What is written down.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// Thresholds.
    pub params: Params,
    /// Group of a node; nodes that are not named are in the group of the profile alone.
    #[serde(default)]
    pub groups: BTreeMap<String, String>,
    /// Identities of the frozen criteria.
    #[serde(default)]
    pub frozen: Vec<String>,
    /// Tuned steps that were in force, so that a resumed run keeps them.
    #[serde(default)]
    pub steps: BTreeMap<String, Profiled>,
}

/// Terms with their criteria at hand.
#[derive(Clone, Debug, Default)]
pub struct Judging {
    /// What is written down.
    pub terms: Terms,
    /// How these differ from what the run was judged by when it was made; `None` where they do not.
    pub rejudged: Option<String>,
    criteria: HashMap<(String, MetricId), (Criterion, Option<Frozen>)>,
    /// GPU cards as they were in earlier runs.
    pub(super) cards: Cards,
    /// Progress of the judging, for whoever is waiting.
    pub count: Arc<Count>,
}

/// How many metrics of a run have been judged.
#[derive(Debug, Default)]
pub struct Count {
    metrics: AtomicUsize,
    groups: AtomicUsize,
    done: AtomicUsize,
}

impl Count {
    /// Starts the count: so many metrics, each judged in so many groups of nodes.
    pub fn begin(&self, metrics: usize, groups: usize) {
        self.done.store(0, Ordering::Relaxed);
        self.groups.store(groups, Ordering::Relaxed);
        self.metrics.store(metrics, Ordering::Relaxed);
    }

    /// Counts one metric of one group as judged.
    pub fn add(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Metrics judged so far, and in all; those of several groups count in part.
    #[must_use]
    pub fn get(&self) -> (usize, usize) {
        let (done, metrics) = (self.done.load(Ordering::Relaxed), self.metrics.load(Ordering::Relaxed));
        ((done / self.groups.load(Ordering::Relaxed).max(1)).min(metrics), metrics)
    }
}

/// Group of all nodes of a profile.
#[must_use]
pub fn group_of(profile: Profile, labels: &str) -> String {
    if labels.is_empty() { format!("profile={profile}") } else { format!("profile={profile},{labels}") }
}

impl Judging {
    /// By what a run shows itself.
    #[must_use]
    pub fn own(params: Params) -> Self {
        Self { terms: Terms { params, ..Terms::default() }, ..Self::default() }
    }

    /// By what is in force now: frozen criteria, and the run itself for everything else. `groups` as in [`Terms`].
    ///
    /// # Errors
    /// When the store cannot be read, or a frozen criterion is not in it.
    pub fn now(store: &dyn Store, params: Params, groups: BTreeMap<String, String>) -> Result<Self> {
        let frozen = frozen(store)?.into_values().collect();
        Self::by(store, Terms { params, groups, frozen, steps: kept_steps(store)? })
    }

    /// By `terms`.
    ///
    /// # Errors
    /// As [`Judging::now`].
    pub fn by(store: &dyn Store, terms: Terms) -> Result<Self> {
        let mut criteria = HashMap::new();
        for id in &terms.frozen {
            let bytes =
                store.get(Table::Criteria, id)?.with_context(|| format!("the frozen criterion {id} is not there"))?;
            let version: Version = serde_json::from_slice(&bytes)
                .with_context(|| format!("frozen criterion {id} is corrupt (run: muster db check)"))?;
            let frozen = version.spread.or_else(|| version.criterion.assumed_spread());
            criteria.insert((version.group, version.criterion.metric.clone()), (version.criterion, frozen));
        }
        Ok(Self { terms, criteria, ..Self::default() })
    }

    /// By what `run` was judged when it was made, with the thresholds `params` that are asked for now; says so where
    /// they are others. A run without terms is judged by what it shows itself.
    ///
    /// # Errors
    /// As [`Judging::now`].
    pub fn of(store: &dyn Store, run: &Run, params: Params) -> Result<Self> {
        let cards = known(store, run)?;
        let Some(bytes) = store.get(Table::Terms, &run.id)? else {
            return Ok(Self { cards, ..Self::own(params) });
        };
        let mut terms: Terms =
            serde_json::from_slice(&bytes).with_context(|| format!("the terms of run {} do not decode", run.id))?;
        let (then, now) = (&terms.params, &params);
        let changes = [("alpha", then.alpha, now.alpha), ("tau", then.tau, now.tau)].into_iter();
        let said: Vec<String> =
            changes.filter(|(_, a, b)| a != b).map(|(name, a, b)| format!("{name} {b} instead of {a}")).collect();
        terms.params = params;
        let rejudged = (!said.is_empty()).then(|| said.join(", "));
        Ok(Self { rejudged, cards, ..Self::by(store, terms)? })
    }

    /// Writes the terms down for `run`.
    ///
    /// # Errors
    /// When the store cannot keep them.
    pub fn keep(&self, store: &mut dyn Store, run: &str) -> Result<()> {
        store.put(Table::Terms, run, &serde_json::to_vec(&self.terms)?)?;
        Ok(())
    }

    /// Judges the metric of `criterion` by it in every group, whatever is frozen.
    #[must_use]
    pub fn instead(mut self, criterion: Criterion) -> Self {
        self.criteria.retain(|(_, metric), _| *metric != criterion.metric);
        let frozen = criterion.assumed_spread();
        self.criteria.insert((String::new(), criterion.metric.clone()), (criterion, frozen));
        self
    }

    /// Group of `node` in a run of `profile`.
    #[must_use]
    pub fn group(&self, profile: Profile, node: &str) -> String {
        group_of(profile, self.terms.groups.get(node).map_or("", String::as_str))
    }

    /// The frozen criterion of a group: learned from its profile, or else for its labels, or else for everybody.
    #[must_use]
    pub fn criterion(&self, group: &str, metric: &MetricId) -> Option<&Criterion> {
        self.kept(group, metric).map(|(criterion, _)| criterion)
    }

    /// How far nodes and runs may differ from the frozen criterion of a group; `None` where nothing is frozen, or what is says
    /// too little to decide by.
    #[must_use]
    pub fn frozen(&self, group: &str, metric: &MetricId) -> Option<&Frozen> {
        self.kept(group, metric).and_then(|(_, frozen)| frozen.as_ref())
    }

    fn kept(&self, group: &str, metric: &MetricId) -> Option<&(Criterion, Option<Frozen>)> {
        let of = |group: &str| self.criteria.get(&(group.to_owned(), metric.clone()));
        let labels = group.split_once(',').map_or("", |(_, labels)| labels);
        of(group).or_else(|| of(labels)).or_else(|| of(""))
    }
}

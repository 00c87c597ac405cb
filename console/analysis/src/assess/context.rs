//! By what a run is judged: its evaluation context.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use muster_wire::{MetricId, Profile};

use crate::decide::Frozen;
use crate::records::cards::Cards;
use crate::{Criterion, Params};

/// Thresholds, groups and criteria of a run, and what was seen of its GPU cards before.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Thresholds.
    pub params: Params,
    /// Group of a node; nodes that are not named are in the group of the profile alone.
    pub groups: BTreeMap<String, String>,
    /// GPU cards as they were in earlier runs.
    pub cards: Cards,
    /// Progress of the judging, for whoever is waiting.
    pub count: Arc<Count>,
    criteria: HashMap<(String, MetricId), (Criterion, Option<Frozen>)>,
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

impl Context {
    /// By what a run shows itself.
    #[must_use]
    pub fn own(params: Params) -> Self {
        Self { params, ..Self::default() }
    }

    /// Adds a frozen criterion of a group, and how far nodes and runs may differ from it.
    pub fn freeze(&mut self, group: String, criterion: Criterion, frozen: Option<Frozen>) {
        self.criteria.insert((group, criterion.metric.clone()), (criterion, frozen));
    }

    /// Judges the metric of `criterion` by it in every group, whatever is frozen.
    #[must_use]
    pub fn instead(mut self, criterion: Criterion) -> Self {
        self.criteria.retain(|(_, metric), _| *metric != criterion.metric);
        let frozen = criterion.assumed_spread();
        self.freeze(String::new(), criterion, frozen);
        self
    }

    /// Group of `node` in a run of `profile`.
    #[must_use]
    pub fn group(&self, profile: Profile, node: &str) -> String {
        group_of(profile, self.groups.get(node).map_or("", String::as_str))
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

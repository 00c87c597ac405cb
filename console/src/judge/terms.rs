//! By what a run is judged: thresholds, groups and frozen criteria, written down when the run begins.
//!
//! Verdicts are recomputed from samples, so what they were computed with has to be kept as well, or a criterion that is
//! frozen today would change what was said yesterday.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use muster_analysis::assess::Context;
use muster_analysis::{Criterion, Params};
use muster_run::Run;
use muster_store::{Store, Table};
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
    /// What they come to.
    pub context: Context,
}

impl Judging {
    /// By what a run shows itself.
    #[must_use]
    pub fn own(params: Params) -> Self {
        let context = Context::own(params.clone());
        Self { terms: Terms { params, ..Terms::default() }, context, ..Self::default() }
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
        let mut context = Context::own(terms.params.clone());
        context.groups.clone_from(&terms.groups);
        for id in &terms.frozen {
            let bytes =
                store.get(Table::Criteria, id)?.with_context(|| format!("the frozen criterion {id} is not there"))?;
            let version: Version = serde_json::from_slice(&bytes)
                .with_context(|| format!("frozen criterion {id} is corrupt (run: muster db check)"))?;
            let frozen = version.spread.or_else(|| version.criterion.assumed_spread());
            context.freeze(version.group, version.criterion, frozen);
        }
        Ok(Self { terms, context, ..Self::default() })
    }

    /// By what `run` was judged when it was made, with the thresholds `params` that are asked for now; says so where
    /// they are others. A run without terms is judged by what it shows itself.
    ///
    /// # Errors
    /// As [`Judging::now`].
    pub fn of(store: &dyn Store, run: &Run, params: Params) -> Result<Self> {
        let cards = known(store, run)?;
        let Some(bytes) = store.get(Table::Terms, &run.id)? else {
            let mut own = Self::own(params);
            own.context.cards = cards;
            return Ok(own);
        };
        let mut terms: Terms =
            serde_json::from_slice(&bytes).with_context(|| format!("the terms of run {} do not decode", run.id))?;
        let (then, now) = (&terms.params, &params);
        let changes = [("alpha", then.alpha, now.alpha), ("tau", then.tau, now.tau)].into_iter();
        let said: Vec<String> =
            changes.filter(|(_, a, b)| a != b).map(|(name, a, b)| format!("{name} {b} instead of {a}")).collect();
        terms.params = params;
        let rejudged = (!said.is_empty()).then(|| said.join(", "));
        let mut judging = Self { rejudged, ..Self::by(store, terms)? };
        judging.context.cards = cards;
        Ok(judging)
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
        self.context = self.context.instead(criterion);
        self
    }
}

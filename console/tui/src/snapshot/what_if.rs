//! What other terms would say: a question about the run that is shown, and its answer.

use std::sync::Arc;

use crate::judgement::State;

/// Terms of judgement to try; the screen asks with [`crate::Intent::WhatIf`].
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// Similarity below which a node is a defect, 0 to 1.
    pub alpha: f64,
    /// Relative distance that is not counted, 0 to 1.
    pub tau: f64,
    /// Only the nodes of this group, judged among themselves; `None` takes all.
    pub group: Option<String>,
    /// Identity of the stored criterion that judges its metric, alpha and tau aside; `None` judges by what the run shows
    /// or what was frozen when it was made.
    pub version: Option<String>,
}

/// What these terms say.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIf {
    /// The question.
    pub terms: Terms,
    /// Nodes judged.
    pub nodes: usize,
    /// Nodes that would be in another state, those that would fail first.
    pub flips: Arc<[Flip]>,
    /// Time the answer took.
    pub took_ms: u64,
}

/// A node that would be in another state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flip {
    /// Index into [`crate::Snapshot::nodes`].
    pub node: usize,
    /// State in force.
    pub from: State,
    /// State under the terms.
    pub to: State,
    /// Why, one sentence; empty where it passes.
    pub because: String,
}

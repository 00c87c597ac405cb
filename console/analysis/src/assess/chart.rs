//! What a chart of one metric shows beside its criterion: where the samples lie, and those of the nodes that failed.

use std::sync::Arc;

use crate::{NodeVerdict, Sample, State, cdf_band};
use serde::{Deserialize, Serialize};

/// Failed nodes whose samples are kept.
const FAILED: usize = 6;

/// The samples of one metric, as far as a chart needs them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// The smallest and the largest value at 64 levels of the nodes that did not fail; `None` where they are fewer than two.
    pub band: Option<[Vec<f64>; 2]>,
    /// Those that failed, least similar to the criterion first, with their newest samples.
    pub failed: Vec<(Arc<str>, Sample)>,
}

impl Chart {
    /// Of the nodes that have a verdict, each with its newest sample.
    pub(super) fn of(nodes: &[(&NodeVerdict, &Sample)]) -> Self {
        let is_failed = |verdict: &NodeVerdict| verdict.state == State::Fail;
        let healthy = nodes.iter().filter(|(verdict, _)| !is_failed(verdict)).map(|(_, sample)| *sample);
        // A benchmark that failed has no curve that belongs beside the others'.
        let is_compared = |verdict: &NodeVerdict| is_failed(verdict) && verdict.similarity.is_some();
        let mut failed: Vec<_> = nodes.iter().filter(|(verdict, _)| is_compared(verdict)).collect();
        let order = |verdict: &NodeVerdict| verdict.similarity.unwrap_or(f64::INFINITY);
        failed.sort_by(|a, b| order(a.0).total_cmp(&order(b.0)));
        let failed = failed.into_iter().take(FAILED);
        Self {
            band: cdf_band(healthy),
            failed: failed.map(|(of, sample)| (of.node.clone(), (*sample).clone())).collect(),
        }
    }

    /// The sample of a node that failed.
    #[must_use]
    pub fn failed(&self, node: &str) -> Option<&Sample> {
        self.failed.iter().find(|(of, _)| **of == *node).map(|(_, sample)| sample)
    }
}

//! What was learned, as the `muster.criteria` document (assets/schemas/muster.criteria.json).

use muster_analysis::{Criterion, Grain, Learned, NodeVerdict, State, Status};
use muster_wire::{Direction, Unit, clean, limits};
use serde::{Deserialize, Serialize};

/// Name of the document.
pub const CRITERIA_SCHEMA: &str = "muster.criteria";

/// The `muster.criteria` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CriteriaReport {
    /// [`CRITERIA_SCHEMA`].
    pub schema: String,
    /// Version of the document; 1.
    pub version: u32,
    /// One per metric, in the order they were pushed.
    pub criteria: Vec<CriterionReport>,
}

/// One metric's criterion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CriterionReport {
    /// `benchmark/name`, or the name an imported file gives it.
    pub metric: String,
    /// What measured it; left out where an imported file does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub engine: String,
    /// Unit of the samples.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// Threshold of the one-sided similarity.
    pub alpha: f64,
    /// Tail floor of the distance.
    pub tau: f64,
    /// What of the samples is compared: every step, their mean, or their median.
    pub grain: Grain,
    /// Nodes with a valid sample.
    pub n: usize,
    /// Of those, the healthy ones.
    pub healthy: usize,
    /// How far it may be trusted.
    pub status: Status,
    /// Mean similarity over all pairs of healthy nodes; null with fewer than two.
    pub repeatability: Option<f64>,
    /// Nodes outside the criterion (verdict fail or warn), least similar first; nodes whose benchmark failed lead.
    pub defects: Vec<Defect>,
}

/// A node outside a criterion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Defect {
    /// Node name.
    pub node: String,
    /// One-sided similarity; null when the node has no valid sample because the benchmark failed there.
    pub similarity: Option<f64>,
}

impl Default for CriteriaReport {
    fn default() -> Self {
        Self { schema: CRITERIA_SCHEMA.to_owned(), version: 1, criteria: Vec::new() }
    }
}

impl CriteriaReport {
    /// Adds what was learned about one metric.
    pub fn push(&mut self, learned: &Learned) {
        self.criteria.push(CriterionReport::new(&learned.criterion, &learned.verdicts));
    }

    /// Adds what was learned about a metric of an imported file, under the name the file gives it.
    pub fn push_named(&mut self, metric: impl Into<String>, learned: &Learned) {
        let report = CriterionReport::new(&learned.criterion, &learned.verdicts);
        let metric = clean(&metric.into(), limits::TEXT_BYTES);
        self.criteria.push(CriterionReport { metric, engine: String::new(), ..report });
    }
}

impl CriterionReport {
    /// Reports `criterion`; `verdicts` are those judged by it, from which the defects are taken.
    pub fn new<'a>(criterion: &Criterion, verdicts: impl IntoIterator<Item = &'a NodeVerdict>) -> Self {
        let mut defects: Vec<Defect> = verdicts
            .into_iter()
            .filter(|verdict| matches!(verdict.state, State::Fail | State::Warn))
            .map(|verdict| Defect {
                node: clean(&verdict.node, limits::TEXT_BYTES),
                similarity: verdict.similarity.filter(|similarity| similarity.is_finite()),
            })
            .collect();
        defects.sort_by(|a, b| {
            let order = |defect: &Defect| defect.similarity.unwrap_or(f64::NEG_INFINITY);
            order(a).total_cmp(&order(b)).then_with(|| a.node.cmp(&b.node))
        });
        Self {
            metric: clean(&criterion.metric.path(), limits::TEXT_BYTES),
            engine: clean(&criterion.metric.engine, limits::NAME_BYTES),
            unit: criterion.unit,
            direction: criterion.direction,
            alpha: criterion.alpha,
            tau: criterion.tau,
            grain: criterion.grain,
            n: criterion.n,
            healthy: criterion.healthy,
            status: criterion.status,
            repeatability: criterion.repeatability.filter(|value| value.is_finite()),
            defects,
        }
    }
}

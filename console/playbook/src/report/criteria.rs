//! What was learned, as the `muster.criteria` document (assets/schemas/muster.criteria.json).

use muster_analysis::{Cluster, Criterion, Grain, Learned, NodeVerdict, State, Status};
use muster_wire::{Direction, Unit, clean, limits};
use serde::{Deserialize, Serialize};

use super::rfc3339;

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
    /// Version: the identity of its content.
    pub id: String,
    /// Nodes it is for, such as `profile=quick,sku=h100`; left out where it is for all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Judges every run until it is thawed; left out where it does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub frozen: bool,
    /// When it was learned, RFC 3339, UTC; left out where it was learned just now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned: Option<String>,
    /// Run or file it was learned from; left out as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
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
    /// The two clusters the nodes fall into, the larger one first; left out where they are one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<Cluster>,
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
    /// Adds what was learned about one metric on all nodes.
    pub fn push(&mut self, learned: &Learned) {
        self.push_in(None, "", learned);
    }

    /// Adds what was learned about one metric on a group of nodes, under the name that a file gives the metric, if any.
    pub fn push_in(&mut self, shown: Option<&str>, group: &str, learned: &Learned) {
        let mut report = CriterionReport::new(&learned.criterion, &learned.verdicts);
        report.group = clean(group, limits::TEXT_BYTES);
        if let Some(name) = shown {
            (report.metric, report.engine) = (clean(name, limits::TEXT_BYTES), String::new());
        }
        self.criteria.push(report);
    }

    /// Adds a version that is kept: the nodes that were outside it, its group, when (milliseconds since 1970 UTC) and
    /// from what it was learned, and whether it is frozen.
    pub fn push_version<'a>(
        &mut self,
        criterion: &Criterion,
        outside: impl Iterator<Item = (&'a str, Option<f64>)>,
        (group, learned_ms, source): (&str, u64, &str),
        frozen: bool,
    ) {
        let defect =
            |(node, similarity): (&str, Option<f64>)| Defect { node: clean(node, limits::TEXT_BYTES), similarity };
        self.criteria.push(CriterionReport {
            defects: outside.map(defect).collect(),
            group: clean(group, limits::TEXT_BYTES),
            frozen,
            learned: Some(rfc3339(learned_ms)),
            source: Some(clean(source, limits::TEXT_BYTES)),
            ..CriterionReport::new(criterion, [])
        });
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
            id: clean(&criterion.id, limits::TEXT_BYTES),
            group: String::new(),
            frozen: false,
            learned: None,
            source: None,
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
            clusters: criterion.clusters.clone(),
            defects,
        }
    }
}

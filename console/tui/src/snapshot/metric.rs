//! What is known of the metrics over the fleet.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use muster_wire::{Direction, MetricId, Unit};

use crate::judgement::{State, Status};
use crate::snapshot::Counts;

/// Points `(x, share)` of an empirical CDF, x ascending in the metric's unit, share ascending to 1. A step function:
/// the share is reached at x. Thinned to what a screen can show (a few hundred points).
pub type Curve = Arc<[(f64, f64)]>;

/// Rows of the metrics in the order of the catalogue, one after another where nodes of several kinds have the same metric.
/// Found by their identity; a place among them means nothing in another snapshot.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    rows: Vec<Arc<MetricRow>>,
    first: HashMap<MetricId, usize>,
}

impl Metrics {
    /// Of `rows`, of which those of the same metric stand together.
    #[must_use]
    pub fn new(rows: Vec<Arc<MetricRow>>) -> Self {
        let mut first = HashMap::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            first.entry(row.id.clone()).or_insert(at);
        }
        Self { rows, first }
    }

    /// The first row of the metric, whichever nodes it covers.
    #[must_use]
    pub fn of(&self, id: &MetricId) -> Option<&MetricRow> {
        self.rows.get(*self.first.get(id)?).map(Arc::as_ref)
    }

    /// Place of the metric, among those of the kind of `node` if it is compared there.
    #[must_use]
    pub fn place(&self, id: &MetricId, node: Option<usize>) -> Option<usize> {
        let first = *self.first.get(id)?;
        let same = self.rows[first..].iter().take_while(|row| row.id == *id);
        let own = same.enumerate().find(|(_, row)| row.scores.iter().any(|score| Some(score.node) == node));
        Some(own.map_or(first, |(further, _)| first + further))
    }
}

impl Deref for Metrics {
    type Target = [Arc<MetricRow>];

    fn deref(&self) -> &Self::Target {
        &self.rows
    }
}

/// One metric over the fleet.
#[derive(Clone, Debug)]
pub struct MetricRow {
    /// Identity.
    pub id: MetricId,
    /// Unit of values and of every curve's x.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// How far the criterion can be relied on; `None` before there is one.
    pub status: Option<Status>,
    /// Identity of the criterion, such as `c-4f2a`, empty before there is one.
    pub version: String,
    /// Nodes with a sample.
    pub n: usize,
    /// Nodes found healthy among them.
    pub healthy: usize,
    /// Mean similarity of the healthy nodes among themselves, 0 to 1.
    pub repeatability: Option<f64>,
    /// Similarity below which a node is a defect.
    pub alpha: f64,
    /// Relative distance that is not counted.
    pub tau: f64,
    /// Median of the criterion.
    pub median: Option<f64>,
    /// The criterion's CDF; empty before there is one.
    pub criterion: Curve,
    /// The healthy peers' CDFs; `None` before there are enough.
    pub peers: Option<Band>,
    /// Nodes below alpha, worst first, as many as are worth a line each.
    pub defects: Arc<[NodeCurve]>,
    /// Every node with a verdict, worst first.
    pub scores: Arc<[Score]>,
    /// How many nodes are in each state here.
    pub counts: Counts,
}

/// Where the healthy peers lie.
#[derive(Clone, Debug)]
pub struct Band {
    /// At each x the lowest share of any peer: the right edge.
    pub lower: Curve,
    /// At each x the highest share of any peer: the left edge.
    pub upper: Curve,
}

/// A node's CDF.
#[derive(Clone, Debug)]
pub struct NodeCurve {
    /// Name.
    pub node: String,
    /// Its CDF.
    pub curve: Curve,
}

/// A node's place in a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Index into [`crate::Snapshot::nodes`].
    pub node: usize,
    /// One-sided similarity to the criterion; `None` without a sample.
    pub similarity: Option<f64>,
    /// Judgement.
    pub state: State,
    /// When it was measured, seconds since 1970 UTC: a fleet has millions of these, and milliseconds would need more room.
    at_s: u32,
}

impl Score {
    /// The score of a node that was measured at `at_ms`.
    #[must_use]
    pub fn new(node: usize, similarity: Option<f64>, state: State, at_ms: u64) -> Self {
        Self { node, similarity, state, at_s: u32::try_from(at_ms / 1000).unwrap_or(u32::MAX) }
    }

    /// When it was measured.
    #[must_use]
    pub const fn at_ms(&self) -> u64 {
        self.at_s as u64 * 1000
    }
}

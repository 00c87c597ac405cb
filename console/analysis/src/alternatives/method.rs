//! How one method splits a fleet into healthy nodes and defects, and around which centre.

use muster_wire::{Component, Direction, MetricId, Unit};
use serde::{Deserialize, Serialize};

use super::{iqr, kmeans, lof};
use crate::{BadSample, Params, Sample, State, criterion_of, decide, is_defect, one_sided};

/// A way to find defects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// SuperBench's Algorithm 2 with the one-sided test: what criteria are made of.
    Algorithm2,
    /// Tukey's fence of 1.5 interquartile ranges on the nodes' means.
    Iqr,
    /// Two clusters of whole step series, the smaller one defective.
    KMeans,
    /// Local outlier factor with 20 neighbours on the nodes' means.
    Lof,
    /// The decision of this one metric: what a node's state is made of.
    Decision,
}

impl Method {
    /// All of them, SuperBench's first, the decision last.
    pub const ALL: [Self; 5] = [Self::Algorithm2, Self::Iqr, Self::KMeans, Self::Lof, Self::Decision];

    /// The word used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Algorithm2 => "algorithm2",
            Self::Iqr => "iqr",
            Self::KMeans => "k-means",
            Self::Lof => "lof",
            Self::Decision => "decision",
        }
    }
}

/// Why a method cannot be asked of a fleet.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotComparable {
    /// Fewer than three nodes have no majority.
    #[error("{nodes} nodes are too few to compare methods, 3 are needed")]
    TooFew {
        /// Nodes given.
        nodes: usize,
    },
    /// k-means compares step by step.
    #[error("node {node} has {len} steps and node 0 has {first}: k-means needs series of equal length")]
    Unaligned {
        /// Index of the first node that differs.
        node: usize,
        /// Its steps.
        len: usize,
        /// Steps of node 0.
        first: usize,
    },
    /// The decision says nothing of any node.
    #[error("no node can be decided by this metric alone")]
    Undecided,
    /// Not a measurement.
    #[error("node {node}: {source}")]
    Bad {
        /// Index of the node.
        node: usize,
        /// What is wrong with it.
        source: BadSample,
    },
}

/// One metric on a fleet, in the order the steps were measured.
#[derive(Clone, Debug)]
pub struct Fleet {
    steps: Vec<Vec<f64>>,
    samples: Vec<Sample>,
    direction: Direction,
    aggregated: bool,
}

impl Fleet {
    /// Takes one series per node, all of one metric and unit.
    ///
    /// # Errors
    /// With fewer than three nodes, or when a series is empty or holds a value that cannot be measured: failed
    /// runs are to be left out before methods are compared.
    pub fn new(steps: Vec<Vec<f64>>, direction: Direction) -> Result<Self, NotComparable> {
        if steps.len() < 3 {
            return Err(NotComparable::TooFew { nodes: steps.len() });
        }
        let sample = |(node, values): (usize, &Vec<f64>)| {
            Sample::in_steps(values).map_err(|source| NotComparable::Bad { node, source })
        };
        let samples = steps.iter().enumerate().map(sample).collect::<Result<_, _>>()?;
        Ok(Self { steps, samples, direction, aggregated: false })
    }

    /// Says whether every value is an average over many steps: then one value is enough for the decision.
    #[must_use]
    pub const fn aggregated(mut self, aggregated: bool) -> Self {
        self.aggregated = aggregated;
        self
    }

    /// Series in step order, one per node.
    #[must_use]
    pub fn steps(&self) -> &[Vec<f64>] {
        &self.steps
    }

    /// Distributions, one per node.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Which way is better.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        self.direction
    }

    /// Mean of every node's series, in the metric's unit.
    pub(crate) fn means(&self) -> Vec<f64> {
        self.steps.iter().map(|s| s.iter().sum::<f64>() / s.len() as f64).collect()
    }

    /// The node whose mean is the middle one of those not flagged (the better of two middle ones).
    pub(crate) fn middle_of(&self, means: &[f64], flagged: &[usize]) -> Option<usize> {
        let mut left: Vec<usize> = (0..means.len()).filter(|i| !flagged.contains(i)).collect();
        left.sort_by(|&a, &b| means[a].total_cmp(&means[b]).then(a.cmp(&b)));
        let at =
            if self.direction == Direction::HigherIsBetter { left.len() / 2 } else { left.len().checked_sub(1)? / 2 };
        left.get(at).copied()
    }
}

/// What a method makes of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// Which method.
    pub method: Method,
    /// Its idea of a healthy node: a node's own sample, or for k-means the mean of a cluster.
    pub centre: Sample,
    /// Indices of the nodes it calls defective, ascending.
    pub defects: Vec<usize>,
}

/// Splits `fleet` by `method`. Of `params` only alpha and tau matter, and only to Algorithm 2; `seed` names the
/// restarts of k-means.
///
/// # Errors
/// When the method cannot be asked of this fleet: k-means needs series of equal length, the decision enough nodes and steps.
pub fn split(fleet: &Fleet, method: Method, params: &Params, seed: u64) -> Result<Split, NotComparable> {
    let (centre, defects) = match method {
        Method::Algorithm2 => algorithm2(fleet, params),
        Method::Iqr => iqr::split(fleet),
        Method::KMeans => kmeans::split(fleet, seed)?,
        Method::Lof => lof::split(fleet),
        Method::Decision => decision(fleet)?,
    };
    Ok(Split { method, centre, defects })
}

/// Nodes that fail by this metric alone, and the middle one of the others.
fn decision(fleet: &Fleet) -> Result<(Sample, Vec<usize>), NotComparable> {
    let id = MetricId::new("compare", "decision", "own");
    let nodes = fleet.samples.len();
    let metric = decide::Metric {
        id: &id,
        direction: fleet.direction,
        component: Component::Node,
        aggregated: fleet.aggregated,
        samples: fleet.samples.iter().map(Some).collect(),
        frozen: None,
    };
    let of = decide::Fleet { nodes, metrics: vec![metric], run_nodes: nodes };
    let decision = decide::decide(&of, &decide::Settings::default());
    if decision.nodes.iter().all(|node| node.state == State::Unknown) {
        return Err(NotComparable::Undecided);
    }
    let defects: Vec<usize> = (0..nodes).filter(|node| decision.nodes[*node].state == State::Fail).collect();
    let middle = fleet.middle_of(&fleet.means(), &defects).unwrap_or(0);
    Ok((fleet.samples[middle].clone(), defects))
}

/// The alpha rule alone, without the guards of [`crate::learn`]: the methods are compared on equal terms.
fn algorithm2(fleet: &Fleet, params: &Params) -> (Sample, Vec<usize>) {
    let refs: Vec<&Sample> = fleet.samples.iter().collect();
    let metric = MetricId::new("compare", "algorithm2", "own");
    let found = criterion_of(&metric, Unit::Count, fleet.direction, &refs, params);
    let centre = found.sample.unwrap_or_else(|| fleet.samples[0].clone());
    let worse = |s: &Sample| is_defect(one_sided(s, &centre, fleet.direction, params.tau), params.alpha);
    let defects = (0..refs.len()).filter(|&i| worse(refs[i])).collect();
    (centre, defects)
}

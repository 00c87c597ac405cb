//! What is decided upon: the samples of one run, metric by metric and node by node.

use muster_wire::{Component, Direction, MetricId};

use super::Frozen;
use crate::Sample;

/// One metric as measured on every node of a fleet.
#[derive(Clone, Debug)]
pub struct Metric<'a> {
    /// Which metric.
    pub id: &'a MetricId,
    /// Which way it is better.
    pub direction: Direction,
    /// The part of the node it speaks for; compared with the same part of the other nodes.
    pub component: Component,
    /// Whether its source declares every value to be an average over many steps.
    pub aggregated: bool,
    /// One per node, `None` where nothing valid was measured.
    pub samples: Vec<Option<&'a Sample>>,
    /// What earlier runs say this metric should be.
    pub frozen: Option<&'a Frozen>,
}

/// The nodes that are compared with each other, and everything measured on them.
#[derive(Clone, Debug)]
pub struct Fleet<'a> {
    /// How many nodes; every metric has as many samples.
    pub nodes: usize,
    /// What was measured.
    pub metrics: Vec<Metric<'a>>,
    /// Nodes of the whole run, of which this fleet may be one group: the chances of [`super::Settings`] hold per run.
    pub run_nodes: usize,
}

//! What is said of every metric, component and node, and why.

use muster_wire::{Component, ComponentKind};

use super::Settings;
use crate::State;

/// What is said of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What one metric says of one node: `cells[metric][node]`.
    pub cells: Vec<Vec<Cell>>,
    /// One per node.
    pub nodes: Vec<NodeDecision>,
    /// The metrics of every component, aligned with [`NodeDecision::components`].
    pub metrics_of: Vec<Vec<usize>>,
    /// Metrics in which the run as a whole is slower than the earlier runs it was compared with.
    pub slower_runs: Vec<SlowerRun>,
}

/// What one metric says of one node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Pass, unknown, warn or fail; not run where nothing valid was measured.
    pub state: State,
    /// Why.
    pub why: Why,
    /// Which view of its steps decided.
    pub view: View,
    /// How many nodes it was compared with: those kept in the reference, itself left out.
    pub peers: u32,
    /// How many other nodes are about as slow as this one would have to be to fail, or slower.
    pub alike: u32,
    /// Share of speed lost against the peers; negative where it is faster.
    pub loss: f64,
    /// The peers' centre, in the metric's own unit.
    pub centre: f64,
    /// Relative standard deviation with which the peers predict a healthy node's value.
    pub scale: f64,
    /// Smallest loss that would have failed; of a metric with few steps, that would have counted as a witness.
    pub limit: f64,
    /// Smallest loss that would have been worth a warning.
    pub warn_limit: f64,
    /// Loss that would not have passed with probability 0.95; infinite where none would have been seen.
    pub resolution: f64,
    /// Whether `centre` is that of a frozen criterion and not of the peers.
    pub frozen: bool,
}

/// What of a node's steps was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The median step.
    MedianStep,
    /// The mean step, without as many of the slowest as a healthy node may lose to stalls.
    MeanStep,
    /// The mean speed of the slowest hundredth of its steps.
    SlowestSteps,
}

impl Cell {
    /// A cell in which nothing was measured.
    pub(super) const EMPTY: Self = Self {
        state: State::NotRun,
        why: Why::NotMeasured,
        view: View::MedianStep,
        peers: 0,
        alike: 0,
        loss: f64::NAN,
        centre: f64::NAN,
        scale: f64::NAN,
        limit: f64::INFINITY,
        warn_limit: f64::INFINITY,
        resolution: f64::INFINITY,
        frozen: false,
    };

    /// What the metric says by itself: where a loss beyond [`Settings::coarsest`] could go unseen, a pass is none, though other
    /// metrics may vouch for the component.
    #[must_use]
    pub fn alone(&self, settings: &Settings) -> State {
        if self.state == State::Pass && self.resolution > settings.coarsest { State::Unknown } else { self.state }
    }
}

/// Why a cell has its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// As fast as its peers.
    AsPeers,
    /// Nothing valid was measured here.
    NotMeasured,
    /// Fewer than four nodes have this metric, and there is no frozen criterion.
    TooFewNodes,
    /// The peers' values cannot be compared: their centre is zero or not finite.
    NoReference,
    /// Slower than its peers, beyond the limit.
    Beyond,
    /// Slower than its peers, beyond the limit of a warning only.
    BeyondWarning,
    /// Slower than the frozen criterion, beyond the limit, while other nodes of the run still reach it.
    BeyondFrozen,
    /// Slower than the frozen criterion, as nearly all of the run: a change of software or site, not of this node.
    WholeRunSlow,
    /// Too many others are about as slow: a third of the fleet or more, itself counted.
    Contested,
    /// The other nodes form two clusters, and it cannot be said which of them is healthy.
    TwoClusters,
    /// The others thin out towards it: it may be the slow end of a wide distribution.
    TailOfFleet,
    /// Slower than a part of its peers, while the others are too few and too different to say.
    PeersDisagree,
    /// Slower, with too few steps to exclude a stall: measure again.
    FewSteps {
        /// Metrics of this node that are that slow.
        witnesses: u32,
        /// How many it takes to exclude chance.
        needed: u32,
    },
    /// Beyond the limit in an earlier visit, and not by all visits together.
    NotEveryVisit,
    /// Slow in most visits, but other nodes were as slow in some, so healthy nodes here may be, too.
    OthersInSomeVisits,
    /// Some of its steps are far slower than any of its peers', though its typical step is not.
    SlowSteps,
    /// Beyond the limit by one or two stretches of its steps, and not by its other steps alone.
    SlowForAWhile {
        /// First slow step, counted from 1.
        from: u32,
        /// Last one.
        to: u32,
        /// How many steps are slow: all from first to last where they follow each other.
        slow: u32,
        /// How many steps there are.
        steps: u32,
    },
}

/// A metric in which a whole run is slower than earlier runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowerRun {
    /// Index of the metric.
    pub metric: usize,
    /// Share of speed lost by the run's median node against the frozen centre.
    pub loss: f64,
    /// Smallest loss that is a finding.
    pub limit: f64,
    /// The frozen centre, in the metric's own unit.
    pub centre: f64,
    /// Relative standard deviation with which the earlier runs predict a healthy run.
    pub scale: f64,
}

/// What is said of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeDecision {
    /// Worst of its components.
    pub state: State,
    /// Whether any of its components is undecided, also beside a warning or a fail.
    pub undecided: bool,
    /// Every component instance that any node has metrics for, in order.
    pub components: Vec<ComponentDecision>,
    /// Every kind that has several instances (eight GPUs, 64 cores), taken together.
    pub kinds: Vec<KindDecision>,
}

/// What is said of one component of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentDecision {
    /// Which one.
    pub component: Component,
    /// Worst of its metrics and their averages; not run where nothing valid was measured.
    pub state: State,
    /// Whether a metric is undecided, or no loss of a factor of two would have been detected.
    pub undecided: bool,
    /// Smallest loss that would not have passed with probability 0.95, over metrics and averages; `None` if none.
    pub resolution: Option<f64>,
    /// Of an undecided component, the metric to blame: the noisiest undecided one, or the best of those too noisy.
    pub limiting: Option<Limiting>,
    /// What several metrics say together, when that is a finding.
    pub average: Option<Average>,
}

/// What is said of all instances of a kind together.
#[derive(Clone, Debug, PartialEq)]
pub struct KindDecision {
    /// Which kind.
    pub kind: ComponentKind,
    /// Worst of its instances and of what their metrics say together.
    pub state: State,
    /// Whether any of it is undecided.
    pub undecided: bool,
    /// Loss of all instances together that would not have passed with probability 0.95.
    pub resolution: Option<f64>,
    /// What the metrics of all instances say together, when that is a finding.
    pub average: Option<Average>,
}

/// The metric that keeps a component from being decided more finely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limiting {
    /// Index of the metric.
    pub metric: usize,
    /// Its relative spread over the peers.
    pub scale: f64,
    /// Loss in this metric that would not have passed with probability 0.95; infinite where none would have been seen.
    pub resolution: f64,
    /// Nodes that have it.
    pub nodes: usize,
}

/// Several metrics of a component, averaged: a small loss in all of them is seen where each alone is too noisy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Average {
    /// Warn or fail.
    pub state: State,
    /// Mean loss, quieter metrics counting more.
    pub loss: f64,
    /// Relative standard deviation with which the peers predict it.
    pub scale: f64,
    /// Smallest loss that would have failed.
    pub limit: f64,
    /// How many metrics: the quietest ones of their band.
    pub metrics: usize,
    /// Relative spreads of the metrics averaged: from, below.
    pub band: (f64, f64),
    /// How many other nodes lose as much.
    pub alike: usize,
}

impl Why {
    /// Whether it is said of the fleet rather than of the node: a frozen criterion decides what the fleet cannot.
    pub(super) const fn of_the_fleet(self) -> bool {
        matches!(
            self,
            Self::Contested | Self::TwoClusters | Self::PeersDisagree | Self::TooFewNodes | Self::NoReference
        )
    }
}

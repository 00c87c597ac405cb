//! What the console knows at one moment: plain data, made by the engine, never changed, shared as `Arc<Snapshot>`.
//!
//! Texts that came from a node are already cleaned. Times are milliseconds since 1970 UTC. Rows are behind their own
//! `Arc`, so that a new snapshot copies only what changed.

use std::sync::Arc;

use muster_wire::{Direction, Level, MetricId, Profile, Unit};

use crate::judgement::{BY_SEVERITY, State, Status, severity};

/// Everything a frame is drawn from.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Grows whenever anything below but `now_ms` differs from the snapshot before.
    pub generation: u64,
    /// Wall clock when it was made.
    pub now_ms: u64,
    /// Name of the inventory, the recording or the demo.
    pub title: String,
    /// Where frames come from.
    pub mode: Mode,
    /// Whether the data below can be shown.
    pub load: Load,
    /// When the last frame of any node came.
    pub last_frame_ms: Option<u64>,
    /// Age past which a live value is stale.
    pub stale_after_ms: u64,
    /// The running or the latest run.
    pub run: Option<Arc<RunInfo>>,
    /// The fleet in inventory order.
    pub nodes: Arc<[Arc<NodeRow>]>,
    /// How many nodes are in each state.
    pub counts: Counts,
    /// Metrics in catalogue order.
    pub metrics: Arc<[Arc<MetricRow>]>,
    /// Playbooks that can be run.
    pub playbooks: Arc<[PlaybookRow]>,
    /// What is too large to keep for every node, for the one that [`crate::Intent::Focus`] named.
    pub focus: Option<Arc<Focus>>,
    /// Oldest first; the last is shown under the body while it is fresh.
    pub messages: Arc<[Message]>,
}

impl Default for Snapshot {
    fn default() -> Self {
        Self {
            generation: 0,
            now_ms: 0,
            title: String::new(),
            mode: Mode::Idle,
            load: Load::Ready,
            last_frame_ms: None,
            stale_after_ms: 3_000,
            run: None,
            nodes: Arc::from([]),
            counts: Counts::default(),
            metrics: Arc::from([]),
            playbooks: Arc::from([]),
            focus: None,
            messages: Arc::from([]),
        }
    }
}

/// Where frames come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// From nodes, since then.
    Live {
        /// Start of the run.
        since_ms: u64,
    },
    /// From a recording, at that moment of it.
    Replay {
        /// Moment of the recording.
        at_ms: u64,
    },
    /// From the database; nothing is running.
    Idle,
}

/// Whether data can be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// Nothing yet.
    Loading {
        /// What is waited for, such as `opening the database`.
        what: String,
        /// Since when.
        since_ms: u64,
    },
    /// The last refresh failed; rows, if any, are of the time before.
    Failed {
        /// What failed, such as `reading /etc/muster/inventory.toml`.
        what: String,
        /// Why, one sentence.
        why: String,
        /// Since when.
        since_ms: u64,
        /// What is tried next or what the user can do.
        next: String,
    },
    /// Rows are what there is.
    Ready,
}

/// Number of nodes per state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([usize; 6]);

impl Counts {
    /// Counts `states`.
    #[must_use]
    pub fn of(states: impl IntoIterator<Item = State>) -> Self {
        let mut counts = Self::default();
        for state in states {
            counts.0[severity(state)] += 1;
        }
        counts
    }

    /// Nodes in `state`.
    #[must_use]
    pub const fn get(&self, state: State) -> usize {
        self.0[severity(state)]
    }

    /// States that occur, worst first, with their count.
    pub fn present(&self) -> impl Iterator<Item = (State, usize)> + '_ {
        BY_SEVERITY.into_iter().zip(self.0).filter(|(_, n)| *n > 0)
    }
}

/// One node of the fleet.
#[derive(Clone, Debug)]
pub struct NodeRow {
    /// Name in the inventory.
    pub name: String,
    /// Rack, empty when the inventory does not say.
    pub rack: String,
    /// Groups of the inventory.
    pub groups: Vec<String>,
    /// The connection.
    pub link: Link,
    /// Worst of the verdicts.
    pub state: State,
    /// The verdict furthest from its peers.
    pub worst: Option<Worst>,
    /// What it does now.
    pub work: Option<Work>,
    /// Share of its plan that is done, 0 to 1.
    pub done: f64,
    /// When it was last heard.
    pub seen_ms: Option<u64>,
    /// Why it is in its state: whole sentences, worst first.
    pub reasons: Arc<[String]>,
    /// What the collectors saw.
    pub facts: Arc<[FactRow]>,
    /// One per metric that applies.
    pub verdicts: Arc<[VerdictRow]>,
}

/// The connection to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Which kind of state.
    pub kind: LinkKind,
    /// In words, such as `authenticating` or `retry in 4 s: connection refused`.
    pub text: String,
}

/// Kinds of link state, as far as drawing tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkKind {
    /// Gave up.
    Failed,
    /// Will try again.
    Waiting,
    /// On the way: resolving, connecting, authenticating, uploading, starting.
    Connecting,
    /// Frames flow.
    Live,
    /// Not asked for.
    Idle,
    /// Done and closed.
    Closed,
}

/// The verdict that is furthest from its peers.
#[derive(Clone, Debug, PartialEq)]
pub struct Worst {
    /// Index into [`Snapshot::metrics`].
    pub metric: usize,
    /// One-sided similarity to the criterion, 0 to 1.
    pub similarity: Option<f64>,
    /// Median of the node over the criterion's median, minus one; negative is less.
    pub deviation: Option<f64>,
    /// `n7 is 41 % slower than 15 peers (cpu-gemm fp64, similarity 0.58 < 0.95, 64 values)`.
    pub sentence: String,
}

/// What a node does now.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Benchmark or collector.
    pub name: String,
    /// Share of it that is done, 0 to 1.
    pub done: f64,
    /// The probe's own words.
    pub note: String,
}

/// One fact of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactRow {
    /// Collector.
    pub collector: String,
    /// Dotted key.
    pub key: String,
    /// The value with its unit; `–` when absent, `denied` or the reason otherwise.
    pub value: String,
    /// Whether there is a value.
    pub known: bool,
}

/// One judged metric of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct VerdictRow {
    /// Index into [`Snapshot::metrics`].
    pub metric: usize,
    /// Judgement.
    pub state: State,
    /// One-sided similarity to the criterion, 0 to 1.
    pub similarity: Option<f64>,
    /// Median of the node, in the metric's unit.
    pub value: Option<f64>,
    /// Median over the criterion's median, minus one.
    pub deviation: Option<f64>,
    /// Why, one sentence.
    pub reason: String,
}

/// Points `(x, share)` of an empirical CDF, x ascending in the metric's unit, share ascending to 1. A step function:
/// the share is reached at x. Thinned to what a screen can show (a few hundred points).
pub type Curve = Arc<[(f64, f64)]>;

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
    /// Index into [`Snapshot::nodes`].
    pub node: usize,
    /// One-sided similarity to the criterion; `None` without a sample.
    pub similarity: Option<f64>,
    /// Judgement.
    pub state: State,
}

/// A playbook that can be run.
#[derive(Clone, Debug)]
pub struct PlaybookRow {
    /// Name on the command line.
    pub name: String,
    /// One line.
    pub title: String,
    /// A few sentences.
    pub about: String,
    /// How much work by default.
    pub profile: Profile,
    /// In order.
    pub steps: Arc<[StepRow]>,
}

/// A step of a playbook.
#[derive(Clone, Debug)]
pub struct StepRow {
    /// Identity in the file.
    pub id: String,
    /// One sentence.
    pub about: String,
    /// Collectors and benchmarks, in order.
    pub work: Vec<String>,
}

/// A run and how far it is.
#[derive(Clone, Debug)]
pub struct RunInfo {
    /// Identity in the database.
    pub id: String,
    /// Playbook.
    pub playbook: String,
    /// How much work.
    pub profile: Profile,
    /// Start.
    pub started_ms: u64,
    /// End, `None` while it goes on.
    pub ended_ms: Option<u64>,
    /// What it does.
    pub phase: RunPhase,
    /// Time to go, as far as known.
    pub eta_ms: Option<u64>,
    /// Work items done over all nodes.
    pub done: usize,
    /// Work items over all nodes.
    pub total: usize,
    /// In the playbook's order.
    pub steps: Arc<[StepProgress]>,
}

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPhase {
    /// Goes on.
    Running,
    /// Was told to stop and waits for its nodes.
    Cancelling,
    /// Ran to its end.
    Finished,
    /// Stopped on request.
    Cancelled,
    /// Ended without saying so; can be resumed.
    Interrupted,
}

impl RunPhase {
    /// Whether nodes are still at work.
    #[must_use]
    pub const fn is_going(self) -> bool {
        matches!(self, Self::Running | Self::Cancelling)
    }

    /// The word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Cancelling => "cancelling",
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
}

/// How far one step is.
#[derive(Clone, Debug)]
pub struct StepProgress {
    /// Identity in the file.
    pub id: String,
    /// Work items done.
    pub done: usize,
    /// Work items that failed.
    pub failed: usize,
    /// Work items in all.
    pub total: usize,
    /// Nodes in the same place of the step, folded.
    pub groups: Arc<[StepGroup]>,
}

/// Nodes that are in the same place of a step.
#[derive(Clone, Debug)]
pub struct StepGroup {
    /// `done`, `cpu-gemm`, `waiting`, `failed: no route to host`.
    pub what: String,
    /// How many.
    pub count: usize,
    /// Folded names, such as `node[001-004,007]`.
    pub nodes: String,
    /// Share of the step that they have done, 0 to 1.
    pub done: f64,
}

/// What is kept for one node only.
#[derive(Clone, Debug, Default)]
pub struct Focus {
    /// Name.
    pub node: String,
    /// Its series.
    pub series: Arc<[FocusSeries]>,
    /// Its latest log lines, oldest first.
    pub log: Arc<[NodeLog]>,
}

/// One series of the focused node.
#[derive(Clone, Debug)]
pub struct FocusSeries {
    /// Index into [`Snapshot::metrics`].
    pub metric: usize,
    /// In the order of measurement, thinned to a few hundred.
    pub values: Arc<[f64]>,
    /// Its CDF.
    pub curve: Curve,
}

/// A log line of a node.
#[derive(Clone, Debug)]
pub struct NodeLog {
    /// When the console got it.
    pub at_ms: u64,
    /// Importance.
    pub level: Level,
    /// One line.
    pub text: String,
}

/// Something to tell the user.
#[derive(Clone, Debug)]
pub struct Message {
    /// When.
    pub at_ms: u64,
    /// Importance.
    pub level: Level,
    /// One sentence, subject first.
    pub text: String,
}

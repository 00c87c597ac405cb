//! What is known about every node, and about the focused one only.

use std::sync::Arc;

use muster_analysis::history::Shift;
use muster_analysis::service::Service;
use muster_wire::{Level, MetricId};

use crate::judgement::State;
use crate::snapshot::{Curve, GpuRow, ServicePast, ServiceRow};

/// One node of the fleet.
#[derive(Clone, Debug)]
pub struct NodeRow {
    /// Name in the inventory.
    pub name: String,
    /// Rack, empty when the inventory does not say.
    pub rack: String,
    /// Switch that it hangs at, empty when the inventory does not say.
    pub leaf: String,
    /// Groups of the inventory.
    pub groups: Vec<String>,
    /// The connection.
    pub link: Link,
    /// Worst of the verdicts.
    pub state: State,
    /// Whether results to come may still change the state.
    pub provisional: bool,
    /// The verdict furthest from its peers.
    pub worst: Option<Worst>,
    /// What it is working on.
    pub work: Option<Work>,
    /// Share of its plan that is done, 0 to 1.
    pub done: f64,
    /// When it was last heard from.
    pub seen_ms: Option<u64>,
    /// When its newest result came.
    pub result_ms: Option<u64>,
    /// Why it is in its state: whole sentences, worst first.
    pub reasons: Arc<[String]>,
    /// What the collectors saw.
    pub facts: Arc<[FactRow]>,
    /// One per metric that applies, where the node is the one that [`crate::Intent::Focus`] named; empty otherwise.
    pub verdicts: Arc<[VerdictRow]>,
    /// One per check that was asked for, worst first.
    pub checks: Arc<[CheckRow]>,
    /// Its GPUs, by number.
    pub gpus: Arc<[GpuRow]>,
    /// In whose hands it is; `None` where it is in service and nothing else is known of it.
    pub service: Option<Arc<ServiceRow>>,
}

impl NodeRow {
    /// In whose hands it is.
    #[must_use]
    pub fn hands(&self) -> Service {
        self.service.as_ref().map_or(Service::InService, |row| row.state)
    }
}

/// What one check says about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRow {
    /// Check.
    pub id: &'static str,
    /// Part of the node it looks at.
    pub area: &'static str,
    /// Answer.
    pub state: State,
    /// The evidence in one sentence.
    pub said: String,
    /// What to do when it does not pass.
    pub next: &'static str,
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
    /// Which metric.
    pub metric: MetricId,
    /// One-sided similarity to the criterion, 0 to 1.
    pub similarity: Option<f64>,
    /// Median of the node over the criterion's median, minus one; negative is less.
    pub deviation: Option<f64>,
    /// `n7 is 41 % slower than 15 peers (cpu-gemm fp64, similarity 0.58 < 0.95, 64 values)`.
    pub sentence: String,
}

/// What a node is working on.
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
    /// Which metric.
    pub metric: MetricId,
    /// Judgement.
    pub state: State,
    /// One-sided similarity to the criterion, 0 to 1.
    pub similarity: Option<f64>,
    /// Median of the node, in the metric's unit.
    pub value: Option<f64>,
    /// Median over the criterion's median, minus one.
    pub deviation: Option<f64>,
    /// Why, one sentence; empty where the node passes.
    pub reason: String,
    /// When it was measured.
    pub at_ms: u64,
    /// In which run.
    pub run: Arc<str>,
    /// What the newest earlier run that has it showed; `None` where there was none, or [`crate::Snapshot::looking_back`].
    pub before: Option<Before>,
}

/// An earlier result of a node and metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Before {
    /// Judgement then.
    pub state: State,
    /// Median of the node then, in the metric's unit.
    pub value: Option<f64>,
    /// How the current result differs from it.
    pub shift: Shift,
    /// Which run it was; rows share it, since a fleet has millions of them.
    pub from: Arc<EarlierRun>,
}

/// A run before the one that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierRun {
    /// Identity in the database.
    pub id: String,
    /// When it ended, or its last result came.
    pub at_ms: u64,
}

impl VerdictRow {
    /// What it says of `node`, in one sentence.
    #[must_use]
    pub fn sentence(&self, node: &str) -> String {
        match self.similarity {
            Some(similarity) if self.reason.is_empty() => {
                format!("{node}: {} similarity {similarity:.2}", self.metric.path())
            }
            _ => self.reason.clone(),
        }
    }
}

/// Data that is kept for one node only.
#[derive(Clone, Debug, Default)]
pub struct Focus {
    /// Name.
    pub node: String,
    /// Its series.
    pub series: Arc<[FocusSeries]>,
    /// Its latest log lines, oldest first.
    pub log: Arc<[NodeLog]>,
    /// Its history in the database; `None` while it is being read.
    pub past: Option<Arc<Past>>,
    /// What became of it before; `None` while that is being read.
    pub service: Option<Arc<ServicePast>>,
}

/// The history of a node before the run on the screen.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// When each benchmark and collector last ran on it, by name.
    pub works: Arc<[WorkSeen]>,
    /// Medians of its metrics by run, oldest run first.
    pub metrics: Arc<[MetricPast]>,
    /// Its incidents, newest first.
    pub incidents: Arc<[IncidentRow]>,
}

/// When a benchmark or collector last ran on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkSeen {
    /// Its name.
    pub work: String,
    /// When it ended.
    pub at_ms: u64,
    /// [`State::Pass`] if it gave a result, whatever the verdict.
    pub ended: State,
}

/// One metric of a node over stored runs.
#[derive(Clone, Debug)]
pub struct MetricPast {
    /// Identity.
    pub metric: MetricId,
    /// When, and the median of that run in the metric's unit; oldest first.
    pub medians: Arc<[(u64, f64)]>,
}

/// A time during which a node could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncidentRow {
    /// Begin.
    pub start_ms: u64,
    /// End; `None` while it is open.
    pub end_ms: Option<u64>,
    /// What broke.
    pub category: String,
    /// In words.
    pub reason: String,
    /// Where it was reported.
    pub source: String,
}

/// One series of the focused node.
#[derive(Clone, Debug)]
pub struct FocusSeries {
    /// Which metric.
    pub metric: MetricId,
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

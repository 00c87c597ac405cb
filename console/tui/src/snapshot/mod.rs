//! What the console knows at one moment: plain data, made by the engine, never changed, shared as `Arc<Snapshot>`.
//!
//! Texts that came from a node are already cleaned. Times are milliseconds since 1970 UTC. Rows are behind their own
//! `Arc`, so that a new snapshot copies only what changed.

mod criteria;
mod fleet;
mod gpu;
mod metric;
mod network;
mod node;
mod part;
mod replay;
mod run;
mod runs;
mod selector;
mod service;
mod triage;
mod watch;
mod what_if;

pub use criteria::{Criteria, VersionRow};
pub use fleet::{Counts, Message, Mode, Snapshot};
pub use gpu::{GpuRow, Sm};
pub use metric::{Band, Curve, MetricRow, Metrics, NodeCurve, Score};
pub use network::{Endpoint, Grid, Network, Pair, Progress, Tier, Visits};
pub use node::{
    Before, CheckRow, EarlierRun, FactRow, Focus, FocusSeries, IncidentRow, Link, LinkKind, MetricPast, NodeLog,
    NodeRow, Past, VerdictRow, Work, WorkSeen, Worst,
};
pub use part::{Load, Part, Reading};
pub use replay::Replay;
pub use run::{Left, PlaybookRow, RunInfo, RunPhase, RunProgress, StepGroup, StepProgress, StepRow};
pub use runs::{RunRow, Runs};
pub use selector::{Ask, CoverageTable, Model, RiskRow, Selector, SurvivalStep};
pub use service::{FailureRow, HandedRow, ServicePast, ServiceRow};
pub use triage::{Testing, Triaged};
pub use watch::{Origin, Watched, WatchedMetric, Watching};
pub use what_if::{Flip, Terms, WhatIf};

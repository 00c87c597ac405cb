//! What the Selector says before a job: which nodes are risky, and which benchmarks are worth their minutes.

use std::sync::Arc;

use muster_analysis::risk::Category;
use muster_analysis::selector::Selection;

/// The answer to one question.
#[derive(Clone, Debug)]
pub struct Selector {
    /// The question.
    pub ask: Ask,
    /// The model that gave the risks.
    pub model: Model,
    /// Nodes, the riskiest first.
    pub nodes: Arc<[RiskRow]>,
    /// Probability that any of them has an incident during the job, 0 to 1.
    pub joint: f64,
    /// Joint risk that may remain, 0 to 1: the asked one, or the rule of expectations'.
    pub p0: f64,
    /// How long nodes of this fleet went without an incident: Kaplan-Meier over its log.
    pub fleet: Arc<[SurvivalStep]>,
    /// What to run, in order, and why.
    pub selection: Arc<Selection>,
    /// Which benchmark finds which defects.
    pub coverage: Arc<CoverageTable>,
}

/// A question to the Selector; the screen changes it with [`crate::Intent::Ask`].
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Length of the job.
    pub job_hours: f64,
    /// Minutes that may be spent; `None` spends as few as reach `p0`.
    pub budget_minutes: Option<f64>,
    /// Joint risk that may remain, 0 to 1; `None` takes the rule of expectations.
    pub p0: Option<f64>,
}

/// Which model is used, and why that one.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Its name, such as `cox_time`.
    pub name: String,
    /// Why it was chosen, one sentence.
    pub reason: String,
    /// Incidents it was fitted on.
    pub incidents: usize,
    /// Length of the log it was fitted on.
    pub log_hours: f64,
}

/// The risk of one node.
#[derive(Clone, Debug)]
pub struct RiskRow {
    /// Name.
    pub name: String,
    /// Probability of an incident during the job, 0 to 1.
    pub risk: f64,
    /// Whether it is among the nodes that the picks should run on.
    pub validate: bool,
    /// Whether an incident is open.
    pub down: bool,
    /// Incidents in the log.
    pub incidents: usize,
    /// Hours since the last one ended.
    pub quiet_hours: Option<f64>,
    /// `(hours, probability of no incident until then)` from now on, a few dozen points beyond the job's length.
    pub curve: Arc<[(f64, f64)]>,
    /// What sets it apart: feature, and by how much it raises the risk; strongest first.
    pub reasons: Arc<[(String, f64)]>,
}

/// A step of a survival curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurvivalStep {
    /// Hours since the last incident.
    pub hours: f64,
    /// Share without an incident from here on.
    pub survival: f64,
    /// Observations still under watch just before.
    pub at_risk: usize,
}

/// Defects found, by benchmark and by what broke.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CoverageTable {
    /// Rows.
    pub benchmarks: Arc<[String]>,
    /// Columns.
    pub categories: Arc<[Category]>,
    /// Defects known, by column.
    pub defects: Arc<[usize]>,
    /// Share of the column's defects that the row's benchmark finds, 0 to 1, row-major; `None` without a defect.
    pub found: Arc<[Option<f64>]>,
}

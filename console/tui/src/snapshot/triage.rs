//! What is known of a job that failed, hangs or is slow.

use std::sync::Arc;

use muster_triage::overview::Overview;
use muster_triage::report::Subject;

/// A case that was read and judged.
#[derive(Clone, Debug)]
pub struct Triaged {
    /// What it is called: the bundle's name, or the job's.
    pub name: String,
    /// Verdict, events and matrix.
    pub overview: Arc<Overview>,
    /// What a person has confirmed as a root cause.
    pub confirmed: Vec<Subject>,
    /// What is worth knowing beside the verdict, such as marks that could not be read.
    pub notes: Vec<String>,
    /// Which of its nodes can be tested from here without the job, or why none can.
    pub testable: Result<Vec<String>, String>,
}

/// An offline diagnosis that goes on: nodes of a case are tested without the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Testing {
    /// Which, in short.
    pub nodes: String,
    /// What is being done.
    pub step: String,
    /// When it began.
    pub began_ms: u64,
    /// Somebody has cancelled it.
    pub cancelling: bool,
}

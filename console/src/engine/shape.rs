//! The document that a run becomes.

use muster_analysis::Criterion;
use muster_playbook::report::{RunInfo, RunReport};
use muster_store::Run;

use super::Assessment;

/// The `muster.run` document of an assessed run.
#[must_use]
pub fn report(run: &Run, assessment: &Assessment) -> RunReport {
    let info = RunInfo::new(&run.id, &run.playbook, run.profile, run.started_ms, run.ended_ms);
    let criteria: Vec<Criterion> = assessment.learned.iter().map(|learned| learned.criterion.clone()).collect();
    RunReport { network: assessment.network.clone(), ..RunReport::new(info, &assessment.nodes, &criteria) }
}

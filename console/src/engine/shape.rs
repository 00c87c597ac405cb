//! The document that a run becomes.

use muster_playbook::report::{Basis, RunInfo, RunReport};
use muster_store::Run;

use super::Assessment;

/// The `muster.run` document of an assessed run.
#[must_use]
pub fn report(run: &Run, assessment: &Assessment) -> RunReport {
    let info = RunInfo::new(&run.id, &run.playbook, run.profile, run.started_ms, run.ended_ms);
    let basis = assessment.learned.iter().zip(&assessment.basis);
    let basis: Vec<Basis<'_>> =
        basis.map(|(learned, basis)| Basis { learned, group: &basis.group, frozen: basis.frozen }).collect();
    let mut report = RunReport::new(info, &assessment.nodes, &basis);
    report.rejudged.clone_from(&assessment.rejudged);
    report.network.clone_from(&assessment.network);
    report
}

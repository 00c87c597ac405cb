//! The document that a run becomes.

use std::sync::Arc;

use muster_playbook::report::{Basis, NodeFindings, RunInfo, RunReport};
use muster_run::Run;

use super::told::known_of;
use super::{Assessment, Judged, Told};

/// The `muster.run` document of an assessed run.
#[must_use]
pub fn report(run: &Run, assessment: &Assessment) -> RunReport {
    let basis: Vec<Basis<'_>> = basis(assessment).collect();
    let mut report = RunReport::new(info(run), &assessment.nodes, &basis);
    report.dropped.clone_from(&assessment.dropped);
    report.rejudged.clone_from(&assessment.rejudged);
    report.network.clone_from(&assessment.network);
    report
}

/// The same of what `runs`, the newest first, say together of the nodes called `names`; under the name of the newest. `None`
/// without a run.
#[must_use]
pub fn report_of_all(runs: &[Arc<Told>], names: &[String]) -> Option<RunReport> {
    let newest = runs.first()?;
    if runs.len() == 1 {
        return Some(report(&newest.run, &newest.assessment));
    }
    let nodes: Vec<NodeFindings> =
        names.iter().filter_map(|name| Some(known_of(runs, name)?.1.found.into_owned())).collect();
    // What a newer run judged a node by stands for what an older one did.
    let basis: Vec<Basis<'_>> = runs.iter().rev().flat_map(|told| basis(&told.assessment)).collect();
    let mut report = RunReport::new(info(&newest.run), &nodes, &basis);
    report.network = runs.iter().find_map(|told| told.assessment.network.clone());
    Some(report)
}

fn info(run: &Run) -> RunInfo {
    RunInfo::new(&run.id, &run.playbook, run.profile, run.started_ms, run.ended_ms)
}

fn basis(assessment: &Assessment) -> impl Iterator<Item = Basis<'_>> {
    assessment.judged.iter().map(|Judged { criterion, basis, .. }| Basis {
        criterion,
        group: &basis.group,
        frozen: basis.frozen,
        nodes: Some(&basis.nodes),
    })
}

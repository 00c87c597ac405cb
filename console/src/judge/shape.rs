//! The document that a run becomes.

use std::sync::Arc;

use anyhow::Result;
use muster_playbook::report::{Basis, Gathered, NodeFindings, NodeReport, NodeReports, RunInfo, RunReport};
use muster_run::Run;

use super::told::known_of;
use super::{Assessment, ByNode, Judged, Told};

/// The `muster.run` document of an assessed run.
#[must_use]
pub fn report(run: &Run, assessment: &Assessment) -> RunReport {
    let basis: Vec<Basis<'_>> = basis(assessment).collect();
    with_rest(RunReport::new(info(run), &assessment.nodes, &basis), assessment)
}

/// The same where nodes come one by one.
///
/// # Errors
/// When what was kept of a node cannot be read.
pub fn report_of_nodes(run: &Run, said: &ByNode) -> Result<RunReport> {
    let basis: Vec<Basis<'_>> = basis(&said.rest).collect();
    let mut gathered = Gathered::of(&basis);
    said.each(&mut |node| {
        gathered.add(node);
        Ok(())
    })?;
    Ok(with_rest(gathered.report(info(run)), &said.rest))
}

/// Gives what is said of every node, and the report it becomes, to `each`, one after another, until it fails.
///
/// # Errors
/// Those of `each`, and when what was kept of a node cannot be read.
pub fn each_report(said: &ByNode, each: &mut dyn FnMut(&NodeFindings, NodeReport) -> Result<()>) -> Result<()> {
    let basis: Vec<Basis<'_>> = basis(&said.rest).collect();
    let reports = NodeReports::of(&basis);
    said.each(&mut |node| each(node, reports.report(node)))
}

fn with_rest(mut report: RunReport, said: &Assessment) -> RunReport {
    report.dropped.clone_from(&said.dropped);
    report.rejudged.clone_from(&said.rejudged);
    report.network.clone_from(&said.network);
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

/// Which run it is.
#[must_use]
pub fn info(run: &Run) -> RunInfo {
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

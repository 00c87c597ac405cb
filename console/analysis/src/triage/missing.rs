//! What was not looked at, and why that matters.

use std::collections::BTreeSet;

use super::case::Whose;
use super::clock::UNKNOWN_S;
use super::counters::Movement;
use super::facts::Facts;

/// Sentences for whoever reads the verdict.
#[must_use]
pub(super) fn missing(facts: &Facts<'_>) -> Vec<String> {
    let case = facts.case;
    let mut said = kernel_logs(facts);
    said.extend(logs_of_the_job(facts));
    match case.polls.len() {
        0 if case.processes.values().any(|told| !told.ras.is_empty()) => {
            said.push("NCCL RAS: no answer that can be used, so who is behind is told by recorder and watchdogs only.".to_owned());
        }
        0 => said.push("NCCL RAS (ras/pollK.json): none, so who is behind is told by recorder and watchdogs only. NCCL 2.24 or later answers on port 28028.".to_owned()),
        1 => said.push("A second RAS poll at least 10 s after the first: one poll does not prove a standstill.".to_owned()),
        _ if facts.movement == Movement::Unknown => said.push("RAS polls tell no counts, or lie less than 10 s apart: they do not show whether the job got on.".to_owned()),
        _ => {}
    }
    let dumps = case.dumps.len();
    if dumps == 0 {
        said.push("Flight-recorder dumps (fr/): none, so mismatched collectives and late GPUs may be unseen. Set TORCH_FR_BUFFER_SIZE and TORCH_FR_DUMP_ON_TIMEOUT.".to_owned());
    }
    if case.timed.is_empty() {
        said.push("NCCL Inspector (inspector/*.jsonl): none, so slow GPUs and slow links cannot be told. Set NCCL_PROFILER_PLUGIN and NCCL_INSPECTOR_ENABLE.".to_owned());
    }
    let unknown = facts.layout.nodes().into_iter().filter(|node| facts.clocks.error_s(Some(node)) >= UNKNOWN_S).count();
    if unknown > 0 && facts.layout.nodes().len() > 1 {
        said.push(format!("Clocks of {unknown} nodes: no common events, so the order of their lines is not used."));
    }
    if facts.layout.members.is_empty() {
        said.push("Who runs where (job.json): missing, and the logs do not tell either.".to_owned());
    }
    said.extend(super::missing_live::said(facts));
    said.extend(case.damage.iter().cloned());
    said.extend(limits(facts));
    said
}

fn kernel_logs(facts: &Facts<'_>) -> Vec<String> {
    let case = facts.case;
    let mut said = Vec::new();
    let kernels: BTreeSet<String> = case
        .logs
        .iter()
        .filter_map(|log| match &log.whose {
            Whose::Kernel(node) if log.refused.is_none() && log.lines > 0 => Some(facts.layout.node(node)),
            _ => None,
        })
        .collect();
    let without: Vec<&str> = facts.layout.nodes().into_iter().filter(|node| !kernels.contains(*node)).collect();
    match without.len() {
        _ if kernels.is_empty() => said.push(
            "Kernel logs (dmesg/NODE.log): none, so broken hardware shows only where the job noticed it.".to_owned(),
        ),
        0 => {}
        _ => said.push(format!("No kernel log of {}: broken hardware there would be unseen.", few(&without))),
    }
    for log in case.logs.iter() {
        if let (Whose::Kernel(node), Some(why)) = (&log.whose, &log.refused) {
            said.push(format!("Kernel log of {node}: refused ({why}). That is not the same as clean."));
        }
    }
    said
}

fn logs_of_the_job(facts: &Facts<'_>) -> Option<String> {
    let case = facts.case;
    let logs = case.logs.iter().filter(|log| !matches!(log.whose, Whose::Kernel(_))).count();
    if logs == 0 {
        Some("Logs of the job (logs/rank_N.log): none, so exceptions, time-outs and lost peers are unknown.".to_owned())
    } else if logs < facts.layout.world() && case.logs.iter().any(|log| matches!(log.whose, Whose::Rank(_))) {
        Some(format!(
            "Logs of {} of {} ranks: an exception there would be unseen.",
            facts.layout.world() - logs,
            facts.layout.world()
        ))
    } else {
        None
    }
}

fn limits(facts: &Facts<'_>) -> Vec<String> {
    let case = facts.case;
    let (cut, not_kept) = case.logs.iter().fold((0, 0), |(cut, kept), log| (cut + log.cut_lines, kept + log.not_kept));
    let entries: u64 = case.dumps.iter().map(|dump| dump.left_out).sum();
    let said = [
        (cut, "lines were longer than 64 KiB: their rest was not read."),
        (not_kept, "lines that rules know were counted and not kept, because too many differ."),
        (entries, "entries of flight recorders were left out, because there are too many."),
        (case.timed_left_out, "operations of NCCL Inspector were left out, because there are too many."),
    ];
    said.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect()
}

fn few(names: &[&str]) -> String {
    let shown = names.iter().take(4).copied().collect::<Vec<_>>().join(", ");
    if names.len() > 4 { format!("{shown} …") } else { shown }
}

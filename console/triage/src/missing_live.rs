//! What was not looked at on the nodes, where they were asked, and why that matters.

use muster_wire::{Processes, Reading};

use super::facts::Facts;
use super::names::few;
use super::processes::waits_are_told;

/// Sentences of nodes that are told one by one; of a large job many say the same.
const TOLD: usize = 24;
/// Health checks that nobody could decide and that are told.
const CHECKS: usize = 8;

/// Sentences for whoever reads the verdict.
pub(super) fn said(facts: &Facts<'_>) -> Vec<String> {
    let case = facts.case;
    if case.processes.is_empty() && case.reached.is_empty() {
        return vec![
            "Switches, cables, counters of adapters and GPUs, health checks, processes and stacks: not part of this bundle."
                .to_owned(),
        ];
    }
    let mut said = vec![if case.looked.is_empty() {
        "Switches, cables and health checks: not asked (muster pairs, muster run cbd-light).".to_owned()
    } else {
        "Switches and cables: not asked (muster pairs).".to_owned()
    }];
    said.extend(facts.health.open.iter().take(CHECKS).map(|(check, nodes, why)| {
        format!("Health check {}: not decided on {nodes} of {} nodes: {why}.", check.id, facts.health.nodes)
    }));
    for node in &case.reached {
        if let Some(why) = &node.why {
            let what = if node.unreached { "not reached" } else { "not everything was told" };
            said.push(format!("{}: {what}: {why}.", node.node));
        }
    }
    let empty: Vec<&str> =
        case.processes.iter().filter(|(_, told)| told.processes.is_empty()).map(|(node, _)| node.as_str()).collect();
    if !empty.is_empty() {
        said.push(format!("No process of the job on {} ({}).", few(&empty, ", "), found_by(case.processes.values())));
    }
    let all = || case.processes.values().flat_map(|told| &told.processes);
    let denied = all().filter(|process| process.environment == Reading::Denied).count();
    if denied > 0 {
        said.push(format!(
            "Environment of {}: denied to this login, so ranks may be unknown. Log in as the job's user or root.",
            processes(denied)
        ));
    }
    let hidden = all().filter(|process| !waits_are_told(process)).count();
    if hidden > 0 {
        said.push(format!(
            "Kernel wait channels of {}: denied to this login, or not told. Log in as root.",
            processes(hidden)
        ));
    }
    let without_gpus = all().filter(|process| process.gpus == Reading::Denied).count();
    if without_gpus > 0 {
        said.push(format!("GPUs held by {}: denied to this login.", processes(without_gpus)));
    }
    let details = case.processes.iter().flat_map(|(node, told)| of_node(node, told));
    said.extend(details.take(TOLD));
    said
}

fn of_node(node: &str, told: &Processes) -> Vec<String> {
    let mut said: Vec<String> =
        told.ras.iter().filter(|text| !text.ends_with(" bytes")).map(|text| format!("{node}: RAS: {text}.")).collect();
    match &told.kernel_log {
        Some(Reading::Absent) => said.push(format!("{node}: it has no kernel log that can be read (/dev/kmsg).")),
        Some(Reading::Failed(why)) => said.push(format!("{node}: kernel log: {why}.")),
        _ => {}
    }
    said.extend(told.stalled.iter().map(|path| format!("{node}: {path}: no end of reading within 4 s.")));
    said.extend(told.notes.iter().map(|note| format!("{node}: {note}")));
    said
}

fn processes(count: usize) -> String {
    format!("{count} {}", if count == 1 { "process" } else { "processes" })
}

fn found_by<'a>(mut told: impl Iterator<Item = &'a Processes>) -> String {
    told.next().map_or_else(String::new, |told| format!("looked for by: {}", told.found_by))
}

#[cfg(test)]
mod tests {
    use super::super::case::Case;
    use super::*;
    use muster_logs::Rules;
    use muster_wire::JobProcess;

    fn sentences(processes: Vec<JobProcess>) -> Vec<String> {
        let rules = Rules::built_in().unwrap();
        let told = Processes { found_by: "Slurm job 7".into(), processes, ..Processes::default() };
        let case = Case { processes: [("n1".to_owned(), told)].into(), ..Case::default() };
        said(&Facts::of(&case, &rules))
    }

    #[test]
    fn what_a_login_may_not_see_is_said_with_how_many_processes_it_is_of() {
        let seen = JobProcess::default();
        let blind = JobProcess { environment: Reading::Denied, gpus: Reading::Denied, ..seen.clone() };
        let all = sentences(vec![blind.clone(), blind, seen.clone()]);
        let denied = ["Environment of 2 processes: denied", "GPUs held by 2 processes: denied"];
        assert!(denied.iter().all(|what| all.iter().any(|said| said.starts_with(what))), "{all:?}");
        let all = sentences(vec![seen]);
        assert!(!all.iter().any(|said| said.contains("Environment") || said.contains("GPUs that")), "{all:?}");
        let all = sentences(Vec::new());
        assert!(all.contains(&"No process of the job on n1 (looked for by: Slurm job 7).".to_owned()), "{all:?}");
    }
}

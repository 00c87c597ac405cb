//! What was not looked at, and why that matters.

use std::collections::BTreeSet;

use super::case::Whose;
use super::clock::UNKNOWN_S;
use super::counters::Movement;
use super::facts::Facts;
use super::names::few;

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
        _ => said.push(format!("No kernel log of {}: broken hardware there would be unseen.", few(&without, ", "))),
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

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::case::{Case, Comm, CommRank, Dump, Job, Log, Member, Poll, Reached, Timed};
    use muster_logs::{Rules, Scanned, Tally};
    use muster_wire::Processes;

    static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::built_in().unwrap());

    fn log(whose: Whose, lines: u64, refused: Option<&str>) -> Log {
        let scanned = Scanned { lines, ..Scanned::default() };
        Log { refused: refused.map(str::to_owned), ..Log::of(whose, &scanned, &Tally::default()) }
    }

    /// What is said of a job of four ranks on four nodes with these logs.
    fn said(logs: Vec<Log>) -> Vec<String> {
        let member = |rank: u32| Member { rank, node: Some(format!("n{rank}")), ..Member::default() };
        let job = Job { members: (0..4).map(member).collect(), ..Job::default() };
        let case = Case { job, logs, ..Case::default() };
        missing(&Facts::of(&case, &RULES))
    }

    fn kernel(node: u32, lines: u64, refused: Option<&str>) -> Log {
        log(Whose::Kernel(format!("n{node}")), lines, refused)
    }

    fn about<'s>(said: &'s [String], word: &str) -> Vec<&'s str> {
        said.iter().map(String::as_str).filter(|line| line.to_lowercase().contains(word)).collect()
    }

    #[test]
    fn nodes_whose_kernel_log_was_not_read_are_named_and_of_all_that_were_nothing_is_said() {
        assert!(about(&said(Vec::new()), "kernel log")[0].contains("none, so broken hardware shows only"));
        let all: Vec<Log> = (0..4).map(|node| kernel(node, 9, None)).collect();
        assert_eq!(about(&said(all.clone()), "kernel log"), Vec::<&str>::new());
        let some = vec![all[0].clone(), kernel(1, 0, None), all[2].clone(), kernel(3, 9, Some("no permission"))];
        assert_eq!(
            about(&said(some), "kernel log"),
            [
                "No kernel log of n1, n3: broken hardware there would be unseen.",
                "Kernel log of n3: refused (no permission). That is not the same as clean."
            ]
        );
    }

    #[test]
    fn ranks_without_a_log_are_counted_and_lines_that_were_cut_are_told() {
        assert!(about(&said(Vec::new()), "logs of")[0].starts_with("Logs of the job (logs/rank_N.log): none"));
        let rank = |rank: u32| log(Whose::Rank(rank), 9, None);
        assert_eq!(
            about(&said(vec![rank(0)]), "logs of"),
            ["Logs of 3 of 4 ranks: an exception there would be unseen."]
        );
        assert_eq!(about(&said((0..4).map(rank).collect()), "logs of"), Vec::<&str>::new());
        assert_eq!(about(&said(vec![log(Whose::Job("out".to_owned()), 9, None)]), "logs of"), Vec::<&str>::new());
        let cut = Log { cut_lines: 2, not_kept: 3, ..rank(0) };
        let said = said(vec![cut.clone(), cut]);
        assert_eq!(about(&said, "lines were longer").len() + about(&said, "counted and not kept").len(), 2, "{said:?}");
        assert!(said.iter().any(|line| line.starts_with("4 lines were longer")), "{said:?}");
        assert!(said.iter().any(|line| line.starts_with("6 lines that rules know")), "{said:?}");
    }

    #[test]
    fn what_answers_of_ras_do_not_show_is_told_by_how_many_there_are() {
        let rank = |count: u64| CommRank { counts: [("AllReduce".to_owned(), count)].into(), ..CommRank::default() };
        let poll = |number: u32| Poll {
            number,
            comms: vec![Comm { hash: "0x1".into(), ranks: vec![rank(5)], ..Comm::default() }],
            ..Poll::default()
        };
        let of = |polls: Vec<Poll>, ras: Option<&str>| {
            let told = Processes { ras: ras.map(str::to_owned).into_iter().collect(), ..Processes::default() };
            let processes = ras.map(|_| ("n1".to_owned(), told)).into_iter().collect();
            let case = Case { polls, processes, ..Case::default() };
            let said = missing(&Facts::of(&case, &RULES));
            let of_ras = said.into_iter().find(|line| line.contains("RAS") && !line.starts_with("n1: "));
            of_ras.unwrap_or_default()
        };
        assert!(of(Vec::new(), None).starts_with("NCCL RAS (ras/pollK.json): none"));
        assert!(of(Vec::new(), Some("refused")).starts_with("NCCL RAS: no answer that can be used"));
        assert!(of(vec![poll(1)], None).starts_with("A second RAS poll at least 10 s after the first"));
        assert!(of(vec![poll(1), poll(1)], None).starts_with("RAS polls tell no counts, or lie less than 10 s apart"));
        assert_eq!(of(vec![poll(1), poll(2)], None), "");
    }

    #[test]
    fn nodes_whose_clocks_are_not_known_are_counted_where_there_is_an_order_between_nodes() {
        let of = |known: &[&str], ranks: u32| {
            let member = |rank: u32| Member { rank, node: Some(format!("n{rank}")), ..Member::default() };
            let reached =
                |node: &&str| Reached { node: (*node).to_owned(), clock: Some((0.0, 0.1)), ..Reached::default() };
            let job = Job { members: (0..ranks).map(member).collect(), ..Job::default() };
            let case = Case { job, reached: known.iter().map(reached).collect(), ..Case::default() };
            let said = missing(&Facts::of(&case, &RULES));
            about(&said, "clocks of").first().map(|said| (*said).to_owned()).unwrap_or_default()
        };
        assert_eq!(of(&["n1"], 3), "Clocks of 2 nodes: no common events, so the order of their lines is not used.");
        assert_eq!((of(&["n0", "n1", "n2"], 3), of(&[], 1)), (String::new(), String::new()));
    }

    #[test]
    fn what_was_not_given_or_did_not_fit_is_told_and_what_was_is_not() {
        let said = |case: &Case| missing(&Facts::of(case, &RULES));
        let is = |said: &[String], begin: &str| said.iter().any(|line| line.starts_with(begin));
        let nothing = said(&Case::default());
        let begins = [
            "Flight-recorder dumps (fr/): none",
            "NCCL Inspector (inspector/*.jsonl): none",
            "Who runs where (job.json): missing",
        ];
        assert!(begins.iter().all(|begin| is(&nothing, begin)), "{nothing:?}");
        let one = Timed {
            comm: "c".into(),
            rank: 0,
            ranks: 2,
            nodes: 2,
            host: "n0".into(),
            pid: 7,
            op: "AllReduce".into(),
            peer: None,
            seq: 1,
            bytes: 8,
            took_us: 1.0,
        };
        let full = Case {
            dumps: vec![Dump { left_out: 2, ..Dump::default() }, Dump { rank: 1, left_out: 3, ..Dump::default() }],
            timed: vec![one],
            timed_left_out: 7,
            damage: vec!["fr/dump_3: torn".to_owned()],
            ..Case::default()
        };
        let told = said(&full);
        assert!(!begins.iter().any(|begin| is(&told, begin)), "{told:?}");
        let begins = [
            "5 entries of flight recorders were left out",
            "7 operations of NCCL Inspector were left out",
            "fr/dump_3: torn",
        ];
        assert!(begins.iter().all(|begin| is(&told, begin)), "{told:?}");
        assert!(!is(&told, "0 "), "{told:?}");
    }
}

//! Did a machine say that a part of it is broken, when the job ended?

use std::collections::{BTreeMap, BTreeSet};

use super::{Draft, SUSPECTS, Verdict, found, nothing, who};
use crate::confidence::Weight;
use crate::events::Event;
use crate::facts::Facts;
use crate::report::{Done, Kind as What, Source, Suspect};
use muster_logs::Category;
use muster_logs::fault::Fault;
use muster_logs::{Event as Line, Field, Kind, Part, order};

const STEP: &str = "critical-errors";

/// The step.
pub(super) fn step(facts: &Facts<'_>) -> (Done, Option<Verdict>) {
    let mut critical: Vec<&Event<'_>> =
        facts.roots().filter(|event| event.rule.kind == Kind::Critical && hardware(event.rule.part)).collect();
    leave_out_what_all_say(facts, &mut critical);
    if critical.is_empty() {
        let older = facts.events.iter().filter(|event| event.rule.kind == Kind::Critical).count();
        let kernels = facts
            .case
            .logs
            .iter()
            .filter(|log| matches!(log.whose, crate::case::Whose::Kernel(_)) && log.refused.is_none())
            .count();
        let result = match older {
            0 => format!(
                "no critical hardware line in {kernels} kernel logs and {} other logs",
                facts.case.logs.len() - kernels
            ),
            n => {
                let lines = if n == 1 { "1 critical line".to_owned() } else { format!("{n} critical lines") };
                format!(
                    "{lines} left out: not near the job's end, of other processes or nodes, or the same on most nodes"
                )
            }
        };
        return nothing(STEP, result, "No machine says that it is broken: go on to what the job itself says.");
    }
    let mut by_node: BTreeMap<Option<&str>, Vec<&Event<'_>>> = BTreeMap::new();
    for event in critical {
        by_node.entry(event.node.as_deref()).or_default().push(event);
    }
    let mut nodes: Vec<Vec<&Event<'_>>> = by_node.into_values().map(ordered).collect();
    // A node that others lost, or whose rank is behind, before one that only complains of itself; then the clearly earlier one.
    nodes.sort_by(|a, b| rank_of(facts, b).total_cmp(&rank_of(facts, a)).then(first(a).total_cmp(&first(b))));
    let lead = nodes.first().map_or(0.0, |node| rank_of(facts, node));
    let tied = nodes.iter().filter(|node| rank_of(facts, node) >= lead && !later(&nodes[0], node)).count();
    let suspects: Vec<Suspect> = nodes
        .iter()
        .take(SUSPECTS)
        .enumerate()
        .map(|(at, events)| suspect(facts, events, if at < tied { 1 } else { 3 }))
        .collect();
    let result = format!(
        "critical lines on {}",
        nodes.iter().filter_map(|events| events[0].node.as_deref()).collect::<Vec<_>>().join(", ")
    );
    found(STEP, result, Verdict { category: Category::HardwareCritical, suspects })
}

/// Lines without a time that most machines have alike tell of how they are built, or of when they booted; and what the program says of
/// most machines tells of what it was given.
pub(super) fn leave_out_what_all_say(facts: &Facts<'_>, critical: &mut Vec<&Event<'_>>) {
    const FEWEST: usize = 3;
    let mut nodes_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for event in critical.iter() {
        nodes_of.entry(&event.rule.id).or_default().extend(event.node.as_deref());
    }
    let all = facts.layout.nodes().len();
    let common = |event: &&Event<'_>| {
        let nodes = nodes_of.get(event.rule.id.as_str()).map_or(0, BTreeSet::len);
        let undated = event.at_s.is_none() && nodes >= FEWEST;
        let by_program = event.source == Source::Log && nodes > 1;
        nodes * 2 > all && (undated || by_program)
    };
    critical.retain(|event| !common(event));
}

/// Whether a part is one of a machine; critical lines of the rest are other steps' business.
pub(super) const fn hardware(part: Part) -> bool {
    !matches!(part, Part::Program | Part::Settings | Part::Scheduler | Part::Storage | Part::Unknown | Part::Network)
}

/// Likeliest root first, explained lines left out.
fn ordered<'a, 'e>(events: Vec<&'e Event<'a>>) -> Vec<&'e Event<'a>> {
    let lines: Vec<Line<'_>> =
        events.iter().map(|e| Line { rule: e.rule, node: e.node.as_deref(), at_s: e.at_s, error_s: 1.0 }).collect();
    let ordered: Vec<&Event<'_>> =
        order(&lines).iter().filter(|line| line.root).map(|line| events[line.event]).collect();
    if ordered.is_empty() { events } else { ordered }
}

fn first(events: &[&Event<'_>]) -> f64 {
    events.iter().filter_map(|event| event.at_s).fold(f64::INFINITY, f64::min)
}

/// Whether `other`'s lines came clearly after `lead`'s.
fn later(lead: &[&Event<'_>], other: &[&Event<'_>]) -> bool {
    first(lead) + lead[0].error_s < first(other) - other[0].error_s
}

/// How much beside its own lines points at the node of some events.
fn rank_of(facts: &Facts<'_>, events: &[&Event<'_>]) -> f64 {
    let mut draft = Draft::new(What::Node, events[0].node.clone(), None);
    draft.corroborate(facts);
    draft.say("").confidence
}

fn suspect(facts: &Facts<'_>, events: &[&Event<'_>], several: usize) -> Suspect {
    let lead = events[0];
    let same: Vec<&&Event<'_>> = events.iter().filter(|event| event.rule.id == lead.rule.id).collect();
    let one = |of: fn(&Event<'_>) -> Option<u32>| {
        let first = of(lead)?;
        same.iter().all(|event| of(event) == Some(first)).then_some(first)
    };
    // Several ranks with the same line: the one that is behind or gone, if it is one.
    let behind = facts.behind();
    let mut narrowed = same.iter().filter_map(|event| event.rank).filter(|rank| behind.contains(rank));
    let narrowed = narrowed.next().filter(|first| narrowed.all(|other| other == *first));
    let rank = one(|event| event.rank).or(narrowed);
    let gpu = one(|event| event.gpu).or_else(|| facts.layout.gpu_of(rank?));
    let on_gpu = matches!(lead.rule.part, Part::Gpu | Part::GpuMemory | Part::GpuLink) || gpu.is_some();
    let kind = match lead.rule.part {
        Part::Nic => What::Nic,
        Part::IbPort => What::Link,
        _ if on_gpu && (gpu.is_some() || rank.is_some() || lead.seen.fields.get(Field::Bus).is_some()) => What::Gpu,
        _ => What::Node,
    };
    let element = element(lead);
    let mut cause = lead.cause();
    if lead.rule.part == Part::GpuLink && lead.seen.fields.get(Field::Link).is_some() {
        cause.fault = cause.fault.or(Some(Fault::NvLink));
    }
    let mut draft = Draft::new(kind, lead.node.clone(), rank).gpu(gpu).element(element).cause(cause);
    let dated = lead.at_s.is_some() && facts.end.last_s.is_some();
    let weight = |event: &Event<'_>| match event.source {
        Source::Kernel if dated => Weight::KernelCritical,
        Source::Kernel => Weight::KernelUndated,
        _ => Weight::LogCritical,
    };
    for event in events.iter().take(6) {
        draft.add(weight(event), [event.evidence()]);
    }
    draft.corroborate(facts);
    let gpu = gpu.map_or(String::new(), |gpu| format!(", GPU {gpu}"));
    let sentence = format!("{}{gpu}: {} {}", who(rank, lead.node.as_deref()), lead.rule.meaning, lead.rule.action);
    draft.one_of(several, sentence.trim())
}

fn element(event: &Event<'_>) -> Option<String> {
    let get = |field| event.seen.fields.get(field).map(str::to_owned);
    if event.rule.part == Part::GpuLink
        && let Some(link) = get(Field::Link)
    {
        return Some(format!("nvlink {}", link.trim_start_matches('0').parse::<u32>().unwrap_or(0)));
    }
    get(Field::Device).or_else(|| get(Field::Bus)).or_else(|| get(Field::Element))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Case, Job, Member, Whose};
    use crate::made;
    use muster_logs::Rules;

    const DISK: &str = "[    3.000000] nvme nvme0: Removing after probe failure status: -19\n";
    const NO_GPU: &str = "RuntimeError: No CUDA GPUs are available\n";

    /// A GPU that falls off the bus so many seconds after the job's last step.
    fn lost(seconds: u32) -> String {
        let (minute, second) = (10 + seconds / 60, seconds % 60);
        format!(
            "[2026-11-20 10:{minute}:{second:02}] NVRM: Xid (PCI:0000:11:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
        )
    }

    /// What is found on so many nodes with a rank each, of which rank 0 took its last step at 10:10:00: whose log (`n1` of a kernel, `1` of a
    /// rank), and its line.
    fn found_in(nodes: u32, lines: &[(&str, &str)]) -> (Done, Option<Verdict>) {
        let rules = Rules::built_in().unwrap();
        let member = |rank: u32| Member { rank, node: Some(format!("n{rank}")), ..Member::default() };
        let log = |&(of, line): &(&str, &str)| {
            let whose = of.parse::<u32>().map_or_else(|_| Whose::Kernel(of.to_owned()), Whose::Rank);
            made::log(whose, line, &rules)
        };
        let step_of_job = "[2026-11-20 10:10:00] iteration 5/ 100 | elapsed time per iteration (ms): 900.0 |\n";
        let logs = lines.iter().chain([&("0", step_of_job)]).map(log).collect();
        let job = Job { members: (0..nodes).map(member).collect(), ..Job::default() };
        step(&Facts::of(&Case { job, logs, ..Case::default() }, &rules))
    }

    /// The nodes that are suspected, with the confidence.
    fn suspected(nodes: u32, lines: &[(&str, &str)]) -> Vec<(String, f64)> {
        let suspects = found_in(nodes, lines).1.map_or_else(Vec::new, |verdict| verdict.suspects);
        suspects.into_iter().map(|suspect| (suspect.node.unwrap_or_default(), suspect.confidence)).collect()
    }

    fn of(suspected: &[(&str, f64)]) -> Vec<(String, f64)> {
        suspected.iter().map(|(node, confidence)| ((*node).to_owned(), *confidence)).collect()
    }

    #[test]
    fn what_is_broken_is_told_with_its_part_and_worth_more_where_its_time_is_known() {
        let (done, verdict) = found_in(4, &[("n1", &lost(0))]);
        let Verdict { category, suspects } = verdict.unwrap();
        assert_eq!((category, done.result.as_str()), (Category::HardwareCritical, "critical lines on n1"));
        assert_eq!((suspects[0].kind, suspects[0].element.as_deref()), (What::Gpu, Some("0000:11:00")));
        let (_, verdict) = found_in(4, &[("n2", DISK)]);
        let disk = verdict.unwrap().suspects.remove(0);
        assert_eq!((disk.kind, disk.element.as_deref()), (What::Node, Some("nvme0")));
        assert_eq!(suspected(4, &[("n1", &lost(0))]), of(&[("n1", 0.88)]));
        assert_eq!(suspected(4, &[("n2", DISK)]), of(&[("n2", 0.7)]), "seconds since its boot are no time");
        assert_eq!(suspected(4, &[("3", NO_GPU)]), of(&[("n3", 0.82)]));
    }

    #[test]
    fn whoever_broke_clearly_later_than_another_is_worth_a_third() {
        // Nothing is known of the clocks: each may be off by a minute.
        let both = |later: u32| suspected(4, &[("n2", &lost(later)), ("n1", &lost(0))]);
        assert_eq!(both(120), of(&[("n1", 0.88), ("n2", 0.88)]));
        assert_eq!(both(130), of(&[("n1", 0.88), ("n2", 0.29)]));
    }

    #[test]
    fn what_most_nodes_say_without_a_time_or_most_programs_say_is_left_out() {
        let on = |nodes: u32, of: &[&str], line: &str| {
            let lines: Vec<(&str, &str)> = of.iter().map(|of| (*of, line)).collect();
            suspected(nodes, &lines).len()
        };
        assert_eq!(on(4, &["n0", "n1", "n2"], DISK), 0);
        assert_eq!(on(6, &["n0", "n1", "n2"], DISK), 3, "half of the nodes are not most");
        assert_eq!(on(2, &["n0", "n1"], DISK), 2, "two may break at once");
        assert_eq!(on(4, &["n0", "n1", "n2"], &lost(0)), 3, "they say when");
        assert_eq!(on(4, &["1", "2", "3"], NO_GPU), 0);
        assert_eq!(on(4, &["1", "2"], NO_GPU), 2);
        assert_eq!(on(1, &["0"], NO_GPU), 1, "of one node that is all");
    }

    #[test]
    fn where_nothing_is_found_it_is_told_what_was_looked_at_and_what_was_left_out() {
        let result = |lines: &[(&str, &str)]| found_in(4, lines).0.result;
        assert_eq!(result(&[("n1", "quiet\n")]), "no critical hardware line in 1 kernel logs and 1 other logs");
        let left = " left out: not near the job's end, of other processes or nodes, or the same on most nodes";
        let late = lost(4_000).replace("10:76", "11:16");
        assert_eq!(result(&[("n1", &late)]), format!("1 critical line{left}"));
        assert_eq!(result(&[("n0", DISK), ("n1", DISK), ("n2", DISK)]), format!("3 critical lines{left}"));
    }
}

//! Is a process of the job stopped, blocked or gone, or a node out of reach?

use std::collections::BTreeSet;

use super::{Draft, SUSPECTS, Verdict, found, nothing, seen, upper, who};
use crate::confidence::Weight;
use crate::counters::Movement;
use crate::facts::Facts;
use crate::processes::{Doing, Standing};
use crate::report::{Done, Kind as What, Source, Suspect};
use muster_logs::Category;
use muster_logs::fault::{Cause, Fault};

const STEP: &str = "processes";
/// Highest confidence for a node out of reach whose ranks no other rank misses: then only this console cannot reach it.
const UNCONFIRMED: f64 = 0.45;

/// One look: what was found in words, and what it comes to.
type Look = fn(&Facts<'_>) -> Option<(String, Verdict)>;

/// The step.
pub(super) fn step(facts: &Facts<'_>) -> (Done, Option<Verdict>) {
    let standings = &facts.standings;
    let named = !facts.named(Category::ProcessExited).is_empty();
    if standings.all.is_empty() && standings.unreached.is_empty() && !named {
        return nothing(STEP, "no process of the job was looked at", "What processes do is not known: go on.");
    }
    if facts.movement == Movement::Moved {
        return nothing(STEP, "the job got on while its processes were looked at", "None of them holds it up: go on.");
    }
    let steps: [Look; 4] = [stopped, blocked, vanished, unreached];
    for step in steps {
        if let Some((result, verdict)) = step(facts) {
            return found(STEP, result, verdict);
        }
    }
    let count = standings.all.len();
    nothing(
        STEP,
        format!("none of {count} processes is stopped, blocked or gone"),
        "Go on to what ranks say of each other.",
    )
}

/// What a process does, where that is not what it should.
fn doing(standing: &Standing) -> Option<(Weight, String)> {
    let (pid, looks) = (standing.pid, standing.states.len());
    match &standing.doing {
        Doing::Stopped(how) => {
            let last = standing.states.chars().next_back();
            let so = standing.states.chars().filter(|state| Some(*state) == last).count();
            Some((Weight::Stopped, format!("process {pid} is {}, at {so} of {looks} looks", how.told())))
        }
        Doing::Blocked(kind, place) => {
            let text = format!("process {pid} waits for {kind}, in {place}, at nearly all of {looks} looks");
            Some((Weight::Blocked, text))
        }
        Doing::Uninterruptible(place) => {
            let text = format!("process {pid} cannot be woken (state D, in {place}), at nearly all of {looks} looks");
            Some((Weight::Blocked, text))
        }
        Doing::Ended => Some((Weight::Vanished, format!("process {pid} ended while it was looked at"))),
        Doing::Alive => None,
    }
}

/// What is told of a rank's process, with its weight.
pub(super) fn told(facts: &Facts<'_>, rank: u32) -> Vec<(Weight, String)> {
    let mut told = Vec::new();
    if let Some(standing) = facts.standings.of_rank(rank) {
        let pid = standing.pid;
        told.extend(doing(standing));
        if facts.standings.busy == Some(rank) && facts.movement != Movement::Moved {
            let share = standing.cpu.unwrap_or(0.0) * 100.0;
            told.push((Weight::Busy, format!("process {pid} uses {share:.0} % of a CPU while all others wait")));
        }
    }
    if let Some((_, tellers)) = facts.named(Category::ProcessExited).into_iter().find(|(named, _)| *named == rank) {
        told.push((Weight::Complaints, format!("{} that rank {rank} is gone", super::ranks(tellers, ["says", "say"]))));
    }
    if let Some(node) = facts.standings.vanished.get(&rank) {
        let on = node.as_deref().unwrap_or("any node");
        told.push((Weight::Vanished, format!("rank {rank} has no process on {on}, and the others have theirs")));
    }
    told
}

fn ranks(facts: &Facts<'_>, is: impl Fn(&Doing) -> bool) -> Vec<u32> {
    let of = facts.standings.all.iter().filter(|standing| is(&standing.doing));
    of.filter_map(|standing| standing.rank).collect()
}

fn names(suspects: &[Suspect]) -> String {
    suspects.iter().map(|suspect| who(suspect.rank, suspect.node.as_deref())).collect::<Vec<_>>().join(", ")
}

fn of_ranks(facts: &Facts<'_>, ranks: &[u32], sentence: impl Fn(u32, &str) -> String) -> Vec<Suspect> {
    let suspect = |rank: &u32| {
        let node = facts.standings.of_rank(*rank).map(|standing| standing.node.clone());
        let node = node.or_else(|| facts.standings.vanished.get(rank).cloned().flatten());
        let node = node.or_else(|| facts.layout.node_of(*rank).map(str::to_owned));
        let name = who(Some(*rank), node.as_deref());
        let mut draft =
            Draft::new(What::Rank, node, Some(*rank)).gpu(facts.layout.gpu_of(*rank)).cause(cause(facts, *rank));
        draft.corroborate(facts);
        draft.say(sentence(*rank, &name))
    };
    ranks.iter().take(SUSPECTS).map(suspect).collect()
}

/// What exactly is wrong with the rank's process, as far as its state tells.
pub(super) fn cause(facts: &Facts<'_>, rank: u32) -> Cause {
    let Some(standing) = facts.standings.of_rank(rank) else { return Cause::default() };
    let fault = if let Doing::Stopped(how) = standing.doing { Some(how.fault()) } else { None };
    Cause { fault, pid: (standing.doing != Doing::Ended).then_some(standing.pid), path: None }
}

/// Stopped processes: all of them are named, unless everybody is stopped.
fn stopped(facts: &Facts<'_>) -> Option<(String, Verdict)> {
    let stopped = ranks(facts, |doing| matches!(doing, Doing::Stopped(_)));
    if stopped.is_empty() || stopped.len() * 2 > facts.standings.all.len() {
        return None;
    }
    let suspects = of_ranks(facts, &stopped, |rank, name| {
        let how = match facts.standings.of_rank(rank).map(|standing| &standing.doing) {
            Some(Doing::Stopped(how)) => how.told(),
            _ => "stopped",
        };
        format!("{name} is {how}, and the others wait for it.")
    });
    Some((format!("stopped: {}", names(&suspects)), Verdict { category: Category::HangNotLaunched, suspects }))
}

/// Processes that wait for storage, which is one cause however many they are.
fn blocked(facts: &Facts<'_>) -> Option<(String, Verdict)> {
    let blocked: Vec<_> =
        facts.standings.all.iter().filter(|standing| matches!(standing.doing, Doing::Blocked(..))).collect();
    let stalled: Vec<(&String, &String)> = facts
        .case
        .processes
        .iter()
        .flat_map(|(node, told)| told.stalled.iter().map(move |path| (node, path)))
        .collect();
    let kind =
        blocked.first().and_then(|first| if let Doing::Blocked(kind, _) = &first.doing { Some(*kind) } else { None });
    if kind.is_none() && stalled.is_empty() {
        return uninterruptible(facts);
    }
    let nodes: BTreeSet<&str> = blocked
        .iter()
        .map(|standing| standing.node.as_str())
        .chain(stalled.iter().map(|(node, _)| node.as_str()))
        .collect();
    let kind = kind.unwrap_or("storage");
    let one = if nodes.len() == 1 { nodes.first().map(|node| (*node).to_owned()) } else { None };
    let path = stalled.first().map(|(_, path)| (*path).clone());
    let local = kind.starts_with("a disk") || kind == "a file system";
    let cause = Cause { fault: Some(if local { Fault::DiskStalls } else { Fault::MountHangs }), pid: None, path };
    let mut draft = Draft::new(What::Storage, one, None).element(Some(kind.to_owned())).cause(cause);
    let lines = blocked.iter().take(6).flat_map(|standing| {
        let rank = standing.rank;
        // Of a process that tells no rank, nobody else says anything.
        let texts = rank.map_or_else(|| doing(standing).into_iter().collect(), |rank| told(facts, rank));
        texts.into_iter().map(move |(_, text)| seen(Source::Stack, &Some(standing.node.clone()), rank, text))
    });
    if !blocked.is_empty() {
        draft.add(Weight::Blocked, lines.collect::<Vec<_>>());
    }
    if let Some((node, path)) = stalled.first() {
        let text = format!("{path} could not be read within 4 s{}", and_more(stalled.len() - 1));
        draft.add(Weight::Line, [seen(Source::Check, &Some((*node).clone()), None, text)]);
    }
    if nodes.len() > 1 {
        draft.add(Weight::ManyNodes, [seen(Source::Stack, &None, None, format!("on {} nodes", nodes.len()))]);
    }
    let behind = facts.behind();
    let held = blocked.iter().filter_map(|standing| standing.rank).find(|rank| behind.contains(rank));
    if let Some(rank) = held {
        let text = format!("the others wait for rank {rank}");
        draft.add(Weight::HoldsBack, [seen(Source::Ras, &None, Some(rank), text)]);
    }
    let on = nodes.iter().take(4).copied().collect::<Vec<_>>().join(", ");
    let who = match blocked.first().and_then(|standing| standing.rank) {
        _ if blocked.is_empty() => format!("files could not be read on {on}"),
        Some(rank) if blocked.len() == 1 => format!("rank {rank} on {on} waits for it"),
        None if blocked.len() == 1 => format!("a process on {on} waits for it"),
        _ => format!("{} processes on {on} wait for it", blocked.len()),
    };
    let suspect = draft.say(format!("{} does not answer: {who}.", upper(kind)));
    Some((format!("{kind} does not answer"), Verdict { category: Category::Storage, suspects: vec![suspect] }))
}

/// `, and 3 more files`; nothing where the one that was named is all.
fn and_more(files: usize) -> String {
    match files {
        0 => String::new(),
        1 => ", and one more file".to_owned(),
        more => format!(", and {more} more files"),
    }
}

/// Processes that wait for something that is not known to be storage.
fn uninterruptible(facts: &Facts<'_>) -> Option<(String, Verdict)> {
    let stuck = ranks(facts, |doing| matches!(doing, Doing::Uninterruptible(_)));
    if stuck.is_empty() || stuck.len() * 2 > facts.standings.all.len() {
        return None;
    }
    let sentence =
        |_, name: &str| format!("{name} cannot be woken (state D): its kernel waits for a device or a driver.");
    let suspects = of_ranks(facts, &stuck, sentence);
    Some((format!("uninterruptible: {}", names(&suspects)), Verdict { category: Category::HostStall, suspects }))
}

/// Ranks that have no process any more.
fn vanished(facts: &Facts<'_>) -> Option<(String, Verdict)> {
    let mut gone = ranks(facts, |doing| matches!(doing, Doing::Ended));
    // All end together where the job ends; then only those count that the others waited for.
    if gone.len() * 2 > facts.standings.all.len() {
        let behind = facts.behind();
        gone.retain(|rank| behind.contains(rank));
    }
    gone.extend(facts.standings.vanished.keys());
    let named: Vec<u32> = facts.named(Category::ProcessExited).into_iter().map(|(rank, _)| rank).collect();
    // Who is named by the others after the job ended is gone as much as one that has no process while it runs.
    gone.extend(named.into_iter().filter(|rank| !facts.standings.lives(*rank)));
    gone.sort_unstable();
    gone.dedup();
    if gone.is_empty() {
        return None;
    }
    let suspects =
        of_ranks(facts, &gone, |_, name| format!("{name} has ended, and the others could not go on without it."));
    Some((
        format!("no process any more: {}", names(&suspects)),
        Verdict { category: Category::ProcessExited, suspects },
    ))
}

/// Nodes that this console cannot reach: whether ranks on other nodes miss theirs decides how much that says.
fn unreached(facts: &Facts<'_>) -> Option<(String, Verdict)> {
    let standings = &facts.standings;
    let several = standings.unreached.len();
    if several == 0 || several * 2 > facts.case.reached.len() {
        return None;
    }
    let suspect = |(node, why): (&String, &String)| {
        let mut draft = Draft::new(What::Node, Some(node.clone()), None).cause(Some(Fault::Unreachable));
        draft.add(Weight::Unreached, [seen(Source::Check, &Some(node.clone()), None, format!("not reached: {why}"))]);
        // Where only one is out of reach, whoever is missed on no node that answered was there.
        let is_there = |rank: &u32| match facts.layout.node_of(*rank) {
            Some(other) => other == node || (several == 1 && !facts.case.processes.contains_key(other)),
            None => several == 1,
        };
        let missed: Vec<u32> = facts.gone.iter().copied().filter(is_there).collect();
        if !missed.is_empty() {
            let ranks = missed.iter().take(8).map(u32::to_string).collect::<Vec<_>>().join(", ");
            let text = format!("RAS gets no answer from its ranks: {ranks}");
            draft.add(Weight::RasGone, [seen(Source::Ras, &Some(node.clone()), None, text)]);
            if facts.movement == Movement::Still {
                let text = "the job stands still over two polls without them".to_owned();
                draft.add(Weight::HoldsBack, [seen(Source::Ras, &None, None, text)]);
            }
        }
        let mut suspect = draft.say(format!("{node} is out of reach, for this console and for the ranks of the job."));
        if missed.is_empty() {
            suspect.confidence = suspect.confidence.min(UNCONFIRMED);
            suspect.sentence =
                format!("{node} is out of reach for this console; no rank of the job says that it misses it.");
        }
        suspect
    };
    let mut suspects: Vec<Suspect> = standings.unreached.iter().map(suspect).collect();
    suspects.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    Some((format!("out of reach: {}", names(&suspects)), Verdict { category: Category::DistributedError, suspects }))
}

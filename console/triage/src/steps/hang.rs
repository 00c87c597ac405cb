//! Who is behind and waits for nobody?

use std::collections::{BTreeMap, BTreeSet};

use super::{Draft, SUSPECTS, Verdict, found, nothing, ranks, seen, who};
use crate::confidence::Weight;
use crate::counters::{Group, Movement};
use crate::facts::Facts;
use crate::report::{Done, Kind as What, Source, Suspect};
use crate::waits::{Behind, Root, Walk};
use muster_logs::Category;

const STEP: &str = "collective-counters";
/// The most that is said of a process that ended and whose log is missing.
const UNEXPLAINED: f64 = 0.75;

/// What a source's walk is worth.
pub(super) const fn weight(source: Source, facts: &Facts<'_>) -> Weight {
    match source {
        Source::FlightRecorder => Weight::Recorder,
        Source::Ras if matches!(facts.movement, Movement::Still) => Weight::RasStill,
        Source::Ras => Weight::RasOnce,
        _ => Weight::Watchdog,
    }
}

/// The step.
pub(super) fn step(facts: &Facts<'_>) -> (Done, Option<Verdict>) {
    let named = facts.named(Category::HangNotLaunched);
    let untold = facts.walks.iter().all(|(_, groups, _)| groups.is_empty());
    if untold && !named.is_empty() {
        let result = "ranks say who did not come to their barrier";
        let suspects = named.iter().take(SUSPECTS).map(|one| late_suspect(facts, *one, named.len())).collect();
        return found(STEP, result, Verdict { category: Category::HangNotLaunched, suspects });
    }
    if untold && facts.silent().is_empty() {
        return nothing(
            STEP,
            "nothing tells how far ranks got",
            "Without RAS, recorder or watchdogs a hang cannot be located.",
        );
    }
    let best = facts.walks.iter().find(|(_, _, walk)| !walk.roots.is_empty());
    if let Some((source, groups, walk)) = best {
        return roots(facts, *source, groups, walk);
    }
    let silent = facts.silent();
    if !silent.is_empty() {
        let suspects = silent.iter().take(SUSPECTS).map(|rank| silent_suspect(facts, *rank)).collect();
        return found(
            STEP,
            format!("{} ranks told a time-out and {} did not", facts.timed_out.len(), silent.len()),
            Verdict { category: Category::HangNotLaunched, suspects },
        );
    }
    let stuck = facts.walks.iter().find(|(_, _, walk)| !walk.stuck.is_empty());
    if let Some((source, groups, walk)) = stuck.filter(|_| facts.hung()) {
        return network(facts, *source, groups, walk);
    }
    let result = match facts.movement {
        Movement::Moved => "RAS saw the job get on, and nobody stays behind",
        _ => "all ranks are level, as far as told",
    };
    nothing(STEP, result, "Nobody is behind: go on to who is slow.")
}

fn roots(facts: &Facts<'_>, source: Source, groups: &[Group], walk: &Walk) -> (Done, Option<Verdict>) {
    let many = walk.roots.len() > (facts.layout.world() / 4).max(2);
    let nodes: BTreeSet<Option<&str>> = walk.roots.iter().map(|root| facts.layout.node_of(root.rank)).collect();
    if many && (nodes.len() > 1 || nodes.contains(&None)) {
        let result = format!("{} ranks are behind and wait for nobody that is told", walk.roots.len());
        return nothing(STEP, result, "That many are not one cause: whom they wait for is missing. Go on.");
    }
    let category = category(facts, walk);
    let suspects: Vec<Suspect> = if many {
        vec![node_suspect(facts, source, walk, nodes.into_iter().flatten().next())]
    } else {
        walk.roots.iter().take(SUSPECTS).map(|root| suspect(facts, source, groups, root)).collect()
    };
    let names: Vec<String> = suspects.iter().map(|s| who(s.rank, s.node.as_deref())).collect();
    found(STEP, format!("behind and waiting for nobody: {}", names.join(", ")), Verdict { category, suspects })
}

fn category(facts: &Facts<'_>, walk: &Walk) -> Category {
    let all = |behind: Behind| walk.roots.iter().all(|root| root.behind == behind);
    match () {
        () if all(Behind::NotStarted) => Category::HangNotStarted,
        // Dead, with its peers' word for it, is more than silent; a process that was seen is neither.
        () if walk.roots.iter().all(|root| facts.gone.contains(&root.rank) && !facts.standings.lives(root.rank)) => {
            Category::ProcessExited
        }
        () => Category::HangNotLaunched,
    }
}

fn suspect(facts: &Facts<'_>, source: Source, groups: &[Group], root: &Root) -> Suspect {
    let node = facts.layout.node_of(root.rank).map(str::to_owned);
    let kind = if root.behind == Behind::NotStarted { What::Gpu } else { What::Rank };
    let mut draft = Draft::new(kind, node.clone(), Some(root.rank))
        .gpu(facts.layout.gpu_of(root.rank))
        .cause(super::processes::cause(facts, root.rank));
    let told: BTreeMap<&str, &Group> = root.groups.iter().map(|at| (groups[*at].name.as_str(), &groups[*at])).collect();
    let evidence = told.values().take(4).map(|group| seen(source, &node, Some(root.rank), lag(root.rank, group)));
    let worth = if root.behind == Behind::Absent && source == Source::FlightRecorder {
        Weight::Line
    } else {
        weight(source, facts)
    };
    draft.add(worth, evidence.collect::<Vec<_>>());
    draft.corroborate(facts);
    // Gone without a log: that it ended is certain, and why is not.
    let log = facts.case.logs.iter().any(|log| log.whose == crate::case::Whose::Rank(root.rank) && log.lines > 0);
    let unexplained =
        !log && !facts.standings.lives(root.rank) && (root.behind == Behind::Absent || facts.gone.contains(&root.rank));
    let how = match root.behind {
        Behind::Absent => "told nothing while the others wait for it",
        Behind::NotLaunched => "did not enqueue what the others did: its host or its Python is stuck",
        Behind::NotStarted => "enqueued it, and its GPU did not run it",
    };
    let mut suspect = draft.say(format!(
        "{} {how}; {} for it.",
        who(Some(root.rank), node.as_deref()),
        ranks(root.waiting, ["waits", "wait"])
    ));
    if unexplained {
        suspect.confidence = suspect.confidence.min(UNEXPLAINED);
    }
    suspect
}

fn lag(rank: u32, group: &Group) -> String {
    let most = group.sides.values().map(|side| side.requested).max().unwrap_or(0);
    match group.sides.get(&rank) {
        None => format!("{}: nothing from rank {rank}, others are at {most}", group.name),
        Some(side) => {
            let done = |side: &crate::counters::Side| {
                side.completed.map_or(String::new(), |done| format!(", completed {done}"))
            };
            let others = group
                .sides
                .iter()
                .filter(|(other, _)| **other != rank)
                .map(|(_, side)| side)
                .max_by_key(|side| side.requested);
            format!(
                "{}: rank {rank} enqueued {}{}; others enqueued {most}{}",
                group.name,
                side.requested,
                done(side),
                others.map_or(String::new(), done)
            )
        }
    }
}

fn node_suspect(facts: &Facts<'_>, source: Source, walk: &Walk, node: Option<&str>) -> Suspect {
    let node = node.map(str::to_owned);
    let mut draft = Draft::new(What::Node, node.clone(), None);
    let text = format!("{} ranks of it are behind and wait for nobody", walk.roots.len());
    draft.add(weight(source, facts), [seen(source, &node, None, text.clone())]);
    draft.say(format!("{}: {text}.", who(None, node.as_deref())))
}

fn silent_suspect(facts: &Facts<'_>, rank: u32) -> Suspect {
    let node = facts.layout.node_of(rank).map(str::to_owned);
    let mut draft = Draft::new(What::Rank, node.clone(), Some(rank)).gpu(facts.layout.gpu_of(rank));
    draft.corroborate(facts);
    draft.say(format!(
        "{} told no time-out while {} others did: it had nothing enqueued that could time out.",
        who(Some(rank), node.as_deref()),
        facts.timed_out.len()
    ))
}

/// A rank that did not come to a barrier, by the word of `tellers` others; one of `several`.
fn late_suspect(facts: &Facts<'_>, (rank, tellers): (u32, usize), several: usize) -> Suspect {
    let node = facts.layout.node_of(rank).map(str::to_owned);
    let mut draft = Draft::new(What::Rank, node.clone(), Some(rank)).gpu(facts.layout.gpu_of(rank));
    let text = format!("{} that rank {rank} did not come to the barrier in time", ranks(tellers, ["says", "say"]));
    draft.add(Weight::Line, [seen(Source::Log, &node, Some(rank), text)]);
    draft.corroborate(facts);
    draft.one_of(
        several,
        format!("{} did not come to a barrier that the others waited at.", who(Some(rank), node.as_deref())),
    )
}

/// All are in it and nothing arrives: the ends of the one group that is oldest.
fn network(facts: &Facts<'_>, source: Source, groups: &[Group], walk: &Walk) -> (Done, Option<Verdict>) {
    let [at] = walk.stuck.as_slice() else {
        return nothing(
            STEP,
            format!("all ranks are level, and {} communicators do not end", walk.stuck.len()),
            "Which of them began it, nothing tells. Go on.",
        );
    };
    let group = &groups[*at];
    let nodes: BTreeSet<&str> = group.sides.keys().filter_map(|rank| facts.layout.node_of(*rank)).collect();
    if nodes.len() < 2 || group.sides.len() == facts.layout.world() {
        return nothing(
            STEP,
            format!("{} does not end, with all its ranks in it", group.name),
            "Its ranks are all there: nothing says where in it. Go on.",
        );
    }
    let several = nodes.len();
    let suspects = group.sides.keys().take(SUSPECTS).map(|rank| {
        let node = facts.layout.node_of(*rank).map(str::to_owned);
        let gpu = facts.layout.gpu_of(*rank);
        let adapter =
            node.as_deref().zip(gpu).and_then(|(node, gpu)| facts.layout.adapter(node, gpu)).map(str::to_owned);
        let mut draft = Draft::new(What::Link, node.clone(), Some(*rank)).gpu(gpu).element(adapter);
        draft.add(
            weight(source, facts),
            [seen(source, &node, Some(*rank), format!("{} does not end, with all its ranks in it", group.name))],
        );
        draft.one_of(
            several,
            format!("{}: one end of {}, which does not end.", who(Some(*rank), node.as_deref()), group.name),
        )
    });
    let suspects = suspects.collect();
    found(
        STEP,
        format!("{} is the oldest that does not end", group.name),
        Verdict { category: Category::HangInNetwork, suspects },
    )
}

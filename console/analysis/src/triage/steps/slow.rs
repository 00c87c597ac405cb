//! Is the job slow because of one GPU or one link, or all of it, or not at all?

use super::{Draft, Verdict, found, nothing, seen, who};
use crate::triage::Category;
use crate::triage::alerts;
use crate::triage::confidence::Weight;
use crate::triage::counters::Movement;
use crate::triage::facts::Facts;
use crate::triage::report::{Done, Kind as What, Source, Suspect};
use crate::triage::rules::{Kind, Part};
use crate::triage::slow::{Late, Link, Who};

const STEP: &str = "slow-ranks";
/// Share of the ranks that must be timed before "nobody stands out" means anything.
const COVERED: f64 = 0.9;

/// Times the usual step that is a stall.
const STALL: f64 = 3.0;

/// The step.
pub(super) fn step(facts: &Facts<'_>) -> (Done, Option<Verdict>) {
    if let Some(backlog) = facts.standings.backlog.as_ref().filter(|_| facts.movement != Movement::Still) {
        let (node, of) = (&backlog.node, Some(backlog.node.clone()));
        let mut draft = Draft::new(What::Link, of.clone(), None);
        draft.add(Weight::Backlog, backlog.waits.iter().map(|text| seen(Source::Counter, &of, None, text.clone())));
        if let Some(text) = &backlog.again {
            draft.add(Weight::Notice, [seen(Source::Counter, &of, None, text.clone())]);
        }
        draft.checked(facts);
        draft.counted(facts);
        let suspect = draft.say(format!("{node}: data of the job waits to get there or away, and nowhere else: its link carries less than the others'."));
        let result = format!("data waits on the links of {node} alone");
        return found(STEP, result, Verdict { category: Category::SlowLink, suspects: vec![suspect] });
    }
    if let Some(timed) = timed(facts) {
        return timed;
    }
    if let Some(watched) = watched(facts) {
        return watched;
    }
    if facts.slow.compared == 0 {
        return nothing(
            STEP,
            "no operation was timed on all ranks of a communicator",
            "Without NCCL Inspector's times nobody can be called slow, or well.",
        );
    }
    even(facts, facts.layout.world())
}

/// What NCCL Inspector's times show.
fn timed(facts: &Facts<'_>) -> Option<(Done, Option<Verdict>)> {
    let world = facts.layout.world();
    let few = facts.slow.late.len() <= (world / 8).max(1);
    if few && !facts.slow.late.is_empty() && facts.movement != Movement::Still {
        let suspects: Vec<Suspect> = facts.slow.late.iter().map(|late| late_suspect(facts, late)).collect();
        let names: Vec<String> = suspects.iter().map(|s| who(s.rank, s.node.as_deref())).collect();
        let result = format!("late in operation after operation: {}", names.join(", "));
        return Some(found(STEP, result, Verdict { category: Category::SlowGpu, suspects }));
    }
    let link = facts.slow.links.first().filter(|_| facts.slow.links.len() <= 2)?;
    let suspects = link.ends.iter().take(super::SUSPECTS).map(|end| link_suspect(facts, link, end)).collect();
    let result = format!("communicator {} takes {:.1} times as long as its peers", link.comm, link.factor);
    Some(found(STEP, result, Verdict { category: Category::SlowLink, suspects }))
}

/// What a watch of the job alerted of.
fn watched(facts: &Facts<'_>) -> Option<(Done, Option<Verdict>)> {
    let standing = alerts::standing(facts);
    let category = alerts::category(standing.first()?.1);
    let mut nodes: Vec<String> = standing.into_iter().map(|(node, _)| node).collect();
    nodes.dedup();
    let suspect = |node: &String| {
        let mut draft = Draft::new(What::Node, Some(node.clone()), None);
        draft.watched(facts);
        draft.checked(facts);
        draft.counted(facts);
        draft.say(format!("{node} was unlike its peers while the job ran."))
    };
    let suspects = nodes.iter().map(suspect).collect();
    let result = format!("the watch found {} unlike its peers", nodes.join(" and "));
    Some(found(STEP, result, Verdict { category, suspects }))
}

fn late_suspect(facts: &Facts<'_>, late: &Late) -> Suspect {
    let (rank, node) = (late.who.rank, Some(late.who.node.clone()));
    let gpu = rank.and_then(|rank| facts.layout.gpu_of(rank));
    let mut draft = Draft::new(What::Gpu, node.clone(), rank).gpu(gpu);
    let text = format!(
        "shortest in {:.0} % of {} operations, {} in a row, at {:.2} of the others' mean: they wait for it",
        late.share * 100.0,
        late.of,
        late.run,
        late.ratio
    );
    draft.add(Weight::Late, [seen(Source::Inspector, &node, rank, text)]);
    let fits = |part| matches!(part, Part::Gpu | Part::GpuMemory | Part::Cooling | Part::Power);
    let notices = facts.events.iter().filter(|event| {
        event.node == node
            && event.source == Source::Kernel
            && fits(event.rule.part)
            && event.rule.kind <= Kind::Notice
            && !matches!(event.rule.kind, Kind::Consequence)
    });
    let notices: Vec<_> =
        notices.filter(|event| event.gpu.is_none() || event.gpu == gpu).map(|event| event.evidence()).take(3).collect();
    if !notices.is_empty() {
        draft.add(Weight::Notice, notices);
    }
    draft.checked(facts);
    draft.counted(facts);
    draft.say(format!(
        "{}, GPU {}: the others wait for it in every collective.",
        who(rank, node.as_deref()),
        gpu.map_or("unknown".to_owned(), |gpu| gpu.to_string())
    ))
}

fn link_suspect(facts: &Facts<'_>, link: &Link, end: &Who) -> Suspect {
    let node = Some(end.node.clone());
    let gpu = end.rank.and_then(|rank| facts.layout.gpu_of(rank));
    let adapter = gpu.and_then(|gpu| facts.layout.adapter(&end.node, gpu)).map(str::to_owned);
    let mut draft = Draft::new(What::Link, node.clone(), end.rank).gpu(gpu).element(adapter);
    let weight = if link.told && link.ends.len() == 1 { Weight::LinkTold } else { Weight::LinkOneOf };
    let text = format!(
        "communicator {} takes {:.1} times as long as others of its size{}",
        link.comm,
        link.factor,
        if link.told { ", and so do all transfers that touch this end" } else { "" }
    );
    draft.add(weight, [seen(Source::Inspector, &node, end.rank, text)]);
    draft.checked(facts);
    draft.counted(facts);
    let sentence = format!(
        "{}: its link carries less than its peers', {:.1} times as long for the same bytes.",
        who(end.rank, Some(&end.node)),
        link.factor
    );
    draft.one_of(if link.told { link.ends.len().max(1) } else { link.ends.len().max(2) }, sentence)
}

/// Nobody stands out: `none` when everybody was looked at and the job gets on.
fn even(facts: &Facts<'_>, world: usize) -> (Done, Option<Verdict>) {
    let result = format!("{} of {world} ranks timed, and none stands out", facts.slow.compared);
    let covered = facts.slow.compared as f64 >= COVERED * world as f64 && world > 0;
    if !covered {
        return nothing(STEP, result, "The others were not timed: they may be the slow ones.");
    }
    if facts.hung() || facts.movement == Movement::Still || facts.roots().next().is_some() {
        return nothing(STEP, result, "Times are of finished operations only, and the job shows other trouble.");
    }
    if !facts.slow.links_compared && facts.layout.nodes().len() > 1 {
        return nothing(
            STEP,
            result,
            "Communicators between nodes could not be compared with others of their kind: a slow link is not excluded.",
        );
    }
    let mut steps: Vec<f64> =
        facts.case.logs.iter().flat_map(|log| log.steps.iter().filter_map(|step| step.seconds)).collect();
    let usual = crate::triage::clock::median(&mut steps);
    if steps.is_empty() || steps.iter().any(|seconds| *seconds > STALL * usual) {
        return nothing(
            STEP,
            result,
            "Operations are even, and steps are not told or stall now and then: what stalls between operations is not seen here.",
        );
    }
    let mut draft = Draft::new(What::None, None, None);
    draft.add(Weight::Even, [seen(Source::Inspector, &None, None, result.clone())]);
    if facts.movement == Movement::Moved {
        draft.add(Weight::Moving, [seen(Source::Ras, &None, None, "the job got on between two polls".to_owned())]);
    }
    let suspect = draft.say("No rank and no link stands out; if the job is slow, all of it is.");
    found(STEP, result, Verdict { category: Category::None, suspects: vec![suspect] })
}

//! Is it the program: ranks that ask for different things, an exception, an order that cannot work?

use std::collections::BTreeSet;

use super::{Draft, Verdict, found, nothing, seen, who};
use crate::confidence::Weight;
use crate::events::Event;
use crate::facts::Facts;
use crate::report::{Done, Kind as What, Source, Suspect};
use muster_logs::Category;
use muster_logs::fault::Fault;
use muster_logs::{Field, Kind, Part};

const STEP: &str = "program-errors";
/// The rule for any exception, whatever it is about.
const WRAPS: &str = "python-exception";
/// The rule for a process that loads data and was killed.
const LOADER: &str = "dataloader-killed";

/// The step.
pub(super) fn step(facts: &Facts<'_>) -> (Done, Option<Verdict>) {
    if let Some(mismatch) = mismatch(facts) {
        return found(
            STEP,
            "ranks ask for different things in the same collective",
            Verdict { category: Category::UserBug, suspects: mismatch },
        );
    }
    let odd = odd(facts);
    if !odd.is_empty() {
        return found(
            STEP,
            "ranks say that another asks for other things than they do",
            Verdict { category: Category::UserBug, suspects: odd },
        );
    }
    if let Some(exception) = exception(facts) {
        return found(
            STEP,
            "the program itself ended with an error",
            Verdict { category: Category::UserBug, suspects: vec![exception] },
        );
    }
    let circle = facts.walks.iter().find(|(_, _, walk)| !walk.circle.is_empty());
    if let Some((source, _, walk)) = circle {
        let ranks: Vec<String> = walk.circle.iter().take(8).map(u32::to_string).collect();
        let text = format!("ranks {} wait for each other in a circle", ranks.join(", "));
        let nodes: BTreeSet<Option<&str>> = walk.circle.iter().map(|rank| facts.layout.node_of(*rank)).collect();
        let node = nodes.first().copied().flatten().filter(|_| nodes.len() == 1).map(str::to_owned);
        let mut draft = Draft::new(What::UserCode, node, None);
        draft.add(super::hang::weight(*source, facts), [seen(*source, &None, None, text.clone())]);
        let suspect = draft.say(format!("The {text}: they enter their communicators in different orders."));
        return found(STEP, text, Verdict { category: Category::UserBug, suspects: vec![suspect] });
    }
    nothing(
        STEP,
        "no exception of the program and no mismatch between ranks",
        "Nothing speaks for the program: go on to the machines.",
    )
}

fn mismatch(facts: &Facts<'_>) -> Option<Vec<Suspect>> {
    let first = facts.mismatches.iter().find(|mismatch| !mismatch.odd.is_empty()).or(facts.mismatches.first())?;
    let source = if facts.case.dumps.is_empty() { Source::Log } else { Source::FlightRecorder };
    let text = |rank: String| {
        format!(
            "{rank} asks for {}, the others of group {} for {}, in collective {}",
            first.asked, first.group, first.others, first.seq
        )
    };
    let one = |rank: Option<u32>| {
        let node = rank.and_then(|rank| facts.layout.node_of(rank)).map(str::to_owned);
        let mut draft = Draft::new(What::UserCode, node.clone(), rank);
        let who = rank.map_or("one side".to_owned(), |rank| format!("rank {rank}"));
        draft.add(Weight::Mismatch, [seen(source, &node, rank, text(who.clone()))]);
        draft.say(format!("The program: {}. No machine is at fault.", text(who)))
    };
    if first.odd.is_empty() {
        return Some(vec![one(None)]);
    }
    Some(first.odd.iter().take(super::SUSPECTS).map(|rank| one(Some(*rank))).collect())
}

/// Ranks that ask for other things than the others, by the others' word.
fn odd(facts: &Facts<'_>) -> Vec<Suspect> {
    let named = facts.named(Category::UserBug);
    let several = named.len();
    let suspect = |(rank, tellers): (u32, usize)| {
        let node = facts.layout.node_of(rank).map(str::to_owned);
        let mut draft = Draft::new(What::UserCode, node.clone(), Some(rank));
        let say = super::ranks(tellers, ["says", "say"]);
        let text = format!(
            "{say} that rank {rank} asks for another operation or size than {}",
            if tellers == 1 { "it does" } else { "they do" }
        );
        draft.add(Weight::Complaints, [seen(Source::Log, &node, Some(rank), text.clone())]);
        draft.add(Weight::NoHardware, []);
        draft.one_of(several, format!("The program: {text}. No machine is at fault."))
    };
    named.into_iter().take(super::SUSPECTS).map(suspect).collect()
}

/// Lines that another rule knows for something else: an exception only wraps what they tell of.
fn told_better(facts: &Facts<'_>) -> BTreeSet<(usize, u64)> {
    let better = |event: &&Event<'_>| {
        event.rule.id != WRAPS && event.rule.kind <= Kind::Consequence && event.rule.category != Some(Category::UserBug)
    };
    facts.events.iter().filter(better).map(|event| event.place).collect()
}

/// Whether memory ran out somewhere in the job, or room where this rank runs, and not clearly after its error: that made it.
fn ran_out(facts: &Facts<'_>, error: &Event<'_>) -> bool {
    let here = |event: &Event<'_>| {
        let rank = error.rank.is_some() && event.rank == error.rank;
        rank || (error.node.is_some() && event.node == error.node)
    };
    let later = |event: &Event<'_>| {
        let times = event.at_s.zip(error.at_s);
        times.is_some_and(|(at, error_at)| at - event.error_s > error_at + error.error_s)
            || (event.place.0 == error.place.0 && event.place.1 > error.place.1)
    };
    facts.roots().filter(|event| event.rule.category != Some(Category::UserBug)).any(|event| match event.rule.fault {
        Some(Fault::OutOfMemory) => !later(event),
        Some(Fault::DiskFull) => here(event) && !later(event),
        _ => event.rule.id == LOADER && here(event) && !later(event),
    })
}

/// The first exception of the program, where no earlier cause is known.
fn exception(facts: &Facts<'_>) -> Option<Suspect> {
    let of_program = |event: &&Event<'_>| {
        matches!(event.rule.kind, Kind::Error | Kind::Critical)
            && matches!(event.rule.part, Part::Program | Part::Settings)
            && event.rule.category.is_none_or(|category| category == Category::UserBug)
            && event.source == Source::Log
    };
    let mut errors: Vec<&Event<'_>> = facts.roots().filter(of_program).collect();
    let better = told_better(facts);
    errors.retain(|event| event.rule.id != WRAPS || !better.contains(&event.place));
    // Where clocks can tell, only what comes before others notice.
    let first = errors.iter().filter_map(|event| event.at_s.map(|at| at + event.error_s)).min_by(f64::total_cmp);
    errors.retain(|event| event.at_s.zip(first).is_none_or(|(at, first)| at - event.error_s <= first));
    errors.sort_by_key(|event| (event.rule.kind, u8::MAX - event.rule.specificity));
    let lead = errors.first()?;
    if ran_out(facts, lead) {
        return None;
    }
    let ranks: BTreeSet<u32> =
        errors.iter().filter(|event| event.rule.id == lead.rule.id).filter_map(|event| event.rank).collect();
    let rank = ranks.first().copied().filter(|_| ranks.len() == 1);
    let node = rank.and(lead.node.clone());
    let mut draft = Draft::new(What::UserCode, node.clone(), rank);
    for event in errors.iter().filter(|event| rank.is_none() || event.rank == rank).take(4) {
        draft.add(Weight::Line, [event.evidence()]);
    }
    if let Some(line) = lead.seen.fields.get(Field::File).zip(lead.seen.fields.get(Field::Line)) {
        draft = draft.element(Some(format!("{}:{}", line.0, line.1)));
    }
    if ranks.len() > 1 && ranks.len() * 2 > facts.layout.world() {
        // The same from most ranks is no accident of one machine.
        let text = format!("{} of {} ranks tell the same error", ranks.len(), facts.layout.world());
        draft.add(Weight::MostRanks, [seen(Source::Log, &None, None, text)]);
    }
    draft.corroborate(facts);
    let alone = facts.roots().all(|event| event.rule.kind != Kind::Critical || event.rule.part == Part::Program);
    if alone {
        draft.add(Weight::NoHardware, []);
    }
    let on = match ranks.len() {
        0 => String::new(),
        1 => format!(", {}", who(rank, node.as_deref())),
        several => format!(", on {several} ranks"),
    };
    Some(draft.say(format!("The program{on}: {}", lead.rule.meaning)))
}

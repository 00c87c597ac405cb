//! The whole of triage: the steps in their order, and what is said at the end.

use std::collections::BTreeSet;

use super::action::{action, drain};
use super::case::{Case, Whose};
use super::confidence::SURE;
use super::events::short;
use super::facts::Facts;
use super::report::{Done, Ranks, Report, Source, Subject, Suspect, Told};
use super::steps::{STEPS, Verdict, others};
use super::tested;
use muster_logs::Category;
use muster_logs::{Kind, Rules};
use muster_run::is_host;

/// Events that the report shows.
const TIMELINE: usize = 500;
/// Most nodes that a command spells out.
const COMMAND_NODES: usize = 8;
/// Confidence under which nothing is called by its category.
pub(super) const GUESS: f64 = 0.5;

/// Diagnoses a job from what its files said.
#[must_use]
pub fn diagnose(case: &Case, rules: &Rules) -> Report {
    concluded(&Facts::of(case, rules), &[])
}

/// The verdict over what was worked out; what a person has marked as `wrong` is passed over.
pub(super) fn concluded(facts: &Facts<'_>, wrong: &[Subject]) -> Report {
    let (mut steps, mut marked_wrong) = (Vec::new(), Vec::new());
    let mut verdict: Option<Verdict> = None;
    for step in STEPS {
        let (mut done, found) = step(facts);
        let found = found.and_then(|found| without(found, wrong, &mut done, &mut marked_wrong));
        steps.push(done);
        // What is hardly likely does not end the search; the likelier of two is kept.
        if let Some(found) = found {
            let better = verdict.as_ref().is_none_or(|kept| top(&found.suspects) > top(&kept.suspects));
            verdict = if better { Some(found) } else { verdict };
            if verdict.as_ref().is_some_and(|kept| top(&kept.suspects) >= GUESS) {
                break;
            }
        }
    }
    let likely = verdict.as_ref().is_some_and(|verdict| top(&verdict.suspects) >= GUESS);
    let (category, mut suspects) = match verdict {
        Some(verdict) if likely => (verdict.category, verdict.suspects),
        Some(verdict) => (Category::Undecided, verdict.suspects),
        None => (Category::Undecided, Vec::new()),
    };
    suspects.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    let command = command(&facts.case.nodes());
    let (mut verdict, mut next) = (Verdict { category, suspects }, None);
    match &facts.case.tested {
        Some(tested) => {
            steps.extend(tested::steps(tested));
            next = tested::weigh(tested, &mut verdict, (wrong, &mut marked_wrong));
        }
        None => steps.push(offline(category, (&verdict.suspects, command.as_deref()))),
    }
    let Verdict { category, suspects } = verdict;
    let unknown = suspects.is_empty() && marked_wrong.is_empty() && category == Category::Undecided;
    let next = next.or_else(|| suspects.first().and_then(|first| advice(facts, first)));
    let next = next.or_else(|| others::advice(facts).filter(|_| unknown));
    Report {
        schema: "muster.triage",
        version: 1,
        action: next.unwrap_or_else(|| action(category, suspects.first())),
        drain: drain(category, suspects.first()),
        offline: command,
        timeline: timeline(facts),
        ranks: ranks(facts),
        clocks: facts.clocks.report(&facts.layout),
        not_looked_at: super::missing::missing(facts),
        category,
        suspects,
        marked_wrong,
        steps,
    }
}

/// What the failed check itself advises, where nothing but health checks speaks against the suspect.
fn advice(facts: &Facts<'_>, suspect: &Suspect) -> Option<String> {
    let only_checks = suspect.evidence.iter().all(|seen| seen.source == Source::Check);
    let ailing = facts.health.of_node(suspect.node.as_deref().filter(|_| only_checks)).next()?;
    Some(format!("On {}: {}.", ailing.node, ailing.check.next))
}

/// A verdict without the suspects that a person has marked as wrong; nothing where that is all of them.
fn without(
    mut verdict: Verdict,
    wrong: &[Subject],
    done: &mut Done,
    marked_wrong: &mut Vec<Suspect>,
) -> Option<Verdict> {
    let (left, marked): (Vec<Suspect>, Vec<Suspect>) =
        verdict.suspects.into_iter().partition(|suspect| !wrong.contains(&suspect.subject()));
    if marked.is_empty() {
        verdict.suspects = left;
        return Some(verdict);
    }
    marked_wrong.extend(marked);
    verdict.suspects = left;
    if verdict.suspects.is_empty() {
        "A person has marked this as wrong: go on.".clone_into(&mut done.why);
        return None;
    }
    Some(verdict)
}

fn top(suspects: &[Suspect]) -> f64 {
    suspects.iter().map(|suspect| suspect.confidence).fold(0.0, f64::max)
}

fn offline(category: Category, (suspects, command): (&[Suspect], Option<&str>)) -> Done {
    let sure = top(suspects) >= SURE;
    let command = command.unwrap_or("muster triage offline");
    let (result, why) = match category {
        Category::None => ("not needed", "Nothing is wrong with machines or program.".to_owned()),
        Category::Undecided => ("not run", format!("Next, once the job has left its nodes: {command}")),
        _ if sure => ("not needed", "The cause is named with confidence.".to_owned()),
        _ => (
            "not run",
            format!(
                "The cause is likely and not certain; before the machine is drained, once the job has left: {command}"
            ),
        ),
    };
    Done { step: "offline-diagnosis", result: result.to_owned(), why }
}

/// The command that tests `nodes` without the job; the list is left to the reader where it is long.
fn command(nodes: &[String]) -> Option<String> {
    let short = nodes.len() <= COMMAND_NODES && nodes.iter().all(|node| is_host(node));
    let list = if short { nodes.join(",") } else { "NODES".to_owned() };
    (nodes.len() > 1).then(|| format!("muster triage offline -w {list}"))
}

fn timeline(facts: &Facts<'_>) -> Vec<Told> {
    let worth = |event: &&super::events::Event<'_>| {
        !matches!(event.rule.kind, Kind::Benign | Kind::Progress) && !event.foreign && event.in_window(&facts.end)
    };
    let told = |event: &super::events::Event<'_>| Told {
        at: event.at_s,
        node: event.node.clone(),
        rank: event.rank,
        source: event.source,
        event: event.rule.id.clone(),
        text: short(&event.seen.text),
    };
    facts.events.iter().filter(worth).take(TIMELINE).map(told).collect()
}

fn ranks(facts: &Facts<'_>) -> Ranks {
    let mut seen: BTreeSet<u32> = facts.case.dumps.iter().map(|dump| dump.rank).collect();
    seen.extend(
        facts
            .case
            .logs
            .iter()
            .filter_map(|log| if let Whose::Rank(rank) = log.whose { (log.lines > 0).then_some(rank) } else { None }),
    );
    let polled = facts.case.polls.iter().flat_map(|poll| poll.comms.iter().flat_map(|comm| &comm.ranks));
    seen.extend(polled.filter_map(|rank| facts.layout.rank_of(&rank.process)));
    let n = facts.layout.world();
    let missing = facts.layout.members.keys().copied().filter(|rank| !seen.contains(rank)).collect();
    Ranks { n, seen: seen.len(), missing }
}

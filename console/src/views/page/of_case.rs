//! The page of a triage case: the verdict, who is suspected by what, how it was found, when what happened, what nobody looked at.

use muster_logs::Category;
use muster_logs::Kind;
use muster_page::{Cell, Entry, Events, Fact, Fold, Line, Mark, Names, Page, Part, Section, State, Table};
use muster_playbook::report::rfc3339;
use muster_triage::SURE;
use muster_triage::matrix::{Cell as Stand, Matrix};
use muster_triage::overview::{Moment, Overview};
use muster_triage::report::{Evidence, Report, Suspect};

use super::head::program;
use crate::out::counted;

/// Suspects, events, evidence of one suspect, and lines of ranks on the page.
const SUSPECTS: usize = 40;
const EVENTS: usize = 300;
const EVIDENCE: usize = 30;
const RANKS: usize = 60;
/// Nodes in the chart of events.
const ROWS: usize = 16;
/// Communicators in the table of ranks.
const COLUMNS: usize = 12;

/// The page of the case called `name`.
#[must_use]
pub fn case_page(name: &str, case: &Overview) -> Page {
    let report = &case.report;
    let section = |id, title: &str, parts| Section { id, title: title.to_owned(), parts };
    let mut suspects: Vec<Part> =
        report.suspects.iter().take(SUSPECTS).enumerate().map(|(at, one)| suspect(at, one, true)).collect();
    if report.suspects.len() > SUSPECTS {
        suspects.push(Part::Text(format!("And {} less likely ones in the JSON.", report.suspects.len() - SUSPECTS)));
    }
    let wrong = report.marked_wrong.iter().enumerate().map(|(at, one)| suspect(SUSPECTS + at, one, false));
    let sections = vec![
        section("verdict", "Verdict", verdict(report)),
        section("suspects", "Suspects", suspects),
        section("wrong", "Marked as wrong by a person", wrong.collect()),
        section("steps", "How it was found", vec![steps(report)]),
        section("ranks", "Ranks", ranks(report, &case.matrix)),
        section("timeline", "Time line", timeline(case)),
        section("undecided", "Not looked at", missing(report)),
        section("clocks", "Clocks", clocks(report)),
    ];
    let fact = |label, value: String| Fact { label, value };
    let state = state(report);
    Page {
        kind: "Report of a failed job",
        title: format!("{name}: {} ({})", report.category.name(), report.category.meaning()),
        state: Some(state),
        counts: Vec::new(),
        undecided: String::new(),
        facts: vec![
            fact("Case", name.to_owned()),
            fact("Category", report.category.name().to_owned()),
            fact("Nodes", case.nodes.len().to_string()),
            fact("Ranks", format!("{} of {} seen", report.ranks.seen, report.ranks.n)),
            fact("Last step (UTC)", case.last_step_s.map_or_else(|| "not known".to_owned(), at)),
        ],
        notes: Vec::new(),
        sections: sections.into_iter().filter(|section| !section.parts.is_empty()).collect(),
        program: program(),
    }
}

fn state(report: &Report) -> State {
    let sure = report.suspects.iter().any(|suspect| suspect.confidence >= SURE);
    match report.category {
        Category::None => State::Pass,
        Category::Undecided => State::Unknown,
        _ if sure => State::Fail,
        _ => State::Unknown,
    }
}

fn verdict(report: &Report) -> Vec<Part> {
    let said = report.suspects.first().map_or("Nothing that was read names a cause.", |first| first.sentence.as_str());
    let mut parts =
        vec![Part::List(vec![Line { state: Some(state(report)), text: said.to_owned(), next: report.action.clone() }])];
    let tests = report.offline.iter().filter(|_| wants_tests(report));
    parts.extend(report.drain.iter().chain(tests).map(|command| Part::Code(command.clone())));
    parts
}

/// Whether the nodes are to be tested without the job: not where the cause is certain, or where they have been.
fn wants_tests(report: &Report) -> bool {
    report.steps.iter().any(|step| step.step == "offline-diagnosis" && step.result == "not run")
}

fn suspect(at: usize, suspect: &Suspect, stands: bool) -> Part {
    let state = match suspect.confidence >= SURE {
        _ if !stands => State::NotApplicable,
        true => State::Fail,
        false => State::Warn,
    };
    let names = [
        suspect.node.clone(),
        suspect.rank.map(|rank| format!("rank {rank}")),
        suspect.gpu.map(|gpu| format!("GPU {gpu}")),
        suspect.element.clone(),
    ];
    let names: Vec<String> = names.into_iter().flatten().collect();
    let mut parts = Vec::new();
    if !suspect.evidence.is_empty() {
        let mut table = Table::new("What it rests on", &["seen in", "when (UTC)", "node", "#rank", "what"]);
        table.rows = suspect.evidence.iter().take(EVIDENCE).map(evidence).collect();
        if suspect.evidence.len() > EVIDENCE {
            table.left_out = format!("{} further lines are in the JSON.", suspect.evidence.len() - EVIDENCE);
        }
        parts.push(Part::Table(table));
    }
    Part::Entry(Entry {
        id: format!("suspect-{}", at + 1),
        state,
        title: if names.is_empty() { "the program".to_owned() } else { names.join(", ") },
        names: Names::default(),
        lines: vec![Line::of(format!("{} Confidence {:.2}.", suspect.sentence, suspect.confidence))],
        parts,
    })
}

fn evidence(line: &Evidence) -> Vec<Cell> {
    vec![
        Cell::text(line.source.title()),
        Cell::text(line.at.map_or_else(String::new, at)),
        Cell::text(line.node.clone().unwrap_or_default()),
        Cell::number(line.rank.map(|rank| rank.to_string())),
        Cell::text(&line.text),
    ]
}

fn steps(report: &Report) -> Part {
    let mut table = Table::new("Steps of the procedure, in order", &["step", "result", "why it went on or ended"]);
    for step in &report.steps {
        table.rows.push(vec![Cell::text(step.step), Cell::text(&step.result), Cell::text(&step.why)]);
    }
    Part::Table(table)
}

/// How far each rank is: one line for ranks that stand alike.
fn ranks(report: &Report, matrix: &Matrix) -> Vec<Part> {
    let ranks = &report.ranks;
    let mut parts = vec![Part::Text(format!("Of {} ranks, {} told something.", ranks.n, ranks.seen))];
    if !ranks.missing.is_empty() {
        let missing = Names::of(ranks.missing.iter().map(|rank| format!("rank{rank}")));
        parts.push(Part::Text("Nothing was seen of:".to_owned()));
        parts.push(Part::Names(missing));
    }
    let told: Vec<usize> = (0..matrix.columns.len()).filter(|at| matrix.columns[*at].tells).take(COLUMNS).collect();
    if told.is_empty() {
        return parts;
    }
    let columns: Vec<&str> =
        ["ranks", "nodes"].into_iter().chain(told.iter().map(|at| matrix.columns[*at].name.as_str())).collect();
    let mut table = Table::new("Communicators in which not all ranks are level", &columns);
    for line in matrix.folded.iter().take(RANKS) {
        let who = Names::of(line.ranks.iter().map(|rank| format!("rank{rank}")));
        let nodes = Names::of(line.nodes.iter().cloned());
        let cells = told.iter().map(|at| Cell::text(line.cell(*at).map_or_else(String::new, stand)));
        table.rows.push([Cell::Names(who), Cell::Names(nodes)].into_iter().chain(cells).collect());
    }
    if matrix.folded.len() > RANKS {
        table.left_out = format!("{} further lines are left out.", matrix.folded.len() - RANKS);
    }
    parts.push(Part::Table(table));
    parts
}

/// As the screen has it.
fn stand(cell: Stand) -> String {
    match cell {
        Stand::Absent => "silent".to_owned(),
        Stand::Behind(by) => format!("-{by}"),
        Stand::Gpu(by) => format!("GPU -{by}"),
        Stand::Waits(_) => "waits".to_owned(),
        Stand::Level => "level".to_owned(),
    }
}

fn timeline(case: &Overview) -> Vec<Part> {
    if case.moments.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(
        "Events on the common clock",
        &["when (UTC)", "node", "#rank", "seen in", "event", "line", "#times"],
    );
    for moment in case.moments.iter().take(EVENTS) {
        table.rows.push(vec![
            Cell::text(moment.at_s.map_or_else(|| "no time".to_owned(), at)),
            Cell::text(moment.node.clone().unwrap_or_default()),
            Cell::number(moment.rank.map(|rank| rank.to_string())),
            Cell::text(moment.source.title()),
            Cell::text(event(moment)),
            Cell::text(&moment.text),
            Cell::Number(moment.count.to_string()),
        ]);
    }
    let left = case.moments.len().saturating_sub(EVENTS) + case.left_out;
    if left > 0 {
        table.left_out = format!("{left} later events are left out.");
    }
    let title = counted(case.moments.len().min(EVENTS), "event", "events");
    let chart = chart(case).map(Part::Events);
    let table = Part::Fold(Fold { title, open: case.moments.len() <= RANKS, parts: vec![Part::Table(table)] });
    chart.into_iter().chain([table]).collect()
}

/// The events around the failure, one row per node: suspects first, the others in the order of their first event.
fn chart(case: &Overview) -> Option<Events> {
    let timed: Vec<(f64, &Moment)> =
        case.moments.iter().filter_map(|moment| moment.at_s.map(|at| (at, moment))).collect();
    let first = |seen: &dyn Fn(&Moment) -> bool| {
        timed.iter().filter(|(_, moment)| seen(moment)).map(|(at, _)| *at).min_by(f64::total_cmp)
    };
    // What lies before the last step of a job of days would squeeze the rest together.
    let begin = first(&is_cause).into_iter().chain(case.last_step_s).min_by(f64::total_cmp);
    let zero = begin.or_else(|| first(&|_| true))?;
    let within: Vec<_> = timed.iter().filter(|(at, _)| *at >= zero).collect();
    let mut rows: Vec<&str> = Vec::new();
    let suspected = case.report.suspects.iter().filter_map(|suspect| suspect.node.as_deref());
    for name in suspected.chain(within.iter().filter_map(|(_, moment)| moment.node.as_deref())) {
        if !rows.contains(&name) && within.iter().any(|(_, moment)| moment.node.as_deref() == Some(name)) {
            rows.push(name);
        }
    }
    let nodes = rows.len();
    rows.truncate(ROWS);
    let mark = |(at, moment): &&(f64, &Moment)| {
        let row = rows.iter().position(|name| moment.node.as_deref() == Some(*name))?;
        Some(Mark { row, at: at - zero, cause: is_cause(moment) })
    };
    let marks: Vec<Mark> = within.iter().filter_map(mark).collect();
    // One or two are read faster in the table.
    if marks.len() < 3 {
        return None;
    }
    let last = marks.iter().map(|mark| mark.at).max_by(f64::total_cmp)?;
    let causes = marks.iter().filter(|mark| mark.cause).count();
    let drawn = counted(marks.len(), "event", "events");
    let shown = counted(rows.len(), "node", "nodes");
    let left = match (nodes - rows.len(), timed.len() - marks.len()) {
        (_, 0) => String::new(),
        (0, left) => format!(" {} not drawn.", counted(left, "other event is", "other events are")),
        (more, left) => format!(
            " {} and {} not drawn.",
            counted(more, "further node", "further nodes"),
            counted(left, "event", "events")
        ),
    };
    Some(Events {
        title: "Who told what when".to_owned(),
        said: format!("{drawn} of {shown} within {last:.0} s, {causes} of which can be the cause."),
        caption: format!("Time counts from {} (UTC), on the common clock.{left}", at(zero)),
        rows: rows.into_iter().map(str::to_owned).collect(),
        marks,
        last_step: case.last_step_s.map(|last| last - zero),
    })
}

/// Whether what the line tells can be the cause.
fn is_cause(moment: &Moment) -> bool {
    matches!(moment.kind, Kind::Critical | Kind::Error | Kind::Distributed)
}

fn event(moment: &Moment) -> String {
    let weight = match moment.kind {
        Kind::Critical => "critical: ",
        _ => "",
    };
    if moment.meaning.is_empty() { moment.rule.clone() } else { format!("{weight}{}", moment.meaning) }
}

fn missing(report: &Report) -> Vec<Part> {
    let lines: Vec<Line> = report.not_looked_at.iter().map(|missing| Line::of(missing.as_str())).collect();
    if lines.is_empty() { Vec::new() } else { vec![Part::List(lines)] }
}

fn clocks(report: &Report) -> Vec<Part> {
    let mut table = Table::new("Clocks against the median node's", &["node", "#offset, s", "#error, s"]);
    let skewed = report.clocks.iter().filter(|clock| clock.offset_s.abs() > clock.error_s);
    for clock in skewed.take(RANKS) {
        let number = |value: f64| Cell::Number(format!("{value:.2}"));
        table.rows.push(vec![Cell::text(&clock.node), number(clock.offset_s), number(clock.error_s)]);
    }
    if table.rows.is_empty() {
        return Vec::new();
    }
    table.left_out = "Corrected in the time line. Clocks that agree within their errors are left out.".to_owned();
    vec![Part::Table(table)]
}

/// Epoch seconds as people write them.
fn at(seconds: f64) -> String {
    rfc3339((seconds.max(0.0) * 1e3) as u64)
}

#[cfg(test)]
mod tests {
    use muster_triage::report::{Done, Ranks};

    use super::*;

    /// The commands below the verdict of a case whose offline diagnosis has this `result`.
    fn commands(result: &str) -> Vec<String> {
        let step = Done { step: "offline-diagnosis", result: result.to_owned(), why: String::new() };
        let report = Report {
            schema: "muster.triage",
            version: 1,
            category: Category::SlowGpu,
            action: String::new(),
            drain: Some("muster drain -w n7".to_owned()),
            offline: Some("muster triage offline -w n7,n8".to_owned()),
            suspects: Vec::new(),
            marked_wrong: Vec::new(),
            timeline: Vec::new(),
            ranks: Ranks::default(),
            clocks: Vec::new(),
            steps: vec![step],
            not_looked_at: Vec::new(),
        };
        let command = |part: Part| if let Part::Code(command) = part { Some(command) } else { None };
        verdict(&report).into_iter().filter_map(command).collect()
    }

    #[test]
    fn tests_without_the_job_are_proposed_only_where_they_are_still_to_be_made() {
        assert_eq!(commands("not run"), ["muster drain -w n7", "muster triage offline -w n7,n8"]);
        for result in ["not needed", "undecided"] {
            assert_eq!(commands(result), ["muster drain -w n7"], "{result}");
        }
    }
}

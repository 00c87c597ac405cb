//! What is said of which nodes: the gravest first, those of which the same is said together, those that pass in one line.

use std::collections::HashMap;

use muster_analysis::State;
use muster_page::{Entry, Fold, Line, Names, Part, Table};
use muster_playbook::report::{NodeReport, RunReport};

use super::head::shown;
use crate::out::counted;

/// Entries on one page; of more, the names are listed.
const ENTRIES: usize = 150;
/// Sentences of one entry.
const SENTENCES: usize = 12;

/// Nodes of which the same is said.
struct Group<'r> {
    state: State,
    nodes: Vec<&'r NodeReport>,
}

/// An entry for each node, or for several of which the same is said.
pub(super) fn parts(report: &RunReport) -> Vec<Part> {
    let groups = groups(report);
    let mut parts: Vec<Part> = groups.iter().take(ENTRIES).enumerate().map(|(at, group)| entry(at, group)).collect();
    if groups.len() > ENTRIES {
        let left: Vec<&NodeReport> = groups[ENTRIES..].iter().flat_map(|group| group.nodes.iter().copied()).collect();
        let nodes = counted(left.len(), "further node", "further nodes");
        parts.push(Part::Text(format!("{nodes} did not pass; the JSON has what is said of each:")));
        parts.push(Part::Names(Names::of(left.iter().map(|node| &node.node))));
    }
    let good: Vec<&NodeReport> = report.nodes.iter().filter(|node| node.state == State::Pass).collect();
    if !good.is_empty() {
        let verb = if good.len() == 1 { "passes" } else { "pass" };
        parts.push(Part::Text(format!("{} {verb}:", counted(good.len(), "node", "nodes"))));
        parts.push(Part::Names(Names::of(good.iter().map(|node| &node.node))));
    }
    parts.extend(remarks(&good));
    parts
}

fn groups(report: &RunReport) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places: HashMap<(State, Vec<&str>), usize> = HashMap::new();
    let mut bad: Vec<&NodeReport> = report.nodes.iter().filter(|node| node.state != State::Pass).collect();
    bad.sort_by_key(|node| std::cmp::Reverse(node.state));
    for node in bad {
        let tails = node.reasons.iter().map(|reason| tail(&node.node, reason)).collect();
        let place = *places.entry((node.state, tails)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.nodes.push(node),
            None => groups.push(Group { state: node.state, nodes: vec![node] }),
        }
    }
    groups
}

/// `reason` without the node's name in front.
pub(super) fn tail<'r>(node: &str, reason: &'r str) -> &'r str {
    match reason.strip_prefix(node) {
        Some(tail) if tail.starts_with([' ', ':']) => tail,
        _ => reason,
    }
}

fn entry(at: usize, group: &Group<'_>) -> Part {
    let Some(first) = group.nodes.first() else { return Part::Text(String::new()) };
    let mut lines = lines(first);
    let mut names = Names::default();
    let title = if group.nodes.len() == 1 {
        first.node.clone()
    } else {
        for line in &mut lines {
            let tail = tail(&first.node, &line.text);
            line.text = tail.strip_prefix(": ").map_or_else(|| each(tail, &line.text), str::to_owned);
        }
        names = Names::of(group.nodes.iter().map(|node| &node.node));
        counted(group.nodes.len(), "node", "nodes")
    };
    if first.undecided && matches!(group.state, State::Warn | State::Fail) {
        lines.push(Line::of("Something else that was asked for could not be decided; see Not decided."));
    }
    Part::Entry(Entry {
        id: format!("entry-{}", at + 1),
        state: shown(group.state),
        title,
        names,
        lines,
        parts: Vec::new(),
    })
}

/// A sentence without its subject, of several nodes.
fn each(tail: &str, whole: &str) -> String {
    if tail == whole { whole.to_owned() } else { format!("Each{tail}") }
}

/// What is said of a node, the gravest first, each with what to do; a state only where it is another one than that of the node.
pub(super) fn lines(node: &NodeReport) -> Vec<Line> {
    let line = |reason: &String| {
        let found = node.findings.iter().find(|finding| finding.sentence == *reason);
        let state = found.map(|finding| finding.state).filter(|state| *state != node.state).map(shown);
        Line { state, text: reason.clone(), next: found.map_or_else(String::new, |finding| finding.next.clone()) }
    };
    let mut lines: Vec<Line> = node.reasons.iter().take(SENTENCES).map(line).collect();
    let left = node.reasons.len().saturating_sub(SENTENCES);
    if left > 0 {
        lines.push(Line::of(format!("And {left} more in the JSON.")));
    }
    lines
}

/// What is worth knowing of nodes that pass.
fn remarks(good: &[&NodeReport]) -> Option<Part> {
    let all: Vec<&String> = good.iter().flat_map(|node| &node.reasons).collect();
    let mut lines: Vec<Line> = all.iter().take(ENTRIES).map(|remark| Line::of(remark.as_str())).collect();
    if all.len() > ENTRIES {
        lines.push(Line::of(format!("And {} more in the JSON.", all.len() - ENTRIES)));
    }
    let title = format!("{} on nodes that pass", counted(all.len(), "remark", "remarks"));
    (!all.is_empty()).then(|| Part::Fold(Fold { title, open: false, parts: vec![Part::List(lines)] }))
}

/// What checks said of one node.
pub(super) fn checks(node: &NodeReport) -> Option<Part> {
    use muster_page::Cell;
    let mut table = Table::new(format!("Checks of {}", node.node), &["check", "answer", "evidence", "next step"]);
    let mut checks: Vec<_> = node.checks.iter().collect();
    checks.sort_by_key(|check| std::cmp::Reverse(check.state));
    for check in checks {
        let cells =
            [Cell::text(&check.id), Cell::State(shown(check.state)), Cell::text(&check.said), Cell::text(&check.next)];
        table.rows.push(cells.into());
    }
    (!table.rows.is_empty()).then_some(Part::Table(table))
}

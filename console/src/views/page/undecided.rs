//! What was not decided, and why: nodes, checks, criteria, pairs, and who left before the end.

use std::collections::BTreeMap;

use muster_analysis::{State, Status};
use muster_page::{Cell, Names, Part, Table};
use muster_playbook::report::RunReport;

use super::verdicts::tail;

/// Rows of the table.
const ROWS: usize = 200;

/// What could not be said, of whom, and why.
type Rows<'r> = BTreeMap<(String, String), Vec<&'r str>>;

/// One table, or the sentence that there is nothing to tell.
pub(super) fn parts(report: &RunReport) -> Vec<Part> {
    let mut rows: Rows<'_> = Rows::new();
    of_nodes(report, &mut rows);
    of_checks(report, &mut rows);
    for left in &report.dropped {
        let what = format!("steps after {}", left.step);
        rows.entry((what, bare(&left.node, &left.reason))).or_default().push(&left.node);
    }
    for criterion in report.criteria.iter().filter(|criterion| criterion.status != Status::Ok) {
        let repeats = criterion.repeatability.map_or_else(String::new, |own| format!(", repeatability {own:.3}"));
        let why = format!("{}; {} nodes{repeats}", meaning(criterion.status), criterion.n);
        rows.entry((format!("{} as a criterion", criterion.metric), why)).or_default();
    }
    if let Some(network) = &report.network {
        for open in &network.undecided {
            rows.entry((format!("pairs in {}", open.metric), open.found.reason.clone())).or_default();
        }
        for left in network.run.iter().flat_map(|run| &run.left_out) {
            rows.entry(("pairs".to_owned(), bare(&left.node, &left.reason))).or_default().push(&left.node);
        }
    }
    if rows.is_empty() {
        return vec![Part::Text("Everything that was asked for was decided.".to_owned())];
    }
    vec![table(rows)]
}

fn table(rows: Rows<'_>) -> Part {
    let mut table = Table::new("What was not decided, and why", &["what", "nodes", "why"]);
    let all = rows.len();
    for ((what, why), nodes) in rows.into_iter().take(ROWS) {
        let names = if nodes.is_empty() { Cell::Nothing } else { Cell::Names(Names::of(nodes)) };
        table.rows.push(vec![Cell::text(what), names, Cell::text(why)]);
    }
    if all > ROWS {
        table.left_out = format!("{} further rows are left out.", all - ROWS);
    }
    Part::Table(table)
}

fn of_nodes<'r>(report: &'r RunReport, rows: &mut Rows<'r>) {
    for node in &report.nodes {
        let open =
            node.findings.iter().filter(|f| matches!(f.state, State::Unknown | State::NotRun) && f.source != "check");
        let mut said = false;
        for finding in open.filter(|finding| !finding.sentence.is_empty()) {
            let why = bare(&node.node, &finding.sentence);
            rows.entry((finding.component.clone(), why)).or_default().push(&node.node);
            said = true;
        }
        if !said && matches!(node.state, State::Unknown | State::NotRun) {
            for reason in node.reasons.iter().take(1) {
                let why = bare(&node.node, reason);
                rows.entry(("node".to_owned(), why)).or_default().push(&node.node);
            }
        }
    }
}

fn of_checks<'r>(report: &'r RunReport, rows: &mut Rows<'r>) {
    for node in &report.nodes {
        for check in node.checks.iter().filter(|check| matches!(check.state, State::Unknown | State::NotRun)) {
            let why = if check.said.is_empty() { "no answer".to_owned() } else { check.said.clone() };
            rows.entry((format!("check {}", check.id), why)).or_default().push(&node.node);
        }
    }
}

/// A sentence without the node's name in front: what is said of several nodes shares a row.
fn bare(node: &str, sentence: &str) -> String {
    tail(node, sentence).trim_start_matches([':', ' ']).to_owned()
}

/// What a status keeps from being said.
pub(super) const fn meaning(status: Status) -> &'static str {
    match status {
        Status::Ok => "enough nodes agree",
        Status::Provisional => "too few nodes for a quorum: it accuses nobody",
        Status::NoConsensus => "fewer than half of the nodes agree: give a reference",
        Status::Bimodal => "two clusters of nodes: which of them is normal cannot be said from this metric",
        Status::NotRepeatable => "healthy nodes scatter too widely for alpha",
    }
}

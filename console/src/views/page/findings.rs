//! The numbers behind the sentences, as one table.

use muster_page::{Cell, Fold, Part, Table};
use muster_playbook::report::{FindingReport, RunReport};

use super::head::{changed, shown};
use crate::out::counted;

/// Rows of the table.
const ROWS: usize = 400;
/// Metrics named in one row.
const NAMED: usize = 3;

/// All findings that have a number, the gravest first.
pub(super) fn fold(report: &RunReport) -> Option<Part> {
    let of = report.nodes.iter().flat_map(|node| node.findings.iter().map(|finding| (node.node.as_str(), finding)));
    let mut all: Vec<(&str, &FindingReport)> = of.filter(|(_, finding)| finding.value.is_some()).collect();
    all.sort_by_key(|(_, finding)| std::cmp::Reverse(finding.state));
    let columns = [
        "node",
        "state",
        "component",
        "measured by",
        "#value",
        "#peers' median",
        "#change",
        "#peers",
        "compared with",
        "since (UTC)",
    ];
    let mut table = Table::new("Findings with numbers", &columns);
    table.rows = all.iter().take(ROWS).map(|(node, finding)| row(node, finding)).collect();
    if all.len() > ROWS {
        table.left_out = format!("{} further findings are in the JSON.", all.len() - ROWS);
    }
    let title = format!("The numbers behind {}", counted(all.len(), "finding", "findings"));
    (!all.is_empty()).then(|| Part::Fold(Fold { title, open: all.len() <= 12, parts: vec![Part::Table(table)] }))
}

fn row(node: &str, finding: &FindingReport) -> Vec<Cell> {
    let number = |value: Option<f64>| Cell::number(value.zip(finding.unit).map(|(value, unit)| unit.show(value)));
    let mut of: Vec<&str> = finding.of.iter().take(NAMED).map(String::as_str).collect();
    let more = format!("and {} more", finding.of.len().saturating_sub(NAMED));
    if finding.of.len() > NAMED {
        of.push(&more);
    }
    let with = match (&finding.criterion, finding.group.as_str()) {
        (Some(id), _) => Cell::Code(id.clone()),
        (None, "") => Cell::text("all nodes"),
        (None, group) => Cell::text(group),
    };
    vec![
        Cell::text(node),
        Cell::State(shown(finding.state)),
        Cell::text(&finding.component),
        Cell::text(if of.is_empty() { finding.source.clone() } else { of.join(", ") }),
        number(finding.value),
        number(finding.peer_median),
        changed(finding.value, finding.peer_median),
        Cell::number(finding.peers.map(|peers| peers.to_string())),
        with,
        Cell::text(finding.since.clone().unwrap_or_default()),
    ]
}

//! By what was judged: every criterion with its version.

use muster_analysis::Status;
use muster_page::{Cell, Fold, Part, Table};
use muster_playbook::report::{CriterionReport, RunReport};

use crate::out::counted;

/// Rows of the table.
const ROWS: usize = 300;
/// Rows that are shown without being asked for.
const SHOWN: usize = 24;

/// One row a criterion, those with nodes outside and those to be doubted first.
pub(super) fn parts(report: &RunReport) -> Vec<Part> {
    let mut all: Vec<&CriterionReport> = report.criteria.iter().filter(|criterion| criterion.n > 0).collect();
    if all.is_empty() {
        return Vec::new();
    }
    all.sort_by_key(|criterion| (criterion.defects.is_empty(), criterion.status == Status::Ok));
    let frozen = all.iter().filter(|criterion| criterion.frozen).count();
    let doubtful = all.iter().filter(|criterion| criterion.status != Status::Ok).count();
    let text = format!(
        "{}: {} learned from this run, {frozen} frozen, {doubtful} not to be trusted fully.",
        counted(all.len(), "criterion", "criteria"),
        all.len() - frozen
    );
    let columns = [
        "metric",
        "version",
        "status",
        "nodes compared",
        "frozen",
        "#nodes",
        "#healthy",
        "#outside",
        "#repeatability",
        "#alpha",
        "#tau",
    ];
    let mut table = Table::new("Criteria", &columns);
    table.rows = all.iter().take(ROWS).map(|criterion| row(criterion)).collect();
    if all.len() > ROWS {
        table.left_out = format!("{} further criteria, all without a node outside, are in the JSON.", all.len() - ROWS);
    }
    let title = format!("Versions of {}", counted(all.len(), "criterion", "criteria"));
    let fold = Fold { title, open: all.len() <= SHOWN, parts: vec![Part::Table(table)] };
    vec![Part::Text(text), Part::Fold(fold)]
}

pub(super) fn row(criterion: &CriterionReport) -> Vec<Cell> {
    let group = if criterion.group.is_empty() { "all" } else { &criterion.group };
    let status = match criterion.status {
        Status::Ok => Cell::text("ok"),
        other => Cell::text(other.name().replace('_', " ")),
    };
    vec![
        Cell::text(&criterion.metric),
        Cell::Code(criterion.id.clone()),
        status,
        Cell::text(group),
        Cell::text(if criterion.frozen { "yes" } else { "no" }),
        Cell::Number(criterion.n.to_string()),
        Cell::Number(criterion.healthy.to_string()),
        Cell::Number(criterion.defects.len().to_string()),
        Cell::number(criterion.repeatability.map(|value| format!("{value:.3}"))),
        Cell::Number(criterion.alpha.to_string()),
        Cell::Number(criterion.tau.to_string()),
    ]
}

//! The page of one metric of a run.

use std::collections::BTreeSet;

use muster_analysis::{Sample, State};
use muster_page::{Cell, Page, Part, Section, Table, Values, ValuesOf};
use muster_playbook::report::{NodeReport, RunReport, Summary, VerdictReport};

use super::of_run::{Ran, reading};
use super::{convicted, criteria, curves, head};
use crate::out::counted;

/// Nodes in the table and in the chart of values.
const ROWS: usize = 400;

/// All metrics of a run, as [`metric_page`] calls them.
#[must_use]
pub fn metrics(report: &RunReport) -> BTreeSet<&str> {
    report.nodes.iter().flat_map(|node| &node.verdicts).map(|verdict| verdict.of.metric.as_str()).collect()
}

/// What every node showed in the metric called `benchmark/name`, beside what it was judged by. `None` where no node has it.
#[must_use]
pub fn metric_page(ran: &Ran<'_>, metric: &str) -> Option<Page> {
    let report = of(ran.report, metric);
    if report.nodes.is_empty() {
        return None;
    }
    let ran = Ran { report: &report, pairs: None, ..*ran };
    let section = |id, title: &str, parts| Section { id, title: title.to_owned(), parts };
    let sections = vec![
        section("evidence", "Distributions", charts(&ran, metric)),
        section("nodes", "Nodes", nodes(&ran)),
        section("criteria", "Criteria", criteria::parts(&report)),
        section("reading", "How to read this", vec![reading()]),
    ];
    let title = format!("{metric} on {}", counted(report.nodes.len(), "node", "nodes"));
    Some(head::page(&report, ("Report of a metric", title), sections))
}

/// The report of this metric alone; the state of a node is that of the metric.
fn of(whole: &RunReport, metric: &str) -> RunReport {
    let own = |node: &NodeReport| {
        let verdicts: Vec<VerdictReport> = node.verdicts.iter().filter(|v| v.of.metric == metric).cloned().collect();
        let state = verdicts.iter().map(|verdict| verdict.state).max()?;
        let findings = node.findings.iter().filter(|f| f.of.iter().any(|of| of == metric)).cloned().collect();
        Some(NodeReport {
            node: node.node.clone(),
            state,
            undecided: false,
            reasons: Vec::new(),
            components: Vec::new(),
            findings,
            verdicts,
            checks: Vec::new(),
        })
    };
    let nodes: Vec<NodeReport> = whole.nodes.iter().filter_map(own).collect();
    RunReport {
        summary: Summary::of(nodes.iter().map(|node| (node.state, false))),
        criteria: whole.criteria.iter().filter(|criterion| criterion.metric == metric).cloned().collect(),
        nodes,
        run: whole.run.clone(),
        schema: whole.schema.clone(),
        version: whole.version,
        network: None,
        alarms: Vec::new(),
        dropped: Vec::new(),
        rejudged: whole.rejudged.clone(),
        demo: whole.demo.clone(),
        cost: None,
    }
}

/// The distributions of each group, and the values of all nodes in order.
fn charts(ran: &Ran<'_>, metric: &str) -> Vec<Part> {
    let outside = convicted::convicted(ran.report);
    let mut parts: Vec<Part> = outside.iter().filter_map(|of| curves::curves(ran, of)).map(Part::Curves).collect();
    if parts.is_empty() {
        let own = ran.judged.iter().filter(|judged| judged.criterion.metric.path() == metric);
        parts.extend(own.map(curves::plain).map(Part::Curves));
    }
    parts.extend(values(ran, metric).map(Part::Values));
    parts
}

fn values(ran: &Ran<'_>, metric: &str) -> Option<Values> {
    let all = ran.report.nodes.iter().flat_map(|node| node.verdicts.iter().map(move |verdict| (node, verdict)));
    let mut unit = None;
    let mut of: Vec<ValuesOf> = Vec::new();
    for (node, verdict) in all {
        if let Some((value, _)) =
            verdict.value.zip(verdict.of.unit).filter(|(_, own)| *unit.get_or_insert(*own) == *own)
        {
            of.push(ValuesOf { name: node.node.clone(), place: 0, value, state: head::shown(verdict.state) });
        }
    }
    of.sort_by(|a, b| a.value.total_cmp(&b.value));
    let count = of.len();
    let ends = of.first().zip(of.last()).map(|(low, high)| (low.value, high.value));
    let outside =
        of.iter().filter(|of| matches!(of.state, muster_page::State::Fail | muster_page::State::Warn)).count();
    of.iter_mut().enumerate().for_each(|(at, of)| of.place = at + 1);
    let every = count.div_ceil(ROWS);
    let outside_first: Vec<usize> = of.iter().filter(|of| is_shown_outside(of)).take(ROWS).map(|of| of.place).collect();
    of.retain(|of| of.place % every == 0 || outside_first.binary_search(&of.place).is_ok());
    let (unit, (low, high)) = unit.zip(ends)?;
    let said = format!(
        "{} from {} to {}; {outside} outside.",
        counted(count, "node", "nodes"),
        unit.show(low),
        unit.show(high)
    );
    Some(Values {
        title: format!("Medians of {metric}"),
        caption: format!("Every node in the order of its median. {said}"),
        said,
        unit,
        of,
        count,
    })
}

const fn is_shown_outside(of: &ValuesOf) -> bool {
    matches!(of.state, muster_page::State::Fail | muster_page::State::Warn)
}

fn nodes(ran: &Ran<'_>) -> Vec<Part> {
    let mut all: Vec<(&str, &VerdictReport)> = ran
        .report
        .nodes
        .iter()
        .flat_map(|node| node.verdicts.iter().map(|verdict| (node.node.as_str(), verdict)))
        .collect();
    all.sort_by(|a, b| {
        let similar = |verdict: &VerdictReport| verdict.similarity.unwrap_or(-1.0);
        (a.1.state == State::Pass, std::cmp::Reverse(a.1.state))
            .cmp(&(b.1.state == State::Pass, std::cmp::Reverse(b.1.state)))
            .then_with(|| similar(a.1).total_cmp(&similar(b.1)))
    });
    let mut table =
        Table::new("Nodes, the worst first", &["node", "state", "#median", "#change", "#similarity", "engine"]);
    for (node, verdict) in all.iter().take(ROWS) {
        let of = &verdict.of;
        let usual =
            curves::judged(ran, (&of.metric, &of.engine), node).and_then(|judged| judged.criterion.sample.as_ref());
        table.rows.push(vec![
            Cell::text(*node),
            Cell::State(head::shown(verdict.state)),
            Cell::number(verdict.value.zip(of.unit).map(|(value, unit)| unit.show(value))),
            head::changed(verdict.value, usual.map(Sample::median)),
            Cell::number(verdict.similarity.map(|similarity| format!("{similarity:.3}"))),
            Cell::text(&of.engine),
        ]);
    }
    if all.len() > ROWS {
        table.left_out =
            format!("{} further nodes, the most similar to the criterion, are left out.", all.len() - ROWS);
    }
    vec![Part::Table(table)]
}

//! The page of one node of a run.

use muster_analysis::Sample;
use muster_page::{Cell, Entry, Names, Page, Part, Section, Table};
use muster_playbook::report::{NodeReport, RunReport, Summary};

use super::of_run::{Ran, evidence, reading};
use super::{criteria, curves, findings, hardware, head, undecided, verdicts};

/// Rows of the table of metrics; of more, those that pass are left out first.
const ROWS: usize = 800;

/// What is said of `node`, every metric, every check, everything that is known of its hardware. `None` where it took no part.
#[must_use]
pub fn node_page(ran: &Ran<'_>, node: &str) -> Option<Page> {
    let report = of(ran.report, node)?;
    let own = report.nodes.first()?;
    let ran = Ran { report: &report, pairs: None, ..*ran };
    let entry = Entry {
        id: "node".to_owned(),
        state: head::shown(own.state),
        title: own.node.clone(),
        names: Names::default(),
        lines: verdicts::lines(own),
        parts: vec![components(own)],
    };
    let mut said = vec![Part::Entry(entry)];
    said.extend(findings::fold(&report));
    let mut machine = hardware::parts(&report, ran.facts);
    machine.extend(hardware::all(node, ran.facts));
    let section = |id, title: &str, parts| Section { id, title: title.to_owned(), parts };
    let sections = vec![
        section("verdicts", "Verdict", said),
        section("evidence", "Evidence", evidence(&ran)),
        section("metrics", "All metrics", metrics(&ran, own)),
        section("checks", "Checks", verdicts::checks(own).into_iter().collect()),
        section("coverage", "What ran", ran.coverage.parts(&report)),
        section("undecided", "Not decided", undecided::parts(&report)),
        section("criteria", "Criteria", criteria::parts(&report)),
        section("hardware", "Hardware", machine),
        section("reading", "How to read this", vec![reading()]),
    ];
    let title = format!("{node} in {}", report.run.playbook);
    Some(head::page(&report, ("Report of a node", title), sections))
}

/// The report of this node alone.
fn of(whole: &RunReport, node: &str) -> Option<RunReport> {
    let own = whole.nodes.iter().find(|own| own.node == node)?.clone();
    let judges = |metric: &str, id: &str| {
        own.verdicts.iter().any(|v| v.of.metric == metric && v.of.criterion.as_ref().is_some_and(|of| of.id == id))
    };
    Some(RunReport {
        run: whole.run.clone(),
        schema: whole.schema.clone(),
        summary: Summary::of([(own.state, own.undecided)]),
        criteria: whole.criteria.iter().filter(|criterion| judges(&criterion.metric, &criterion.id)).cloned().collect(),
        dropped: whole.dropped.iter().filter(|left| left.node == node).cloned().collect(),
        rejudged: whole.rejudged.clone(),
        // Pairs and alarms speak of other nodes as well.
        network: None,
        alarms: whole.alarms.clone(),
        demo: whole.demo.clone(),
        nodes: vec![own],
        version: whole.version,
        cost: None,
    })
}

fn components(node: &NodeReport) -> Part {
    let mut table = Table::new("Components", &["component", "state", "could have lost and still pass"]);
    for own in &node.components {
        let lost = own.resolution.map(|share| format!("{:.1} %", share * 100.0));
        table.rows.push(vec![
            Cell::text(&own.component),
            Cell::State(head::shown(own.state)),
            Cell::text(lost.unwrap_or_default()),
        ]);
    }
    Part::Table(table)
}

fn metrics(ran: &Ran<'_>, node: &NodeReport) -> Vec<Part> {
    let columns =
        ["metric", "state", "#median", "#criterion's median", "#change", "#similarity", "#alpha", "#nodes compared"];
    let mut table = Table::new("Every metric beside its criterion", &columns);
    let mut all: Vec<_> = node.verdicts.iter().collect();
    all.sort_by_key(|verdict| std::cmp::Reverse(verdict.state));
    for verdict in all.iter().take(ROWS) {
        let of = &verdict.of;
        let judged = curves::judged(ran, (&of.metric, &of.engine), &node.node);
        let usual = judged.and_then(|judged| judged.criterion.sample.as_ref()).map(Sample::median);
        let number = |value: Option<f64>| Cell::number(value.zip(of.unit).map(|(value, unit)| unit.show(value)));
        table.rows.push(vec![
            Cell::text(&of.metric),
            Cell::State(head::shown(verdict.state)),
            number(verdict.value),
            number(usual),
            head::changed(verdict.value, usual),
            Cell::number(verdict.similarity.map(|similarity| format!("{similarity:.3}"))),
            Cell::number(of.alpha.map(|alpha| alpha.to_string())),
            Cell::number(of.criterion.as_ref().map(|criterion| criterion.n.to_string())),
        ]);
    }
    if all.len() > ROWS {
        table.left_out = format!("{} further metrics, the mildest, are in the JSON.", all.len() - ROWS);
    }
    if table.rows.is_empty() { Vec::new() } else { vec![Part::Table(table)] }
}

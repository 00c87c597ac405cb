//! The page of a run.

use muster_analysis::assess::Judged;
use muster_analysis::{Sample, State};
use muster_page::{Page, Part, Section};
use muster_playbook::report::RunReport;
use muster_run::Record;
use muster_wire::MetricId;

use super::{convicted, coverage::Coverage, criteria, curves, findings, hardware, head, pairs, undecided, verdicts};
use crate::judge::Pairs;
use crate::out::counted;

/// Charts on one page; of more convicted metrics those that findings name come first.
pub(super) const CHARTS: usize = 24;

/// What a page is made from.
pub struct Ran<'r> {
    /// What was found.
    pub report: &'r RunReport,
    /// What was judged, in the order of the report's criteria.
    pub judged: &'r [Judged],
    /// Records of the nodes, without their series.
    pub facts: &'r [Record],
    /// Which node ran what.
    pub coverage: &'r Coverage,
    /// Pairs of nodes, where the run has any.
    pub pairs: Option<&'r Pairs>,
    /// The newest sample of a node, for charts.
    pub sample: &'r dyn Fn(&str, &MetricId) -> Option<Sample>,
}

/// Verdicts, evidence, pairs, coverage, what was not decided, criteria, hardware.
#[must_use]
pub fn run_page(ran: &Ran<'_>) -> Page {
    let report = ran.report;
    let title = format!("{} on {}", report.run.playbook, counted(report.nodes.len(), "node", "nodes"));
    let mut said = verdicts::parts(report);
    said.extend(findings::fold(report));
    let section = |id, title: &str, parts| Section { id, title: title.to_owned(), parts };
    let sections = vec![
        section("verdicts", "Verdicts", said),
        section("evidence", "Evidence", evidence(ran)),
        section("pairs", "Pairs of nodes", pairs::parts(report, ran.pairs)),
        section("coverage", "What ran where", ran.coverage.parts(report)),
        section("undecided", "Not decided", undecided::parts(report)),
        section("criteria", "Criteria", criteria::parts(report)),
        section("hardware", "Hardware", hardware::parts(report, ran.facts)),
        section("reading", "How to read this", vec![reading()]),
    ];
    let page = head::page(report, ("Report of a run", title), sections);
    match &report.network {
        Some(network) => head::with_network(page, network),
        None => page,
    }
}

/// A chart for each metric that convicted somebody.
pub(super) fn evidence(ran: &Ran<'_>) -> Vec<Part> {
    let all = convicted::convicted(ran.report);
    let drawn: Vec<Part> = all.iter().filter_map(|of| curves::curves(ran, of)).take(CHARTS).map(Part::Curves).collect();
    let mut parts = Vec::new();
    if !all.is_empty() {
        let metrics = counted(all.len(), "metric", "metrics");
        let shown =
            if drawn.len() < all.len() { format!("; {} of them are drawn here", drawn.len()) } else { String::new() };
        parts.push(Part::Text(format!(
            "{metrics} put at least one node outside what its peers show{shown}. Each curve says which share of a node's steps \
             was at or below a value; a numbered curve is the sample that convicted."
        )));
    }
    parts.extend(drawn);
    parts
}

/// The words of the page, for who has never seen one.
pub(super) fn reading() -> Part {
    let lines = [
        "pass, warn, fail: as good as its peers; worse, without enough evidence to accuse; worse with enough evidence, or the \
         benchmark failed.",
        "unknown, not run, not applicable: measured and not decidable; asked for and not run; cannot apply to this hardware. None of \
         them is a pass.",
        "Change: the difference of the metric itself from the median of its peers, in percent of that median.",
        "Similarity: how much of a node's distribution agrees with the criterion, from 0 to 1, slower steps alone counting. At \
         alpha or below it is outside.",
        "Criterion: the distribution that stands for the healthy nodes of a group. Its version is the identity of its content: \
         equal versions are equal criteria on any machine.",
        "Everything here is computed from the stored samples; `muster export --ticket` gives those behind every failure.",
    ];
    Part::List(lines.into_iter().map(muster_page::Line::of).collect())
}

/// Whether a state is one that convicts.
pub(super) const fn is_outside(state: State) -> bool {
    matches!(state, State::Warn | State::Fail)
}

//! Which metrics put nodes outside what their peers show, and in which order they are worth a chart.

use std::collections::{BTreeSet, HashMap};

use muster_analysis::State;
use muster_playbook::report::{RunReport, VerdictReport};

use super::of_run::{CHARTS, is_outside};

/// Convicted samples in one chart.
pub(super) const CURVES: usize = 6;

/// A metric as one group of nodes was judged by it, with the nodes outside it.
pub(super) struct Convicted<'r> {
    pub(super) metric: &'r str,
    pub(super) engine: &'r str,
    /// The worst first.
    pub(super) nodes: Vec<(&'r str, &'r VerdictReport)>,
}

/// Metrics with nodes outside them: those that findings name first, then by the worst of their nodes.
pub(super) fn convicted(report: &RunReport) -> Vec<Convicted<'_>> {
    let named: BTreeSet<&str> = report
        .nodes
        .iter()
        .flat_map(|node| &node.findings)
        .filter(|finding| is_outside(finding.state))
        .flat_map(|finding| &finding.of)
        .map(String::as_str)
        .collect();
    let mut places: HashMap<(&str, &str, Option<&str>), usize> = HashMap::new();
    let mut all: Vec<Convicted<'_>> = Vec::new();
    for node in &report.nodes {
        for verdict in node.verdicts.iter().filter(|verdict| is_outside(verdict.state)) {
            let (of, criterion) = (&verdict.of, verdict.of.criterion.as_ref().map(|criterion| criterion.id.as_str()));
            let place = *places.entry((&of.metric, &of.engine, criterion)).or_insert(all.len());
            match all.get_mut(place) {
                Some(known) => known.nodes.push((&node.node, verdict)),
                None => {
                    all.push(Convicted { metric: &of.metric, engine: &of.engine, nodes: vec![(&node.node, verdict)] })
                }
            }
        }
    }
    let grave = |verdict: &VerdictReport| (verdict.state == State::Warn, verdict.similarity.unwrap_or(-1.0));
    for known in &mut all {
        known.nodes.sort_by(|a, b| order(grave(a.1), grave(b.1)));
    }
    all.sort_by(|a, b| {
        let unnamed = |known: &Convicted<'_>| !named.contains(known.metric);
        let worst = |known: &Convicted<'_>| known.nodes.first().map_or((true, 1.0), |node| grave(node.1));
        unnamed(a).cmp(&unnamed(b)).then_with(|| order(worst(a), worst(b)))
    });
    all
}

fn order(a: (bool, f64), b: (bool, f64)) -> std::cmp::Ordering {
    a.0.cmp(&b.0).then_with(|| a.1.total_cmp(&b.1))
}

/// Nodes whose samples the charts of a run need.
#[must_use]
pub fn wanted(report: &RunReport) -> BTreeSet<String> {
    let all = convicted(report);
    let nodes = all.iter().take(CHARTS).flat_map(|known| known.nodes.iter().take(CURVES));
    nodes.map(|(node, _)| (*node).to_owned()).collect()
}

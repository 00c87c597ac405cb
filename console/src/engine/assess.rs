//! From the records of a run to what is said of each node. Recomputed from raw samples every time.

use std::collections::{BTreeMap, BTreeSet};

use muster_analysis::{Learned, NodeState, Observation, Params, State, convict, learn};
use muster_playbook::report::NodeFindings;
use muster_store::{Record, Run};
use muster_wire::{Direction, MetricId, Outcome, Unit};

use super::LINK;

/// What is said of a run.
#[derive(Debug, Default)]
pub struct Assessment {
    /// One per metric, in metric order.
    pub learned: Vec<Learned>,
    /// One per node, in the run's order.
    pub nodes: Vec<NodeFindings>,
}

/// The last record of each piece of work of each node.
type Latest<'a> = BTreeMap<(&'a str, &'a str), &'a Record>;

/// Judges a run from its records.
#[must_use]
pub fn assess<'a>(run: &Run, records: impl IntoIterator<Item = &'a Record>, params: &Params) -> Assessment {
    let latest: Latest<'_> = records.into_iter().map(|r| ((r.node.as_str(), r.work.as_str()), r)).collect();
    let mut learned = Vec::new();
    for (metric, (unit, direction)) in metrics(&latest) {
        let observed: Vec<(String, Observation)> =
            run.nodes.iter().filter_map(|node| Some((node.clone(), observation(&latest, node, &metric)?))).collect();
        learned.push(learn(&metric, unit, direction, &observed, params));
    }
    let mut judged: BTreeMap<String, NodeState> =
        convict(&learned).into_iter().map(|state| (state.node.clone(), state)).collect();
    let widespread = widespread(run, &latest);
    let nodes = run.nodes.iter().map(|node| finding(node, judged.remove(node), &latest, &widespread)).collect();
    Assessment { learned, nodes }
}

fn metrics(latest: &Latest<'_>) -> BTreeMap<MetricId, (Unit, Direction)> {
    let series = latest.values().flat_map(|record| &record.series);
    series.map(|s| (s.metric.clone(), (s.unit, s.direction))).collect()
}

/// What `node` has for `metric`; nothing where another engine measured it or it cannot apply.
fn observation(latest: &Latest<'_>, node: &str, metric: &MetricId) -> Option<Observation> {
    let Some(record) = latest.get(&(node, metric.benchmark.as_str())) else {
        return Some(Observation::Missing("it did not get that far".into()));
    };
    let mut values = record.series.iter().filter(|s| &s.metric == metric).flat_map(|s| &s.values).copied().peekable();
    if values.peek().is_some() {
        return Some(Observation::from_values(&values.collect::<Vec<_>>()));
    }
    match &record.outcome {
        Outcome::Done | Outcome::NotApplicable(_) => None,
        Outcome::Failed(why) | Outcome::Denied(why) | Outcome::NotRun(why) => Some(Observation::Missing(why.clone())),
    }
}

/// Work that failed on at least half of the nodes that tried: then the work is suspect, not the nodes.
fn widespread<'a>(run: &Run, latest: &Latest<'a>) -> BTreeSet<&'a str> {
    let mut tried: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for record in latest.values().filter(|r| r.work != LINK && run.nodes.contains(&r.node)) {
        let count = tried.entry(record.work.as_str()).or_default();
        count.0 += 1;
        count.1 += usize::from(matches!(record.outcome, Outcome::Failed(_)));
    }
    tried.into_iter().filter(|(_, (all, failed))| *failed > 1 && failed * 2 >= *all).map(|(work, _)| work).collect()
}

fn finding(node: &str, judged: Option<NodeState>, latest: &Latest<'_>, widespread: &BTreeSet<&str>) -> NodeFindings {
    let mut troubles: Vec<(State, String)> = Vec::new();
    for record in of_node(latest, node) {
        // A link that failed and later carried results is history.
        let overtaken = record.work == LINK && of_node(latest, node).any(|r| r.work != LINK && r.at_ms > record.at_ms);
        troubles.extend(sentence(node, record, widespread).filter(|_| !overtaken));
    }
    let Some(mut judged) = judged else {
        return NodeFindings { node: node.to_owned(), troubles, ..NodeFindings::default() };
    };
    if !troubles.is_empty() && judged.state != State::Fail {
        // The trouble says why; sentences about the gaps it left would bury it.
        judged.reasons.clear();
    }
    let (state, reasons) = (judged.state, judged.reasons);
    NodeFindings { node: node.to_owned(), troubles, judged: Some((state, reasons)), verdicts: judged.verdicts }
}

fn of_node<'a>(latest: &Latest<'a>, node: &str) -> impl Iterator<Item = &'a Record> {
    let of_this = latest.range((node, "")..).take_while(|((n, _), _)| *n == node).map(|(_, record)| *record);
    of_this.collect::<Vec<_>>().into_iter()
}

fn sentence(node: &str, record: &Record, widespread: &BTreeSet<&str>) -> Option<(State, String)> {
    let work = record.work.as_str();
    if work == LINK {
        return match &record.outcome {
            Outcome::Failed(why) => Some((State::Unknown, why.clone())),
            _ => None,
        };
    }
    let collected = work.starts_with("collect/");
    match &record.outcome {
        // A look that is denied or absent is no judgement on the node.
        _ if collected => None,
        Outcome::Done | Outcome::NotApplicable(_) => None,
        Outcome::Failed(why) if widespread.contains(work) => {
            Some((State::Unknown, format!("{node}: {work} failed here and on most other nodes: {why}")))
        }
        Outcome::Failed(why) => Some((State::Fail, format!("{node}: {work} failed: {why}"))),
        Outcome::Denied(why) => Some((State::Unknown, format!("{node}: {work} is not permitted: {why}"))),
        Outcome::NotRun(why) => Some((State::Unknown, format!("{node}: {work} did not run: {why}"))),
    }
}

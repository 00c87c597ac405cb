//! From the records of a run to what is said of each node. Recomputed from raw samples every time.

use std::collections::{BTreeMap, BTreeSet};

use muster_analysis::{Learned, NodeState, Observation, State, compare, convict, learn};
use muster_playbook::report::{NodeFindings, PairsReport};
use muster_store::{Record, Run};
use muster_wire::{BUSY, Datum, Direction, FOREIGN_CPU, MetricId, Outcome, Unit, clean};

use super::cores::{WORK, odd_cores};
use super::{Judging, LINK, is_pair, judge_pairs};

/// What is said of a run.
#[derive(Debug, Default)]
pub struct Assessment {
    /// One per metric and group of nodes, in metric order.
    pub learned: Vec<Learned>,
    /// What each of them was judged by.
    pub basis: Vec<Basis>,
    /// One per node, in the run's order.
    pub nodes: Vec<NodeFindings>,
    /// What the pairs of nodes point at, once all were measured.
    pub network: Option<PairsReport>,
    /// By what else than at its time the run is judged; `None` where it is the same.
    pub rejudged: Option<String>,
}

/// What a metric of some nodes was judged by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Basis {
    /// Which nodes.
    pub group: String,
    /// By a frozen criterion, not by what these nodes show themselves.
    pub frozen: bool,
}

/// The last record of each piece of work of each node.
type Latest<'a> = BTreeMap<(&'a str, &'a str), &'a Record>;

/// Judges a run from its records.
#[must_use]
pub fn assess<'a>(run: &Run, records: impl IntoIterator<Item = &'a Record>, judging: &Judging) -> Assessment {
    let (pairs, records): (Vec<&Record>, Vec<&Record>) = records.into_iter().partition(|record| is_pair(record));
    let latest: Latest<'_> = records.into_iter().map(|r| ((r.node.as_str(), r.work.as_str()), r)).collect();
    let groups: Vec<String> = run.nodes.iter().map(|node| judging.group(run.profile, node)).collect();
    let params = &judging.terms.params;
    let (mut learned, mut basis) = (Vec::new(), Vec::new());
    for (metric, (unit, direction)) in metrics(&latest) {
        let mut by_group: BTreeMap<&String, Vec<(String, Observation)>> = BTreeMap::new();
        for (node, group) in run.nodes.iter().zip(&groups) {
            let Some(observed) = observation(&latest, node, &metric) else { continue };
            by_group.entry(group).or_default().push((node.clone(), observed));
        }
        for (group, observed) in by_group {
            let frozen = judging.criterion(group, &metric);
            learned.push(match frozen {
                Some(criterion) => compare(criterion, &observed, params),
                None => learn(&metric, unit, direction, &observed, params),
            });
            basis.push(Basis { group: group.clone(), frozen: frozen.is_some() });
        }
    }
    let mut judged: BTreeMap<String, NodeState> =
        convict(&learned).into_iter().map(|state| (state.node.clone(), state)).collect();
    for learned in learned.iter().zip(&basis).filter(|(_, basis)| basis.frozen).map(|(learned, _)| learned) {
        uphold(learned, &mut judged);
    }
    let widespread = widespread(run, &latest);
    let by_core: Vec<&Record> = run.nodes.iter().filter_map(|n| latest.get(&(n.as_str(), WORK)).copied()).collect();
    let mut cores = odd_cores(&by_core);
    let finding = |node: &String| {
        let own = cores.remove(node.as_str()).unwrap_or_default();
        finding(node, (judged.remove(node), own), &latest, &widespread)
    };
    let mut nodes: Vec<NodeFindings> = run.nodes.iter().map(finding).collect();
    let network = judge_pairs(run, &pairs, &mut nodes, params);
    Assessment { learned, basis, nodes, network, rejudged: judging.rejudged.clone() }
}

/// What a frozen criterion accuses of stays accused: peers that are as bad are no excuse.
fn uphold(learned: &Learned, judged: &mut BTreeMap<String, NodeState>) {
    for verdict in learned.verdicts.iter().filter(|v| v.state == State::Fail && v.similarity.is_some()) {
        let Some(node) = judged.get_mut(&verdict.node) else { continue };
        let own = node.verdicts.iter_mut().filter(|v| v.metric == verdict.metric && v.state != State::Fail);
        for softened in own {
            *softened = verdict.clone();
            softened.reason = format!("{}; by the frozen criterion {}", verdict.reason, learned.criterion.id);
            if node.state != State::Fail {
                (node.state, node.reasons) = (State::Fail, Vec::new());
            }
            node.reasons.push(softened.reason.clone());
        }
    }
}

/// What every node of `run` has for `metric`, in the run's order.
#[must_use]
pub fn observations(run: &Run, records: &[Record], metric: &MetricId) -> Vec<(String, Observation)> {
    let latest: Latest<'_> = records.iter().map(|r| ((r.node.as_str(), r.work.as_str()), r)).collect();
    run.nodes.iter().filter_map(|node| Some((node.clone(), observation(&latest, node, metric)?))).collect()
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
    let values = record.values_of(metric);
    if !values.is_empty() {
        let observed = Observation::from_values(&values);
        return Some(match company(record) {
            Some(why) => observed.disturbed(&why),
            None => observed,
        });
    }
    match &record.outcome {
        Outcome::Done | Outcome::NotApplicable(_) => None,
        Outcome::Failed(why) | Outcome::Denied(why) | Outcome::NotRun(why) => Some(Observation::Missing(why.clone())),
    }
}

/// Who kept the node busy while this was measured: a busy node is not a slow one, and no peer either.
#[must_use]
pub fn company(record: &Record) -> Option<String> {
    let fact = |key: &str| record.facts.iter().find(|f| f.key == key).and_then(|f| f.reading.value());
    let number = |key: &str| match fact(key) {
        Some(Datum::Number(share)) => Some(*share),
        _ => None,
    };
    let share = number(FOREIGN_CPU).filter(|share| *share > BUSY)?;
    let name = match fact("foreign.0.comm") {
        Some(Datum::Text(comm)) => format!(", most of it '{}'", clean(comm, 32)),
        _ => String::new(),
    };
    Some(format!("others used {:.0} % of its CPUs meanwhile{name}", share * 100.0))
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

/// What is said of a node, given what its metrics and its cores said.
fn finding(
    node: &str,
    (judged, mut troubles): (Option<NodeState>, Vec<(State, String)>),
    latest: &Latest<'_>,
    widespread: &BTreeSet<&str>,
) -> NodeFindings {
    for record in of_node(latest, node) {
        // A link that failed and later carried results is history.
        let overtaken = record.work == LINK && of_node(latest, node).any(|r| r.work != LINK && r.at_ms > record.at_ms);
        troubles.extend(sentence(node, record, widespread).filter(|_| !overtaken));
    }
    troubles.extend(disturbance(node, latest));
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

/// One sentence for all benchmarks during which others kept the node busy.
fn disturbance(node: &str, latest: &Latest<'_>) -> Option<(State, String)> {
    let busy: Vec<(&str, String)> =
        of_node(latest, node).filter_map(|record| Some((record.work.as_str(), company(record)?))).collect();
    let (first, why) = busy.first()?;
    let (what, verb) =
        if busy.len() == 1 { ((*first).to_owned(), "is") } else { (format!("{} benchmarks", busy.len()), "are") };
    Some((State::Unknown, format!("{node}: {what} {verb} not judged, {why}: measure again")))
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

#[cfg(test)]
mod tests {
    use super::*;
    use muster_store::RunState;
    use muster_wire::{Fact, Profile, Reading, Series};

    fn record(node: &str, level: f64, foreign: f64) -> Record {
        let series = |name: &str| Series {
            metric: MetricId::new("cpu-gemm", name, "own"),
            unit: Unit::FlopPerSec,
            direction: Direction::HigherIsBetter,
            values: (0..32).map(|i| level * (1.0 + 0.001 * f64::from(i % 7))).collect(),
            warmup: 0,
            started_ns: 0,
        };
        let fact = |key: &str, datum| Fact { key: key.into(), reading: Reading::Value(datum), unit: None };
        Record {
            run: "r".into(),
            node: node.into(),
            work: "cpu-gemm".into(),
            outcome: Outcome::Done,
            at_ms: 1,
            elapsed_ns: 1,
            series: ["a", "b", "c", "d"].map(series).to_vec(),
            facts: vec![
                fact(FOREIGN_CPU, Datum::Number(foreign)),
                fact("foreign.0.comm", Datum::Text("train\u{1b}[2J".into())),
            ],
        }
    }

    fn state_of_n6(foreign: f64) -> NodeFindings {
        let nodes: Vec<String> = (1..=6).map(|n| format!("n{n}")).collect();
        let records: Vec<Record> =
            nodes.iter().map(|n| if n == "n6" { record(n, 40.0, foreign) } else { record(n, 100.0, 0.05) }).collect();
        let run = Run {
            id: "r".into(),
            playbook: "demo".into(),
            profile: Profile::Smoke,
            started_ms: 0,
            ended_ms: None,
            nodes,
            plan: vec!["cpu-gemm".into()],
            state: RunState::Running,
        };
        assess(&run, &records, &Judging::default()).nodes.remove(5)
    }

    #[test]
    fn a_busy_node_is_not_a_slow_node() {
        let (state, _) = state_of_n6(0.05).judged.unwrap();
        assert_eq!(state, State::Fail);
        let busy = state_of_n6(0.5);
        assert_eq!(busy.judged.unwrap().0, State::Unknown);
        assert!(busy.verdicts.iter().all(|v| v.state == State::Unknown && v.value.is_some()));
        let (state, why) = &busy.troubles[0];
        assert_eq!(*state, State::Unknown);
        assert!(why.starts_with("n6: cpu-gemm is not judged, others used 50 % of its CPUs"), "{why}");
        assert!(why.contains("'train") && !why.contains('\u{1b}'), "{why}");
    }
}

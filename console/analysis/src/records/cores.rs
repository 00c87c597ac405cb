//! Which core of a node is slow, by the word of the node's own cores: said beside what the fleet says of the node.

use std::collections::BTreeMap;

use crate::State;
use crate::findings::{Finding, Source};
use crate::within::{Odd, odd_parts};
use muster_run::Record;
use muster_wire::{Component, Datum, Direction, HELD_CPU, describe};

use super::{Evidence, company};

/// The benchmark whose series are one per core, `speed:core3`.
pub const WORK: &str = "cpu-core";
/// Share of the time from which on somebody who held the core explains that it was slow.
const HELD: f64 = 0.05;
/// Nodes from which on a core that is odd on most of them is not odd: it may serve all interrupts everywhere.
const FLEET: usize = 3;

/// The odd cores of a node, each with the metric in which it is worst.
type Worst = BTreeMap<u32, (String, Odd)>;
/// What was measured on each core: its number and its values.
type Parts<'a> = Vec<(String, &'a [f64])>;

/// What is to be said of the cores of each node: what every visit says stands, what only some say is a warning.
pub fn findings(nodes: &[String], evidence: &Evidence<'_>) -> Vec<Finding> {
    let of = |node: &String| evidence.visits(node, WORK).to_vec();
    let visits: Vec<Vec<Option<&Record>>> = nodes.iter().map(of).collect();
    let most = visits.iter().map(Vec::len).max().unwrap_or(0);
    let mut found: BTreeMap<(String, Component), Vec<Finding>> = BTreeMap::new();
    for visit in 0..most {
        let records: Vec<&Record> = visits.iter().filter_map(|own| own.get(visit).copied().flatten()).collect();
        for finding in odd_cores(&records) {
            found.entry((finding.node.clone(), finding.component.clone())).or_default().push(finding);
        }
    }
    let times = |node: &str| visits[nodes.iter().position(|of| of == node).unwrap_or(0)].iter().flatten().count();
    found.into_iter().filter_map(|((node, _), findings)| over_visits(findings, times(&node))).collect()
}

/// One finding of those of several visits, the last.
fn over_visits(mut findings: Vec<Finding>, visits: usize) -> Option<Finding> {
    let (seen, mildest) = (findings.len(), findings.iter().map(|finding| finding.state).min()?);
    let mut last = findings.pop()?;
    if seen < visits && last.state == State::Fail {
        last.state = State::Warn;
        last.sentence = format!("{}; in {seen} of {visits} visits", last.sentence);
    } else {
        last.state = mildest;
    }
    Some(last)
}

/// What is to be said of the cores of each node, from one record of [`WORK`] of each.
#[must_use]
fn odd_cores(records: &[&Record]) -> Vec<Finding> {
    let odd: Vec<(&Record, Worst)> = records.iter().map(|record| (*record, of_node(record))).collect();
    let on = |core: &u32| odd.iter().filter(|(_, cores)| cores.contains_key(core)).count();
    let common = |core: &u32| records.len() >= FLEET && 2 * on(core) > records.len();
    odd.iter()
        .flat_map(|(record, cores)| {
            let own = cores.iter().filter(|(core, _)| !common(core));
            own.map(|(core, (title, odd))| finding(record, *core, title, odd))
        })
        .collect()
}

fn of_node(record: &Record) -> Worst {
    let mut metrics: BTreeMap<_, (Direction, Parts<'_>)> = BTreeMap::new();
    for series in &record.series {
        let described = describe(&series.metric);
        if let Component::Core(core) = described.component {
            let metric = metrics.entry(described.title).or_insert((series.direction, Vec::new()));
            metric.1.push((core.to_string(), &series.values));
        }
    }
    let mut worst = Worst::new();
    for (title, (direction, parts)) in metrics {
        let parts: Vec<(&str, &[f64])> = parts.iter().map(|(core, values)| (core.as_str(), *values)).collect();
        for odd in odd_parts(&parts, direction) {
            let Ok(core) = odd.part.parse() else { continue };
            if worst.get(&core).is_none_or(|(_, known)| known.ratio < odd.ratio) {
                worst.insert(core, (title.to_string(), odd));
            }
        }
    }
    worst
}

fn finding(record: &Record, core: u32, title: &str, odd: &Odd) -> Finding {
    let Odd { ratio, interval: (low, high), others, rounds, .. } = odd;
    let what = format!(
        "{}: core {core} takes {ratio:.2} times as long as {others} other cores of the node ({WORK}, {title}, \
         95 % interval {low:.2} to {high:.2}, {rounds} rounds)",
        record.node
    );
    let key = format!("{HELD_CPU}{core}");
    let held = record.facts.iter().find(|fact| fact.key == key).and_then(|fact| match fact.reading.value() {
        Some(Datum::Number(share)) => Some(*share),
        _ => None,
    });
    let (state, sentence) = match held.filter(|share| *share > HELD) {
        Some(share) => (
            State::Unknown,
            format!("{what}; preempted {:.0} % of the time by other processes: measure again when idle", share * 100.0),
        ),
        None if company(record).is_some() => {
            (State::Unknown, format!("{what}; foreign load during the benchmark: measure again when idle"))
        }
        None => (State::Fail, what),
    };
    Finding::new(&record.node, Component::Core(core), Source::Cores, state, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_wire::{Fact, MetricId, Outcome, Reading, Series, Unit};

    fn record(node: &str, slow: Option<u32>) -> Record {
        let series = |core: u32| Series {
            metric: MetricId::new(WORK, format!("speed:core{core}"), "own"),
            unit: Unit::FlopPerSec,
            direction: Direction::HigherIsBetter,
            values: (0..32)
                .map(|i| (50.0 + f64::from((i + core) % 3)) * if slow == Some(core) { 0.5 } else { 1.0 })
                .collect(),
            warmup: 0,
            started_ns: 0,
        };
        Record {
            run: "r".into(),
            node: node.into(),
            work: WORK.into(),
            outcome: Outcome::Done,
            at_ms: 1,
            elapsed_ns: 1,
            series: (0..8).map(series).collect(),
            facts: Vec::new(),
        }
    }

    #[test]
    fn a_slow_core_is_named_with_its_evidence_and_a_held_one_is_not_blamed() {
        let mut held = record("n2", Some(5));
        let reading = Reading::Value(Datum::Number(0.5));
        held.facts.push(Fact { key: format!("{HELD_CPU}5"), reading, unit: None });
        let records = [record("n1", Some(3)), held, record("n3", None), record("n4", None)];
        let said = odd_cores(&records.iter().collect::<Vec<_>>());
        let [slow, held] = &said[..] else { panic!("{said:?}") };
        let why = &slow.sentence;
        assert_eq!((slow.state, &slow.component), (State::Fail, &Component::Core(3)));
        assert!(why.starts_with("n1: core 3 takes 2.0") && why.contains("7 other cores"), "{why}");
        assert!(why.contains("cpu-core, fp64 GEMM of the core alone") && why.contains("32 rounds"), "{why}");
        let why = &held.sentence;
        assert_eq!((held.node.as_str(), held.state), ("n2", State::Unknown));
        assert!(why.contains("core 5") && why.contains("preempted 50 % of the time"), "{why}");
    }

    #[test]
    fn a_core_that_is_slow_on_most_nodes_is_nobodys_fault() {
        let records = ["n1", "n2", "n3"].map(|node| record(node, Some(0)));
        let said = odd_cores(&records.iter().collect::<Vec<_>>());
        assert_eq!(said, []);
    }
}

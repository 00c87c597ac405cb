//! Which core of a node is slow, by the word of the node's own cores: said beside what the fleet says of the node.

use std::collections::BTreeMap;

use muster_analysis::State;
use muster_analysis::within::{Odd, odd_parts};
use muster_store::Record;
use muster_wire::{Datum, Direction, HELD_CPU};

use super::assess::company;

/// The benchmark whose series are one per core, `speed:core3`.
pub const WORK: &str = "cpu-core";
/// Between a metric's name and its core.
const CORE: &str = ":core";
/// Share of the time from which on somebody who held the core explains that it was slow.
const HELD: f64 = 0.05;
/// Nodes from which on a core that is odd on most of them is not odd: it may serve all interrupts everywhere.
const FLEET: usize = 3;

/// The odd cores of a node, each with the metric in which it is worst.
type Worst = BTreeMap<String, (String, Odd)>;
/// The cores of one metric.
type Parts<'a> = Vec<(&'a str, &'a [f64])>;

/// What is to be said of the cores of each node, from its last record of [`WORK`].
#[must_use]
pub fn odd_cores<'a>(records: &[&'a Record]) -> BTreeMap<&'a str, Vec<(State, String)>> {
    let odd: Vec<(&Record, Worst)> = records.iter().map(|record| (*record, of_node(record))).collect();
    let on = |core: &str| odd.iter().filter(|(_, cores)| cores.contains_key(core)).count();
    let common = |core: &str| records.len() >= FLEET && 2 * on(core) > records.len();
    odd.iter()
        .map(|(record, cores)| {
            let own = cores.iter().filter(|(core, _)| !common(core));
            (record.node.as_str(), own.map(|(core, (metric, odd))| sentence(record, core, metric, odd)).collect())
        })
        .collect()
}

fn of_node(record: &Record) -> Worst {
    let mut metrics: BTreeMap<String, (Direction, Parts<'_>)> = BTreeMap::new();
    for series in &record.series {
        if let Some((name, core)) = series.metric.name.split_once(CORE) {
            let metric = metrics.entry(name.to_owned()).or_insert((series.direction, Vec::new()));
            metric.1.push((core, &series.values));
        }
    }
    let mut worst = Worst::new();
    for (name, (direction, parts)) in metrics {
        for odd in odd_parts(&parts, direction) {
            if worst.get(&odd.part).is_none_or(|(_, known)| known.ratio < odd.ratio) {
                worst.insert(odd.part.clone(), (name.clone(), odd));
            }
        }
    }
    worst
}

fn sentence(record: &Record, core: &str, metric: &str, odd: &Odd) -> (State, String) {
    let Odd { ratio, interval: (low, high), others, rounds, .. } = odd;
    let what = format!(
        "{}: core {core} takes {ratio:.2} times as long as {others} other cores of the node ({WORK}/{metric}, \
         95 % interval {low:.2} to {high:.2}, {rounds} rounds)",
        record.node
    );
    let key = format!("{HELD_CPU}{core}");
    let held = record.facts.iter().find(|fact| fact.key == key).and_then(|fact| match fact.reading.value() {
        Some(Datum::Number(share)) => Some(*share),
        _ => None,
    });
    match held.filter(|share| *share > HELD) {
        Some(share) => {
            (State::Unknown, format!("{what}; others held it {:.0} % of the time: measure again", share * 100.0))
        }
        None if company(record).is_some() => (State::Unknown, format!("{what}; others were at work: measure again")),
        None => (State::Fail, what),
    }
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
        let (state, why) = &said["n1"][0];
        assert_eq!(*state, State::Fail);
        assert!(why.starts_with("n1: core 3 takes 2.0") && why.contains("7 other cores"), "{why}");
        assert!(why.contains("cpu-core/speed") && why.contains("32 rounds"), "{why}");
        let (state, why) = &said["n2"][0];
        assert_eq!(*state, State::Unknown);
        assert!(why.contains("core 5") && why.contains("held it 50 %"), "{why}");
        assert!(said["n3"].is_empty() && said["n4"].is_empty());
    }

    #[test]
    fn a_core_that_is_slow_on_most_nodes_is_nobodys_fault() {
        let records = ["n1", "n2", "n3"].map(|node| record(node, Some(0)));
        let said = odd_cores(&records.iter().collect::<Vec<_>>());
        assert!(said.values().all(Vec::is_empty), "{said:?}");
    }
}

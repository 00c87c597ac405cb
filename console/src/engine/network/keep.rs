//! How is a visit kept, so that matrix, topology and verdict can be made from the store alone?
//!
//! What goes from one node to another is a record of the sender with the work `net-pair/<receiver>`; a pair visited again
//! gets `~2`, `~3` behind that. Where nodes have several rails, the receiver is the endpoint `<node>:rail<k>`, which the same
//! rail of the sender talks to. What a node was for the whole scan (its place in the fabric, why it was left out) is its
//! record `net-pair`.

use std::collections::BTreeMap;

use muster_playbook::PAIRS;
use muster_run::Record;
use muster_wire::{Collective, Datum, Engine, Fact, Outcome, Paired, Reading, Series, Unit};

use super::mesh::Mesh;
use super::round::Visited;
use crate::engine::scan::now_ms;

/// Before the number of a rail in the name of an endpoint.
const RAIL: &str = ":rail";
/// Between the receiver's name and the number of the visit.
const AGAIN: char = '~';
/// Fact of a visit: the uplink it crossed.
pub(super) const UP: &str = "pair.up";
/// Fact of a visit: its round, from 1.
pub(super) const ROUND: &str = "pair.round";
/// Fact of a visit that is a second look: which one, from 1.
pub(super) const LOOK: &str = "pair.look";
/// Facts of a visit: when it began and ended on our clock, and how wrong that may be.
pub(super) const INSTANTS: [&str; 3] = ["pair.begin_ms", "pair.end_ms", "pair.clock_error_ms"];
/// Fact of a node: its leaf and the switches above, nearest first, separated by slashes.
pub(super) const PLACE: &str = "place";

/// Fact of a visit: what loaded the network, where that was not the usual.
pub(super) const ENGINE: &str = "pair.engine";
/// Fact of a node: its place in the ring of a collective, from 0.
pub(super) const RANK: &str = "rank";

/// Fact of a node: where its place is known from.
pub(super) const SOURCE: &str = "place.source";

/// Name of the work from a node to `dst`, visited for the `visit`th time.
pub(super) fn work(dst: &str, visit: usize) -> String {
    if visit <= 1 { format!("{PAIRS}/{dst}") } else { format!("{PAIRS}/{dst}{AGAIN}{visit}") }
}

/// The receiver that a record's work names.
pub(super) fn receiver(record: &Record) -> Option<&str> {
    let rest = record.work.strip_prefix(PAIRS)?.strip_prefix('/')?;
    Some(rest.rsplit_once(AGAIN).filter(|(_, n)| n.parse::<u32>().is_ok()).map_or(rest, |(name, _)| name))
}

/// Name of a node's rail in a matrix; of the node itself where it has one only.
pub(super) fn endpoint(node: &str, rail: Option<usize>) -> String {
    rail.map_or_else(|| node.to_owned(), |rail| format!("{node}{RAIL}{rail}"))
}

/// The endpoint that sent what a record is about.
pub(super) fn sender(record: &Record) -> Option<String> {
    let rail = receiver(record)?.rsplit_once(RAIL).and_then(|(_, rail)| rail.parse().ok());
    Some(endpoint(&record.node, rail))
}

/// Number of times that each pair was visited before, by its first and second endpoint.
pub(super) type Count = BTreeMap<(String, String), usize>;

/// The records of both directions of a visit; none where nothing can be said.
pub(super) fn records(
    mesh: &Mesh,
    (run, round, engine): (&str, usize, Engine),
    visited: &Visited,
    times: usize,
    up: impl Fn(&str, &str) -> Option<String>,
) -> Vec<Record> {
    let Some(outcome) = visited.outcome() else { return Vec::new() };
    let nodes = [&visited.src, &visited.dst];
    let names = nodes.map(|node| endpoint(node, visited.rail));
    let direction = |from: usize| {
        let to = 1 - from;
        let mut facts = vec![number(ROUND, round as f64 + 1.0), text("pair.from", ["connect", "listen"][from])];
        facts.extend(flow(engine).map(|metric| text(ENGINE, metric)));
        facts.extend(up(&names[from], &names[to]).map(|up| text(UP, &up)));
        let own = visited.ends[from].as_ref();
        facts.extend(own.into_iter().flat_map(|end| instants(mesh, nodes[from], end)));
        facts.extend(own.into_iter().flat_map(|end| end.facts.clone()));
        let elapsed = own.map_or(0, |end| end.ended_ns.saturating_sub(end.started_ns));
        Record {
            run: run.to_owned(),
            node: nodes[from].clone(),
            work: work(&names[to], times),
            outcome: outcome.clone(),
            at_ms: now_ms(),
            elapsed_ns: if own.is_some_and(|end| end.started_ns > 0) { elapsed } else { 0 },
            series: series(visited, from),
            facts,
        }
    };
    vec![direction(0), direction(1)]
}

/// What belongs to one direction: what its receiver counted, and what its sender timed or had to send again.
fn series(visited: &Visited, from: usize) -> Vec<Series> {
    let of = |end: usize| visited.ends[end].iter().flat_map(|end| &end.series).cloned();
    let received = |series: &Series| series.unit == Unit::BytesPerSec;
    of(from).filter(|s| !received(s)).chain(of(1 - from).filter(received)).collect()
}

/// When a visit began and ended on our clock.
fn instants(mesh: &Mesh, node: &str, end: &Paired) -> Vec<Fact> {
    let at = |ns: u64| mesh.wall_ms(node, ns).filter(|_| ns > 0);
    let mut facts = Vec::new();
    let [begin, over, wrong] = INSTANTS;
    for (key, ns) in [(begin, end.started_ns), (over, end.ended_ns)] {
        facts.extend(at(ns).map(|(ms, _)| number(key, ms)));
    }
    facts.extend(at(end.ended_ns).map(|(_, error)| number(wrong, error)));
    facts
}

/// What a node was for the whole scan.
pub(super) fn member(
    run: &str,
    node: &str,
    outcome: Outcome,
    place: Option<(String, &str)>,
    rails: &[(usize, String)],
) -> Record {
    let own = place.iter().flat_map(|(place, source)| [text(PLACE, place), text(SOURCE, source)]);
    let rails = rails.iter().map(|(rail, place)| text(&endpoint(PLACE, Some(*rail)), place));
    Record {
        run: run.to_owned(),
        node: node.to_owned(),
        work: PAIRS.to_owned(),
        outcome,
        at_ms: now_ms(),
        elapsed_ns: 0,
        series: Vec::new(),
        facts: own.chain(rails).collect(),
    }
}

/// The metric of an engine in which a visit that failed counts, where it is not throughput.
fn flow(engine: Engine) -> Option<&'static str> {
    match engine {
        Engine::Tcp | Engine::Perftest { .. } => None,
        Engine::AllReduce { .. } => Some(Collective::AllReduce.name()),
    }
}

/// Places of the rails of a node's record, by endpoint.
pub(super) fn rail_places(record: &Record) -> impl Iterator<Item = (String, &str)> {
    record.facts.iter().filter_map(|fact| {
        let rail = fact.key.strip_prefix(PLACE)?.strip_prefix(RAIL)?.parse().ok()?;
        match fact.reading.value()? {
            Datum::Text(place) => Some((endpoint(&record.node, Some(rail)), place.as_str())),
            _ => None,
        }
    })
}

/// The text of a fact.
pub(super) fn told<'a>(record: &'a Record, key: &str) -> Option<&'a str> {
    match record.facts.iter().find(|fact| fact.key == key)?.reading.value()? {
        Datum::Text(text) => Some(text),
        _ => None,
    }
}

/// The number of a fact.
pub(super) fn count(record: &Record, key: &str) -> Option<f64> {
    match record.facts.iter().find(|fact| fact.key == key)?.reading.value()? {
        Datum::Number(number) => Some(*number),
        _ => None,
    }
}

pub(super) fn text(key: &str, value: &str) -> Fact {
    Fact { key: key.to_owned(), reading: Reading::Value(Datum::Text(value.to_owned())), unit: None }
}

pub(super) fn number(key: &str, value: f64) -> Fact {
    Fact { key: key.to_owned(), reading: Reading::Value(Datum::Number(value)), unit: Some(Unit::Count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receiver_is_read_back_from_the_name_of_the_work() {
        let record = |work: String| Record { work, ..member("r", "a", Outcome::Done, None, &[]) };
        for (dst, visit) in [("n004", 1), ("n004", 3), ("weird~name/x", 2)] {
            assert_eq!(receiver(&record(work(dst, visit))), Some(dst));
        }
        assert_eq!(receiver(&record(PAIRS.into())), None);
        let rail = record(work("b:rail3", 2));
        assert_eq!((receiver(&rail), sender(&rail).as_deref()), (Some("b:rail3"), Some("a:rail3")));
        assert_eq!(sender(&record(work("b", 1))).as_deref(), Some("a"));
        assert_eq!(receiver(&record("disk".into())), None);
    }
}

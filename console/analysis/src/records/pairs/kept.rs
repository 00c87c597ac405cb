//! How is a visit kept, so that matrix, topology and verdict can be made from the store alone?
//!
//! What goes from one node to another is a record of the sender with the work `net-pair/<receiver>`; a pair visited again
//! gets `~2`, `~3` behind that. Where nodes have several rails, the receiver is the endpoint `<node>:rail<k>`, which the same
//! rail of the sender talks to. What a node was for the whole scan (its place in the fabric, why it was left out) is its
//! record `net-pair`.

use muster_run::{PAIRS, Record};
use muster_wire::{Datum, Fact, Reading, Unit};

/// Before the number of a rail in the name of an endpoint.
const RAIL: &str = ":rail";
/// Between the receiver's name and the number of the visit.
const AGAIN: char = '~';
/// Fact of a visit: the uplink it crossed.
pub const UP: &str = "pair.up";
/// Fact of a visit: its round, from 1.
pub const ROUND: &str = "pair.round";
/// Fact of a visit that is a second look: which one, from 1.
pub const LOOK: &str = "pair.look";
/// Facts of a visit: when it began and ended on our clock, and how wrong that may be.
pub const INSTANTS: [&str; 3] = ["pair.begin_ms", "pair.end_ms", "pair.clock_error_ms"];
/// Fact of a node: its leaf and the switches above, nearest first, separated by slashes.
pub const PLACE: &str = "place";

/// Fact of a visit: what loaded the network, where that was not the usual.
pub const ENGINE: &str = "pair.engine";
/// Fact of a node: its place in the ring of a collective, from 0.
pub const RANK: &str = "rank";

/// Fact of a node: where its place is known from.
pub const SOURCE: &str = "place.source";

/// Name of the work from a node to `dst`, visited for the `visit`th time.
pub fn work(dst: &str, visit: usize) -> String {
    if visit <= 1 { format!("{PAIRS}/{dst}") } else { format!("{PAIRS}/{dst}{AGAIN}{visit}") }
}

/// The receiver that a record's work names.
pub fn receiver(record: &Record) -> Option<&str> {
    let rest = record.work.strip_prefix(PAIRS)?.strip_prefix('/')?;
    Some(rest.rsplit_once(AGAIN).filter(|(_, n)| n.parse::<u32>().is_ok()).map_or(rest, |(name, _)| name))
}

/// The node that the receiver is, or is a rail of.
pub fn receiving_node(record: &Record) -> Option<&str> {
    let receiver = receiver(record)?;
    let rail = receiver.rsplit_once(RAIL).filter(|(_, rail)| rail.parse::<usize>().is_ok());
    Some(rail.map_or(receiver, |(node, _)| node))
}

/// Name of a node's rail in a matrix; of the node itself where it has one only.
pub fn endpoint(node: &str, rail: Option<usize>) -> String {
    rail.map_or_else(|| node.to_owned(), |rail| format!("{node}{RAIL}{rail}"))
}

/// The endpoint that sent what a record is about.
pub fn sender(record: &Record) -> Option<String> {
    let rail = receiver(record)?.rsplit_once(RAIL).and_then(|(_, rail)| rail.parse().ok());
    Some(endpoint(&record.node, rail))
}

/// Places of the rails of a node's record, by endpoint.
pub fn rail_places(record: &Record) -> impl Iterator<Item = (String, &str)> {
    record.facts.iter().filter_map(|fact| {
        let rail = fact.key.strip_prefix(PLACE)?.strip_prefix(RAIL)?.parse().ok()?;
        match fact.reading.value()? {
            Datum::Text(place) => Some((endpoint(&record.node, Some(rail)), place.as_str())),
            _ => None,
        }
    })
}

/// The text of a fact.
pub fn told<'a>(record: &'a Record, key: &str) -> Option<&'a str> {
    match record.facts.iter().find(|fact| fact.key == key)?.reading.value()? {
        Datum::Text(text) => Some(text),
        _ => None,
    }
}

/// The number of a fact.
pub fn count(record: &Record, key: &str) -> Option<f64> {
    match record.facts.iter().find(|fact| fact.key == key)?.reading.value()? {
        Datum::Number(number) => Some(*number),
        _ => None,
    }
}

/// A text as a fact.
pub fn text(key: &str, value: &str) -> Fact {
    Fact { key: key.to_owned(), reading: Reading::Value(Datum::Text(value.to_owned())), unit: None }
}

/// A number as a fact.
pub fn number(key: &str, value: f64) -> Fact {
    Fact { key: key.to_owned(), reading: Reading::Value(Datum::Number(value)), unit: Some(Unit::Count) }
}

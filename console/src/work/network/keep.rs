//! How is a visit kept?

use std::collections::BTreeMap;

use muster_playbook::PAIRS;
use muster_run::Record;
use muster_wire::{Collective, Engine, Fact, Outcome, Paired, Series, Unit};

use super::mesh::Mesh;
use super::round::Visited;
use crate::clock::now_ms;
use crate::judge::pairs::cause;
pub(super) use crate::judge::pairs::kept::{
    ENGINE, INSTANTS, LOOK, PLACE, RANK, ROUND, SOURCE, UP, endpoint, number, receiver, text, told, work,
};

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

/// The same for a node that was lost on the way and may come back: the next attempt at the run asks it again.
pub(super) fn owed(mut member: Record) -> Record {
    member.facts.push(text(cause::TROUBLE, cause::LOST));
    member
}

/// Whether a record is one of [`owed`].
pub(super) fn is_owed(record: &Record) -> bool {
    record.work == PAIRS && told(record, cause::TROUBLE) == Some(cause::LOST)
}

/// The metric of an engine in which a visit that failed counts, where it is not throughput.
fn flow(engine: Engine) -> Option<&'static str> {
    match engine {
        Engine::Tcp | Engine::Perftest { .. } => None,
        Engine::AllReduce { .. } => Some(Collective::AllReduce.name()),
    }
}

#[cfg(test)]
mod tests {
    use crate::judge::pairs::kept::sender;

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

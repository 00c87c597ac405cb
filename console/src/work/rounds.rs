//! Which rounds did a stored scan of pairs have, where does each begin, and who was left out by then? From its records alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use muster_run::{PAIRS, Record};
use muster_wire::Outcome;

use crate::judge::pairs::kept;

/// A round of a stored scan.
#[derive(Debug)]
pub(super) struct Round {
    /// The place of its first record.
    pub(super) at: usize,
    /// From zero.
    pub(super) number: usize,
    /// Rounds and pairs that were known by then: all but second looks still to come. `None` where the scan did not come to its end or
    /// knew each round by those before only.
    pub(super) planned: Option<(usize, u64)>,
    /// Results of all these beyond those of the rounds before.
    pub(super) more: usize,
    /// Pairs that were measured in it.
    pub(super) pairs: usize,
    /// Pairs of the rounds before.
    pub(super) measured: usize,
    /// Nodes that were left out by then, and why.
    pub(super) dropped: BTreeMap<String, String>,
}

/// What was measured in a round.
struct Seen<'r> {
    at: usize,
    /// Which second look it is of, from one; zero where it is of none.
    look: usize,
    results: usize,
    /// Nodes that met, each two once.
    pairs: BTreeSet<[&'r str; 2]>,
}

/// The rounds of the scan that `records` hold, by their first records; `bisects` where it knew each by those before only. A node is left
/// out of all rounds after its last visit where the scan says at its end that it was.
pub(super) fn of(records: &[Arc<Record>], bisects: bool) -> Vec<Round> {
    let seen = seen(records);
    let members: BTreeMap<&str, &Outcome> =
        records.iter().filter(|record| record.work == PAIRS).map(|r| (r.node.as_str(), &r.outcome)).collect();
    let visits = seen.iter().flat_map(|(number, round)| round.pairs.iter().flatten().map(move |node| (*node, *number)));
    let last: HashMap<&str, usize> = visits.collect();
    let dropped = |number: usize| -> BTreeMap<String, String> {
        let out = members.iter().filter(|(node, _)| last.get(**node).is_none_or(|last| *last < number));
        out.filter_map(|(node, outcome)| Some(((*node).to_owned(), outcome.why()?.to_owned()))).collect()
    };
    let is_known = !bisects && !members.is_empty();
    let mut looks: BTreeMap<usize, (usize, u64, usize)> = BTreeMap::new();
    for round in seen.values() {
        let (rounds, pairs, results) = looks.entry(round.look).or_default();
        (*rounds, *pairs, *results) = (*rounds + 1, *pairs + round.pairs.len() as u64, *results + round.results);
    }
    let (mut known, mut measured) = ((0, 0), 0);
    let mut rounds = Vec::with_capacity(seen.len());
    for (number, Seen { at, look, results, pairs }) in seen {
        let new = looks.remove(&look).unwrap_or_default();
        known = (known.0 + new.0, known.1 + new.1);
        let (planned, more) = if is_known { (Some(known), new.2) } else { (None, results) };
        rounds.push(Round { at, number, planned, more, pairs: pairs.len(), measured, dropped: dropped(number) });
        measured += pairs.len();
    }
    rounds.sort_by_key(|round| round.at);
    rounds
}

/// The rounds by their numbers.
fn seen(records: &[Arc<Record>]) -> BTreeMap<usize, Seen<'_>> {
    let mut rounds: BTreeMap<usize, Seen<'_>> = BTreeMap::new();
    for (at, record) in records.iter().enumerate() {
        let Some((round, dst)) = kept::count(record, kept::ROUND).zip(kept::receiving_node(record)) else { continue };
        let look = kept::count(record, kept::LOOK).map_or(0, |look| look as usize);
        let fresh = || Seen { at, look, results: 0, pairs: BTreeSet::new() };
        let seen = rounds.entry((round as usize).saturating_sub(1)).or_insert_with(fresh);
        seen.results += 1;
        let src = record.node.as_str();
        seen.pairs.insert(if src < dst { [src, dst] } else { [dst, src] });
    }
    rounds
}

#[cfg(test)]
mod tests {
    use muster_run::noted;
    use muster_wire::Fact;

    use super::*;

    fn visit(src: &str, dst: &str, round: usize, more: &[Fact]) -> Arc<Record> {
        let facts = [&[kept::number(kept::ROUND, round as f64)][..], more].concat();
        Arc::new(noted("r", src, &kept::work(dst, 1), facts, round as u64))
    }

    fn member(node: &str, outcome: Outcome) -> Arc<Record> {
        Arc::new(Record { outcome, ..noted("r", node, PAIRS, Vec::new(), 9) })
    }

    /// Two rounds, and a second look at one pair.
    fn scan() -> Vec<Arc<Record>> {
        vec![
            visit("a", "b", 1, &[]),
            visit("b", "a", 1, &[]),
            visit("c", "d", 1, &[]),
            visit("a", "c", 2, &[]),
            visit("c", "a", 2, &[]),
            visit("b", "a", 3, &[kept::number(kept::LOOK, 1.0)]),
        ]
    }

    #[test]
    fn rounds_are_counted_by_their_pairs_and_who_was_left_out_is_known_from_the_next_one_on() {
        let mut records = scan();
        let lost = || Outcome::Failed("no route".to_owned());
        records.extend([member("a", Outcome::Done), member("d", lost()), member("e", lost())]);
        let out = |round: &Round| round.dropped.keys().cloned().collect::<Vec<String>>();
        let said = |round: &Round| (round.at, round.number, round.pairs, round.measured, out(round));
        let said: Vec<_> = of(&records, false).iter().map(said).collect();
        let names = |all: &[&str]| -> Vec<String> { all.iter().map(|name| (*name).to_owned()).collect() };
        let (e, both) = (names(&["e"]), names(&["d", "e"]));
        assert_eq!(said, [(0, 0, 2, 0, e), (3, 1, 1, 2, both.clone()), (5, 2, 1, 3, both)]);
    }

    #[test]
    fn second_looks_are_planned_when_they_begin_and_of_an_interrupted_scan_nobody_knows_what_was() {
        let planned = |records: &[Arc<Record>], bisects: bool| -> Vec<_> {
            of(records, bisects).iter().map(|round| (round.planned, round.more)).collect()
        };
        let unknown: [(Option<(usize, u64)>, usize); 3] = [(None, 3), (None, 2), (None, 1)];
        let mut records = scan();
        assert_eq!(planned(&records, false), unknown);
        records.push(member("a", Outcome::Done));
        assert_eq!(planned(&records, false), [(Some((2, 3)), 5), (Some((2, 3)), 0), (Some((3, 4)), 1)]);
        assert_eq!(planned(&records, true), unknown);
    }
}

//! Why did a collective or a training not end well: which node, which step, and who only suffered from it?

use std::collections::{BTreeMap, BTreeSet};

use muster_run::Record;
use muster_wire::Outcome;

use super::kept;

/// Fact of a node: what went wrong for it.
pub const TROUBLE: &str = "trouble";
/// [`TROUBLE`] of a node that went away or did not answer.
pub const LOST: &str = "lost";
/// [`TROUBLE`] of a node that received other bytes than were sent.
pub const WRONG: &str = "wrong";
/// [`TROUBLE`] of a node of which a rank ended by itself: by a signal, or an error of its program.
pub const ENDED: &str = "ended";
/// Fact of a node: the ranks of a training that one of its own puts the end down to, by number.
const NAMED: &str = "trouble.ranks";
/// Fact of a node: its own sentence, where another is kept as its outcome.
const SAID: &str = "trouble.said";
const PEER: &str = "trouble.peer";

/// What ended a collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Nodes that it is put down to; none where two sound ones could not talk.
    pub accused: Vec<String>,
    /// Names node and step.
    pub text: String,
}

/// The cause among what all nodes of one collective say; none where it ended well.
pub fn cause(records: &[Record]) -> Option<Cause> {
    let of = |kind: &'static str| records.iter().filter(move |r| kept::told(r, TROUBLE) == Some(kind));
    if let Some(first) = of(WRONG).min_by_key(|record| step(record)) {
        let from = kept::told(first, PEER).unwrap_or("?").to_owned();
        let mut accused = vec![first.node.clone(), from];
        accused.dedup();
        return Some(Cause { accused, text: format!("{}: {}", first.node, said(first)?) });
    }
    let lost: Vec<&Record> = of(LOST).collect();
    if let Some(first) = lost.first() {
        let mut text = of_node(first)?;
        let waits = |r: &&Record| kept::told(r, PEER).is_some_and(|peer| lost.iter().any(|lost| lost.node == peer));
        if let Some(neighbour) = records.iter().filter(waits).min_by_key(|record| step(record)) {
            text = format!("{text}; {}: {}", neighbour.node, said(neighbour)?);
        }
        return Some(Cause { accused: lost.iter().map(|r| r.node.clone()).collect(), text });
    }
    let ended: Vec<&Record> = of(ENDED).collect();
    if let Some(first) = ended.first() {
        return Some(Cause { accused: ended.iter().map(|r| r.node.clone()).collect(), text: of_node(first)? });
    }
    if let Some(cause) = named(records) {
        return Some(cause);
    }
    let failed = records.iter().filter(|r| matches!(r.outcome, Outcome::Failed(_)));
    let first = failed.min_by_key(|record| (kept::told(record, TROUBLE).is_none(), step(record)))?;
    Some(Cause { accused: Vec::new(), text: format!("{}: {}", first.node, said(first)?) })
}

/// Nodes whose ranks are named by at least half of the nodes that name any: a rank that asks late may find others gone that had only
/// given up.
fn named(records: &[Record]) -> Option<Cause> {
    let ranks: BTreeMap<u64, &str> =
        records.iter().filter_map(|r| Some((kept::count(r, kept::RANK)? as u64, r.node.as_str()))).collect();
    let node_of = |rank: u64| ranks.range(..=rank).next_back().map(|(_, node)| *node);
    let names = |record: &Record| -> BTreeSet<&str> {
        let words = kept::told(record, NAMED).into_iter().flat_map(str::split_ascii_whitespace);
        words.filter_map(|word| node_of(word.parse().ok()?)).collect()
    };
    let all: Vec<(&Record, BTreeSet<&str>)> =
        records.iter().map(|record| (record, names(record))).filter(|(_, names)| !names.is_empty()).collect();
    let often = |node: &str| 2 * all.iter().filter(|(_, names)| names.contains(node)).count() >= all.len();
    let accused: BTreeSet<&str> =
        all.iter().flat_map(|(_, names)| names.iter().copied()).filter(|n| often(n)).collect();
    let says = all.iter().filter(|(_, names)| names.iter().any(|name| accused.contains(name)));
    let (first, _) = says.min_by_key(|(record, _)| step(record))?;
    Some(Cause { accused: accused.into_iter().map(str::to_owned).collect(), text: of_node(first)? })
}

/// What a node says, under its name.
fn of_node(record: &Record) -> Option<String> {
    let said = said(record)?;
    let own = said.strip_prefix(record.node.as_str()).is_some_and(|rest| rest.starts_with(':'));
    Some(if own { said.to_owned() } else { format!("{}: {said}", record.node) })
}

/// Leaves a failure only to those that the cause accuses: the others did not get to run.
pub fn settle(records: &mut [Record]) {
    let Some(cause) = cause(records) else { return };
    for record in records {
        let accused = cause.accused.contains(&record.node);
        if record.outcome == Outcome::Done || accused && matches!(record.outcome, Outcome::Failed(_)) {
            continue;
        }
        if let Some(said) = said(record).map(str::to_owned) {
            record.facts.push(kept::text(SAID, &said));
        }
        let text = cause.text.clone();
        record.outcome = if accused { Outcome::Failed(text) } else { Outcome::NotRun(text) };
    }
}

/// How far a node came: sizes done, operation, step.
fn step(record: &Record) -> [u64; 3] {
    let count = |key| kept::count(record, key).unwrap_or(0.0) as u64;
    [record.series.len() as u64, count("trouble.operation"), count("trouble.step")]
}

/// A node's own sentence.
fn said(record: &Record) -> Option<&str> {
    kept::told(record, SAID).or(record.outcome.why())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(node: &str, (kind, peer, step): (&str, &str, f64), outcome: Outcome) -> Record {
        let facts = [(TROUBLE, kind), (PEER, peer)].map(|(key, value)| kept::text(key, value));
        let facts =
            facts.into_iter().chain([kept::number("trouble.operation", 3.0), kept::number("trouble.step", step)]);
        Record {
            run: "r".into(),
            node: node.into(),
            work: "net-allreduce".into(),
            outcome,
            at_ms: 0,
            elapsed_ns: 0,
            series: Vec::new(),
            facts: facts.collect(),
        }
    }

    fn failed(why: &str) -> Outcome {
        Outcome::Failed(why.into())
    }

    #[test]
    fn the_first_wrong_arrival_accuses_both_ends_of_its_hop_and_nobody_else() {
        let mut records = [
            record("n1", (WRONG, "n4", 3.0), failed("step 3")),
            record("n2", (WRONG, "n1", 4.0), failed("step 4")),
            record("n3", ("told", "n1", 0.0), Outcome::NotRun("n1 received wrong bytes".into())),
            record("n4", (WRONG, "n3", 2.0), failed("step 2")),
        ];
        settle(&mut records);
        let found = cause(&records).unwrap();
        assert_eq!((found.accused, found.text.as_str()), (vec!["n4".to_owned(), "n3".to_owned()], "n4: step 2"));
        let not_run = |r: &Record| matches!(&r.outcome, Outcome::NotRun(why) if why == "n4: step 2");
        assert_eq!(records.iter().filter(|r| not_run(r)).count(), 2, "{records:?}");
        assert_eq!((&records[2].outcome, &records[3].outcome), (&failed("n4: step 2"), &failed("step 2")));
    }

    #[test]
    fn a_node_that_went_away_is_named_with_the_step_at_which_its_neighbour_waited() {
        let mut records = [
            record("n1", ("gone", "n4", 2.0), failed("cannot receive from n4")),
            record("n4", ("gone", "n3", 2.0), failed("cannot receive from n3")),
            record("n3", (LOST, "", 0.0), failed("n3: link lost")),
        ];
        settle(&mut records);
        let found = cause(&records).unwrap();
        assert_eq!(found.accused, ["n3"]);
        assert_eq!(found.text, "n3: link lost; n4: cannot receive from n3");
        assert_eq!(records[0].outcome, Outcome::NotRun(found.text));
    }

    #[test]
    fn in_a_training_that_node_is_accused_whose_rank_most_name_or_that_says_itself_that_it_ended() {
        let of = |node: &str, first: f64, ranks: &str| {
            let mut record = record(node, ("gone", "n9", 0.0), failed(&format!("rank {first}: step 7")));
            record.facts.extend([kept::number(kept::RANK, first), kept::text(NAMED, ranks)]);
            record
        };
        // Two ranks a node: rank 5 is one of n3.
        let mut records = [of("n1", 0.0, "5"), of("n2", 2.0, "5"), of("n4", 6.0, "0 5"), of("n3", 4.0, "")];
        let found = cause(&records).unwrap();
        assert_eq!((found.accused, found.text.as_str()), (vec!["n3".to_owned()], "n1: rank 0: step 7"));
        records[3].facts.insert(0, kept::text(TROUBLE, ENDED));
        records[3].outcome = failed("rank 5 was ended by signal 9");
        settle(&mut records);
        let why = "n3: rank 5 was ended by signal 9";
        assert_eq!(records[3].outcome, failed("rank 5 was ended by signal 9"));
        assert!(records[..3].iter().all(|record| record.outcome == Outcome::NotRun(why.into())), "{records:?}");
    }

    #[test]
    fn a_link_between_two_sound_nodes_accuses_neither() {
        let records = [
            record("n1", ("late", "n3", 5.0), failed("nothing more from n3")),
            record("n2", ("late", "n1", 4.0), failed("nothing more from n1")),
        ];
        let found = cause(&records).unwrap();
        assert_eq!((found.accused.len(), found.text.as_str()), (0, "n2: nothing more from n1"));
        assert_eq!(cause(&[record("n1", ("", "", 0.0), Outcome::Done)]), None);
    }
}

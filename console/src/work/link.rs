//! What is recorded of a node whose link failed?

use muster_fleet::Failure;
use muster_run::{LINK, Record};
use muster_wire::Outcome;

use super::observe::failure_line;
use crate::clock::now_ms;
use crate::judge::notes;

/// How a node's link ended.
pub(super) fn link_record(run: &str, node: &str, failure: &Failure) -> Record {
    Record {
        run: run.to_owned(),
        node: node.to_owned(),
        work: LINK.to_owned(),
        outcome: Outcome::Failed(failure_line(node, failure)),
        at_ms: now_ms(),
        elapsed_ns: 0,
        series: Vec::new(),
        facts: Vec::new(),
    }
}

/// What is kept of a node whose link failed beside the pairs: how it ended, and whether it spoke out of turn.
pub(super) fn lost_records(run: &str, node: &str, failure: &Failure) -> Vec<Record> {
    let link = link_record(run, node, failure);
    if !failure.out_of_turn() {
        return vec![link];
    }
    vec![link, notes::out_of_turn(run, node, failure.what(node).to_owned(), now_ms())]
}

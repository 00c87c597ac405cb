//! Nodes put into other hands from the screen, by a made-up user.

use std::path::Path;
use std::sync::Arc;

use muster_analysis::service::{Marked, Service};
use muster_store::{Db, Options};
use muster_tui::{Screen, Snapshot};

use super::back::tests::measured;
use super::rehearsed::{Wanted, rehearsed};
use crate::clock::now_ms;
use crate::service::marks;

const NODES: [&str; 6] = ["n1", "n2", "n3", "n4", "n5", "n6"];

fn stored(dir: &Path, id: &str, started_ms: u64, n3: f64) {
    let mut store = Db::open(dir, &Options::default()).unwrap();
    measured(&mut store, id, started_ms, &["cpu-gemm"], n3);
}

/// Types `text` as soon as `wanted` holds, then leaves once `end` does.
fn typed(dir: &Path, words: &[&str], text: &str, (wanted, end): (Wanted, Wanted)) -> Arc<Snapshot> {
    let mut keys: Vec<(char, Wanted)> = text.chars().map(|key| (key, wanted)).collect();
    keys.push(('q', end));
    rehearsed((&NODES, dir, words), |_| (), (Screen::Fleet, std::io::sink()), keys)
}

fn n3(shown: &Snapshot) -> Service {
    shown.nodes[2].hands()
}

fn said(shown: &Snapshot, text: &str) -> bool {
    shown.messages.iter().any(|message| message.text.contains(text))
}

const DEFECTIVE: Wanted = |shown| n3(shown) == Service::Defective;
const IN_REPAIR: Wanted = |shown| n3(shown) == Service::InRepair;
const REFUSED: Wanted = |shown| said(shown, "not given back");

#[test]
fn a_node_goes_into_repair_and_comes_back_only_after_a_run_that_passes_it() {
    let dir = tempfile::tempdir().unwrap();
    stored(dir.path(), "r1", 1_000, 0.5);
    let last = typed(dir.path(), &[], "/n3\rHrepair RMA 4711\ry", (DEFECTIVE, IN_REPAIR));
    assert!(said(&last, "n3: in repair"), "{:?}", last.messages);
    assert_eq!(last.hands.as_ref(), [(Service::InRepair, 1)]);
    let own = last.nodes[2].service.as_deref().unwrap();
    assert_eq!((own.why.as_str(), own.since_ms.is_some()), ("RMA 4711", true));

    let last = typed(dir.path(), &[], "/service:repair\rHreturn\ry", (IN_REPAIR, REFUSED));
    assert!(said(&last, "n3: not given back: it was not validated since it went into repair"), "{:?}", last.messages);
    let needs: Wanted = |shown| {
        let past = shown.focus.as_ref().and_then(|focus| focus.service.as_ref());
        past.and_then(|past| past.needs.as_ref()).is_some_and(|needs| needs.len() == 1)
    };
    let last = typed(dir.path(), &[], "/service:repair\r", (IN_REPAIR, needs));
    let handed = last.focus.as_ref().and_then(|focus| focus.service.clone()).unwrap().handed.clone();
    assert_eq!((handed.len(), handed[0].into), (1, "in repair"));

    stored(dir.path(), "r2", now_ms() + 1, 1.0);
    let last =
        typed(dir.path(), &[], "/service:repair\rHreturn\ry", (IN_REPAIR, |shown| n3(shown) == Service::InService));
    assert!(said(&last, "n3: in service") && last.hands.is_empty(), "{:?}", last.messages);
    let kept = marks(&Db::open_read_only(dir.path()).unwrap()).unwrap();
    let states: Vec<Marked> = kept["n3"].iter().map(|mark| mark.state).collect();
    assert_eq!(states, [Marked::InRepair, Marked::InService]);
}

#[test]
fn who_may_only_read_puts_no_node_into_other_hands() {
    let dir = tempfile::tempdir().unwrap();
    stored(dir.path(), "r1", 1_000, 0.5);
    let forbidden: Wanted = |shown| said(shown, "--read-only forbids changing where a node stands");
    for command in ["Hrepair\ry", "Hspare\ry", "Hreturn\ry"] {
        let last = typed(dir.path(), &["--read-only"], command, (DEFECTIVE, forbidden));
        assert_eq!(n3(&last), Service::Defective);
    }
    assert!(marks(&Db::open_read_only(dir.path()).unwrap()).unwrap().is_empty());
}

#[test]
fn a_node_in_repair_is_not_kept_as_a_spare() {
    let dir = tempfile::tempdir().unwrap();
    stored(dir.path(), "r1", 1_000, 0.5);
    let refused: Wanted = |shown| said(shown, "n3: in repair; validate it and give it back first");
    typed(dir.path(), &[], "/n3\rHrepair\ry", (DEFECTIVE, IN_REPAIR));
    let last = typed(dir.path(), &[], "/n3\rHspare\ry", (IN_REPAIR, refused));
    assert_eq!(n3(&last), Service::InRepair);
}

#[test]
fn a_node_without_a_spare_is_not_replaced_and_stays_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    stored(dir.path(), "r1", 1_000, 0.5);
    let refused: Wanted = |shown| said(shown, "n3: not replaced: nobody replaces it: nobody knows what it is built of");
    let last = typed(dir.path(), &[], "/n3\rHreplace RMA 4711\ry", (DEFECTIVE, refused));
    assert_eq!(n3(&last), Service::Defective);
    assert!(marks(&Db::open_read_only(dir.path()).unwrap()).unwrap().is_empty());
}

#[test]
fn a_node_stays_defective_while_newer_runs_measure_something_else() {
    let dir = tempfile::tempdir().unwrap();
    stored(dir.path(), "r1", 1_000, 0.5);
    {
        let mut store = Db::open(dir.path(), &Options::default()).unwrap();
        measured(&mut store, "r2", 2_000, &["disk"], 1.0);
    }
    let last = typed(dir.path(), &[], "", (DEFECTIVE, DEFECTIVE));
    assert_eq!(last.hands.as_ref(), [(Service::Defective, 1)]);
    stored(dir.path(), "r3", 3_000, 1.0);
    let shown: Wanted = |shown| n3(shown) == Service::InService && shown.nodes[2].result_ms == Some(3_000);
    let last = typed(dir.path(), &[], "", (shown, shown));
    assert!(last.hands.is_empty());
}

//! The incident log and the stored models: what was told last counts, and damage costs what it touches.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

#[path = "common/incidents.rs"]
mod incidents;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use incidents::incident;
use muster_store::{Db, Incident, Options, Store, StoreError, check};

fn db(dir: &Path) -> Db {
    Db::open(dir, &Options::default()).unwrap()
}

#[test]
fn telling_the_same_again_adds_nothing_and_a_later_end_replaces() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    let all: Vec<Incident> = (0..2500).map(incident).collect();
    assert_eq!(store.record_incidents(&all).unwrap(), 2500);
    assert_eq!(store.record_incidents(&all).unwrap(), 0);
    let open = all.iter().find(|i| i.end_ms.is_none()).unwrap();
    let ended = Incident { end_ms: Some(open.start_ms + 5), ..open.clone() };
    assert_eq!(store.record_incidents(&[ended.clone(), all[0].clone()]).unwrap(), 1);
    let told = store.incidents().unwrap();
    assert_eq!(told.len(), 2500);
    assert!(told.contains(&ended) && !told.contains(open));
    let order = |i: &Incident| (i.node.clone(), i.start_ms);
    assert!(told.is_sorted_by_key(order));
    drop(store);
    assert_eq!(Db::open_read_only(dir.path()).unwrap().incidents().unwrap(), told);
    assert!(check(dir.path()).unwrap().sound());
}

#[test]
fn a_write_that_a_crash_cut_short_is_cut_off_and_the_log_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    store.record_incidents(&[incident(1)]).unwrap();
    assert_eq!(store.put_model(b"{}").unwrap(), 1);
    drop(store);
    for file in ["incidents.log", "models.log"] {
        OpenOptions::new().append(true).open(dir.path().join(file)).unwrap().write_all(&[9; 7]).unwrap();
    }
    assert!(!check(dir.path()).unwrap().sound());
    let mut store = db(dir.path());
    assert_eq!(store.opened().repairs.len(), 2, "{:?}", store.opened().repairs);
    store.record_incidents(&[incident(2)]).unwrap();
    assert_eq!(store.put_model(b"[2]").unwrap(), 2);
    assert_eq!(store.incidents().unwrap(), [incident(1), incident(2)]);
    assert_eq!(
        (store.model(Some(1)).unwrap().unwrap(), store.model(None).unwrap().unwrap()),
        (b"{}".to_vec(), b"[2]".to_vec())
    );
    assert_eq!((store.model(Some(3)).unwrap(), store.models().unwrap().len()), (None, 2));
    drop(store);
    assert!(check(dir.path()).unwrap().sound());
}

#[test]
fn incidents_that_cannot_be_read_are_told_whenever_they_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    store.record_incidents(&[incident(1)]).unwrap();
    store.record_incidents(&[incident(2)]).unwrap();
    drop(store);
    let path = dir.path().join("incidents.log");
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let store = Db::open_read_only(dir.path()).unwrap();
    store.notices();
    assert_eq!(store.incidents().unwrap(), [incident(1)]);
    let told = store.notices();
    assert!(told.iter().any(|line| line.contains("incidents.log")), "{told:?}");
}

#[test]
fn what_cannot_be_an_incident_is_refused_and_nothing_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    let backwards = Incident { end_ms: Some(0), ..incident(1) };
    let wordy = Incident { reason: "x".repeat(1 << 20), ..incident(1) };
    let nameless = Incident { node: String::new(), ..incident(1) };
    for bad in [backwards, wordy, nameless] {
        let why = store.record_incidents(&[incident(2), bad]).unwrap_err();
        assert!(matches!(why, StoreError::BadIncident { .. } | StoreError::BadName { .. }), "{why}");
    }
    assert_eq!(store.incidents().unwrap(), []);
    drop(store);
    let mut reader = Db::open_read_only(dir.path()).unwrap();
    assert!(matches!(reader.record_incidents(&[incident(2)]), Err(StoreError::ReadOnly { .. })));
    assert!(matches!(reader.put_model(b""), Err(StoreError::ReadOnly { .. })));
}

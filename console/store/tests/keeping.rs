//! What is kept comes back, in the order and the words the console needs.

mod common;

use common::{db, record, run};
use muster_run::RunState;
use muster_store::{Db, Options, Store, StoreError, Table, check, rebuild};
use muster_wire::limits::SERIES_VALUES;
use muster_wire::{Datum, Fact, Outcome, Reading, Unit};

#[test]
fn records_come_back_bit_for_bit_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let mut kept = vec![record("r1", "n2", "disk", 5), record("r1", "n1", "cpu-gemm", 40)];
    kept[0].outcome = Outcome::Failed("no space on node".into());
    kept[0].facts =
        vec![Fact { key: "disk.model".into(), reading: Reading::Value(Datum::Text("X".into())), unit: None }];
    kept[1].series[0].values[0] = -0.0;
    kept[1].series[0].unit = Unit::Ratio;
    let mut store = db(dir.path());
    store.begin(&run("r1", 10)).unwrap();
    store.append_many(&kept).unwrap();
    kept.reverse();
    assert_eq!(store.records("r1").unwrap(), kept);
    drop(store);
    let store = db(dir.path());
    assert_eq!(store.opened().repairs, Vec::<String>::new());
    assert_eq!(store.records("r1").unwrap(), kept);
    assert_eq!(store.records_of("r1", "n2").unwrap(), kept[1..]);
    assert!(store.records("r1").unwrap()[0].series[0].values[0].is_sign_negative());
}

#[test]
fn runs_are_listed_newest_first_and_a_run_without_console_was_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    for (id, start) in [("a", 10), ("c", 30), ("b", 20)] {
        store.begin(&run(id, start)).unwrap();
    }
    store.end("a", RunState::Finished, 99).unwrap();
    let states =
        |store: &Db| store.runs().unwrap().into_iter().map(|r| (r.id, r.state, r.ended_ms)).collect::<Vec<_>>();
    let (a, b, c) = ("a".to_owned(), "b".to_owned(), "c".to_owned());
    let running = RunState::Running;
    let live = [(c.clone(), running, None), (b.clone(), running, None), (a.clone(), RunState::Finished, Some(99))];
    assert_eq!(states(&store), live);
    assert_eq!(states(&Db::open_read_only(dir.path()).unwrap()), live, "a reader sees that the writer lives");
    drop(store);
    let gone = RunState::Interrupted;
    let dead = [(c, gone, None), (b, gone, None), (a, RunState::Finished, Some(99))];
    assert_eq!(states(&Db::open_read_only(dir.path()).unwrap()), dead);
    assert_eq!(states(&db(dir.path())), dead);
}

#[test]
fn a_resumed_run_keeps_its_start_and_knows_what_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    store.begin(&run("r", 10)).unwrap();
    store.append(&record("r", "n1", "disk", 3)).unwrap();
    drop(store);
    let mut store = db(dir.path());
    store.begin(&run("r", 5_000)).unwrap();
    let again = store.run("r").unwrap().unwrap();
    assert_eq!((again.started_ms, again.state), (10, RunState::Running));
    assert_eq!(store.done("r").unwrap().into_iter().collect::<Vec<_>>(), [("n1".to_owned(), "disk".to_owned())]);
    store.append(&record("r", "n2", "disk", 3)).unwrap();
    store.end("r", RunState::Finished, 6_000).unwrap();
    drop(store);
    assert_eq!(Db::open_read_only(dir.path()).unwrap().done("r").unwrap().len(), 2);
    assert!(check(dir.path()).unwrap().sound());
}

#[test]
fn a_second_record_of_the_same_work_replaces_the_first_also_after_a_rebuild() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    store.begin(&run("r", 10)).unwrap();
    store.append(&record("r", "n1", "disk", 3)).unwrap();
    store.append(&record("r", "n1", "disk", 7)).unwrap();
    assert_eq!(store.summaries("r").unwrap().iter().map(|s| s.values).collect::<Vec<_>>(), [7]);
    drop(store);
    assert!(rebuild(dir.path(), false).unwrap().sound());
    assert_eq!(db(dir.path()).records("r").unwrap(), [record("r", "n1", "disk", 7)]);
}

#[test]
fn a_node_whose_name_begins_like_another_is_another() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    store.begin(&run("r", 1)).unwrap();
    store.begin(&run("r-2", 2)).unwrap();
    store.append_many(&[record("r", "n1", "w", 1), record("r", "n10", "w", 1), record("r-2", "n1", "w", 1)]).unwrap();
    assert_eq!(store.records_of("r", "n1").unwrap().len(), 1);
    assert_eq!(store.records("r").unwrap().len(), 2);
    let nodes: Vec<_> = store.nodes().unwrap().into_iter().map(|n| (n.name, n.runs)).collect();
    assert_eq!(nodes, [("n1".to_owned(), 2), ("n10".to_owned(), 1)]);
}

#[test]
fn criteria_are_kept_and_the_newest_wins() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    store.put(Table::Criteria, "b", b"one").unwrap();
    store.put(Table::Criteria, "a", &[7; 100_000]).unwrap();
    store.put(Table::Criteria, "b", b"two").unwrap();
    drop(store);
    for store in [db(dir.path()), Db::open_read_only(dir.path()).unwrap()] {
        assert_eq!(store.get(Table::Criteria, "b").unwrap().unwrap(), b"two");
        assert_eq!(store.get(Table::Criteria, "a").unwrap().unwrap(), [7; 100_000]);
        assert_eq!(store.get(Table::Criteria, "c").unwrap(), None);
        assert_eq!(store.list(Table::Criteria).unwrap().into_iter().map(|c| c.key).collect::<Vec<_>>(), ["a", "b"]);
    }
}

#[test]
fn what_is_over_the_limits_is_refused_and_nothing_of_its_batch_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    store.begin(&run("r", 1)).unwrap();
    let said =
        store.append_many(&[record("r", "n1", "w", 1), record("r", "n7", "big", SERIES_VALUES + 1)]).unwrap_err();
    assert!(matches!(said, StoreError::TooLarge { .. }));
    assert!(said.to_string().contains("big on n7") && said.to_string().contains("65537 values"), "{said}");
    let mut many = record("r", "n7", "many", SERIES_VALUES);
    many.series = vec![many.series[0].clone(); 200];
    assert!(matches!(store.append(&many), Err(StoreError::TooLarge { .. })));
    assert!(store.done("r").unwrap().is_empty());
    store.append(&record("r", "n1", "w", SERIES_VALUES)).unwrap();
}

#[test]
fn names_that_would_leave_the_directory_or_break_a_key_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    for id in ["", "../x", "a/b", ".hidden", "a\0b", &"x".repeat(97)] {
        assert!(matches!(store.begin(&run(id, 1)), Err(StoreError::BadName { .. })), "{id:?}");
    }
    store.begin(&run("r", 1)).unwrap();
    for node in ["", "n\u{0}1", "n\u{1b}[2J", &"n".repeat(513)] {
        let said = store.append(&record("r", node, "w", 1)).unwrap_err().to_string();
        assert!(said.contains("cannot be stored") && !said.contains('\u{1b}'), "{said}");
    }
}

#[test]
fn a_run_that_was_never_begun_is_said_to_be_missing() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    let said = store.append(&record("ghost", "n1", "w", 1)).unwrap_err().to_string();
    assert!(said.contains("no run 'ghost'"), "{said}");
    assert!(matches!(store.records("ghost"), Err(StoreError::NoRun { .. })));
    assert!(matches!(store.end("ghost", RunState::Finished, 1), Err(StoreError::NoRun { .. })));
    assert_eq!(store.run("ghost").unwrap(), None);
}

#[test]
fn a_reader_follows_a_writer_and_may_not_write() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Db::open(dir.path(), &Options::default()).unwrap();
    store.begin(&run("r", 1)).unwrap();
    let mut reader = Db::open_read_only(dir.path()).unwrap();
    assert_eq!(reader.records("r").unwrap(), []);
    store.append(&record("r", "n1", "w", 9)).unwrap();
    assert_eq!(reader.records("r").unwrap(), [record("r", "n1", "w", 9)]);
    assert!(matches!(reader.append(&record("r", "n1", "w", 9)), Err(StoreError::ReadOnly { .. })));
    assert!(matches!(reader.begin(&run("x", 1)), Err(StoreError::ReadOnly { .. })));
    assert!(!reader.writable() && store.writable());
}

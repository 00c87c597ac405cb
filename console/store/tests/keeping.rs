//! What is kept comes back, in the order and the words the console needs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use common::{db, record, run};
use muster_run::{Record, RunState};
use muster_store::{Db, Options, Store, StoreError, Table, check, rebuild};
use muster_wire::limits::SERIES_VALUES;
use muster_wire::{Datum, Fact, Outcome, Reading, Unit};
use proptest::prelude::*;

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

/// What is done to a database, with the places of names in short lists.
#[derive(Clone, Debug)]
enum Step {
    Begin(usize),
    Append(usize, Vec<(usize, usize, usize)>),
    End(usize),
    Put(usize, u8),
    Reopen,
    /// Files that may be thrown away are.
    Forget(&'static str),
}

const RUNS: [&str; 3] = ["r", "r-2", "s"];
const NODES: [&str; 3] = ["n1", "n10", "n3"];
const WORKS: [&str; 3] = ["cpu", "disk", "disk#2"];
const KEYS: [(Table, &str); 3] = [(Table::Criteria, "disk"), (Table::Frozen, "disk"), (Table::Terms, "r")];

fn step() -> impl Strategy<Value = Step> {
    let record = (0..3_usize, 0..3_usize, 1..9_usize);
    prop_oneof![
        3 => (0..3_usize).prop_map(Step::Begin),
        8 => (0..3_usize, proptest::collection::vec(record, 1..4)).prop_map(|(run, records)| Step::Append(run, records)),
        2 => (0..3_usize).prop_map(Step::End),
        2 => (0..3_usize, any::<u8>()).prop_map(|(key, byte)| Step::Put(key, byte)),
        2 => Just(Step::Reopen),
        1 => prop_oneof![Just("index"), Just("contents"), Just("overview")].prop_map(Step::Forget),
    ]
}

/// The same in maps.
#[derive(Default)]
struct Known {
    /// State, when it began, when it ended.
    runs: BTreeMap<&'static str, (RunState, u64, Option<u64>)>,
    records: BTreeMap<(&'static str, &'static str, &'static str), Record>,
    entries: BTreeMap<usize, u8>,
}

impl Known {
    /// A reader cannot know which of the runs without an end are those of the writer that lives: `open` is what it calls them.
    /// Nothing of that is worth a notice.
    fn is_said_by(&self, store: &Db, open: Option<RunState>) {
        let state = |state: RunState| if state == RunState::Finished { state } else { open.unwrap_or(state) };
        let run = |(id, (of, began, ended)): (&&'static str, &_)| (*began, *id, state(*of), *ended);
        let mut runs: Vec<(u64, &str, RunState, Option<u64>)> = self.runs.iter().map(run).collect();
        runs.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)));
        let listed = store.runs().unwrap();
        let listed: Vec<_> =
            listed.iter().map(|run| (run.started_ms, run.id.as_str(), run.state, run.ended_ms)).collect();
        assert_eq!(listed, runs);
        let mut seen: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (run, node, _) in self.records.keys() {
            seen.entry(node).or_default().insert(run);
        }
        let nodes: Vec<_> = store.nodes().unwrap().into_iter().map(|node| (node.name, node.runs as usize)).collect();
        let expected: Vec<_> = seen.iter().map(|(node, runs)| ((*node).to_owned(), runs.len())).collect();
        assert_eq!(nodes, expected);
        for run in self.runs.keys() {
            let own = || self.records.iter().filter(|((of, ..), _)| of == run);
            let records: Vec<Record> = own().map(|(_, record)| record.clone()).collect();
            let overview = store.overview(run).unwrap();
            assert_eq!(overview.nodes.len(), own().map(|((_, node, _), _)| node).collect::<BTreeSet<_>>().len());
            assert_eq!(store.records(run).unwrap(), records, "{run}");
            let works: Vec<_> = own().map(|((_, node, work), _)| ((*node).to_owned(), (*work).to_owned())).collect();
            assert_eq!(store.done(run).unwrap().into_iter().collect::<Vec<_>>(), works);
            let facts: Vec<Record> = records.into_iter().map(|one| Record { series: Vec::new(), ..one }).collect();
            assert_eq!(store.facts(run).unwrap(), facts);
            for node in NODES {
                let own: Vec<Record> =
                    own().filter(|((_, of, _), _)| *of == node).map(|(_, one)| one.clone()).collect();
                assert_eq!(store.records_of(run, node).unwrap(), own, "{run} {node}");
            }
        }
        for (at, (table, key)) in KEYS.into_iter().enumerate() {
            assert_eq!(store.get(table, key).unwrap(), self.entries.get(&at).map(|byte| vec![*byte]));
            assert_eq!(store.notices(), Vec::<String>::new());
            let keys: Vec<String> = store.list(table).unwrap().into_iter().map(|entry| entry.key).collect();
            assert_eq!(keys, self.entries.get(&at).map(|_| key.to_owned()).into_iter().collect::<Vec<_>>());
        }
    }

    /// The writer that had runs open is gone.
    fn interrupt(&mut self) {
        self.runs.values_mut().filter(|run| run.0 == RunState::Running).for_each(|run| run.0 = RunState::Interrupted);
    }
}

/// Does `step` to the database in `dir`, which `store` has open for writing.
fn take(dir: &Path, store: &mut Option<Db>, known: &mut Known, step: &Step, now: u64) {
    let writer = store.as_mut().unwrap();
    match step {
        Step::Begin(at) => {
            writer.begin(&run(RUNS[*at], now)).unwrap();
            let of = known.runs.entry(RUNS[*at]).or_insert((RunState::Running, now, None));
            (of.0, of.2) = (RunState::Running, None);
        }
        Step::Append(at, records) => {
            let id = RUNS[*at];
            let of = |(node, work, values): &(usize, usize, usize)| record(id, NODES[*node], WORKS[*work], *values);
            let all: Vec<Record> = records.iter().map(of).collect();
            let done = writer.append_many(&all);
            assert_eq!(done.is_ok(), known.runs.contains_key(id));
            for (one, (node, work, _)) in all.into_iter().zip(records).filter(|_| done.is_ok()) {
                known.records.insert((id, NODES[*node], WORKS[*work]), one);
            }
        }
        Step::End(at) => {
            let done = writer.end(RUNS[*at], RunState::Finished, now);
            let run = known.runs.get_mut(RUNS[*at]);
            assert_eq!(done.is_ok(), run.is_some());
            run.into_iter().for_each(|run| (run.0, run.2) = (RunState::Finished, Some(now)));
        }
        Step::Put(at, byte) => {
            let (table, key) = KEYS[*at];
            writer.put(table, key, &[*byte]).unwrap();
            known.entries.insert(*at, *byte);
        }
        Step::Reopen | Step::Forget(_) => {
            *store = None;
            known.interrupt();
            let report = check(dir).unwrap();
            assert!(report.sound(), "{report:?}");
            if let Step::Forget(kind) = step {
                let _ = std::fs::remove_dir_all(dir.join(kind));
                RUNS.iter().for_each(|id| drop(std::fs::remove_file(dir.join(format!("runs/{id}.{kind}")))));
            }
            known.is_said_by(&Db::open_read_only(dir).unwrap(), Some(RunState::Interrupted));
            let opened = db(dir);
            assert_eq!(opened.opened().repairs, Vec::<String>::new());
            *store = Some(opened);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// An index and what lies beside run files are conveniences: whether they are there makes no difference.
    #[test]
    fn a_database_says_what_was_put_in_to_its_writer_and_to_readers_old_and_new(steps in proptest::collection::vec(step(), 1..24)) {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path();
        let (mut store, mut known) = (Some(db(dir)), Known::default());
        let old = Db::open_read_only(dir).unwrap();
        for (now, step) in (10..).zip(&steps) {
            take(dir, &mut store, &mut known, step, now);
        }
        known.is_said_by(store.as_ref().unwrap(), None);
        known.is_said_by(&Db::open_read_only(dir).unwrap(), Some(RunState::Running));
        known.is_said_by(&old, Some(RunState::Running));
        drop(store);
        known.interrupt();
        known.is_said_by(&old, None);
        prop_assert!(check(dir).unwrap().sound());
    }
}

#[test]
fn a_reader_sees_what_was_kept_after_it_came() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    let reader = Db::open_read_only(dir.path()).unwrap();
    assert_eq!(reader.get(Table::Steps, "disk").unwrap(), None);
    store.put(Table::Steps, "disk", b"12").unwrap();
    store.put(Table::Criteria, "disk", b"sample").unwrap();
    assert_eq!(reader.get(Table::Steps, "disk").unwrap().as_deref(), Some(&b"12"[..]));
    let entries = reader.list(Table::Steps).unwrap();
    assert_eq!(entries.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["disk"]);
    assert!(entries[0].at_ms > 1_700_000_000_000, "{entries:?}");
}

#[test]
fn a_batch_larger_than_what_is_handed_over_at_once_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    store.begin(&run("r", 1)).unwrap();
    let mut seed = 1_u64;
    let mut noise = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from_bits((seed ^ seed >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2)
    };
    let mut noisy = |at: usize| {
        let mut one = record("r", &format!("n{at:02}"), "disk", 0);
        one.series[0].values = (0..SERIES_VALUES).map(|_| noise()).collect();
        one
    };
    let all: Vec<Record> = (0..20).map(&mut noisy).collect();
    store.append_many(&all).unwrap();
    assert!(std::fs::metadata(dir.path().join("runs/r.log")).unwrap().len() > 8 << 20, "noise does not pack");
    assert_eq!(store.records("r").unwrap(), all);
    drop(store);
    assert_eq!(Db::open_read_only(dir.path()).unwrap().records("r").unwrap(), all);
    assert!(check(dir.path()).unwrap().sound());
}

#[test]
fn runs_that_started_together_are_listed_by_their_names_the_last_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    ["b", "c", "a"].iter().for_each(|id| store.begin(&run(id, 10)).unwrap());
    let listed: Vec<String> = store.runs().unwrap().into_iter().map(|run| run.id).collect();
    assert_eq!(listed, ["c", "b", "a"]);
}

#[test]
fn a_database_says_where_it_is_when_it_is_printed_for_a_log() {
    let dir = tempfile::tempdir().unwrap();
    let said = format!("{:?}", db(dir.path()));
    assert!(said.starts_with("Db { dir: ") && said.contains(dir.path().to_str().unwrap()), "{said}");
}

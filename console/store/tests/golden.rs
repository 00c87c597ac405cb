//! Files of every format ever written still decode. A new format adds a file here and removes none.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod common;
#[path = "common/incidents.rs"]
mod incidents;

use std::fs;
use std::path::{Path, PathBuf};

use common::{db, record, run};
use incidents::incident;
use muster_run::{Record, RunState};
use muster_store::{Db, Store, Table, check};
use muster_wire::{Datum, Direction, Fact, MetricId, Outcome, Reading, Series, Unit};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn series(name: &str, unit: Unit, direction: Direction, values: Vec<f64>) -> Series {
    Series { metric: MetricId::new("disk", name, "io_uring"), unit, direction, values, warmup: 3, started_ns: 99 }
}

/// One record of every kind of content.
fn contents() -> Vec<Record> {
    let fact = |key: &str, reading, unit| Fact { key: key.to_owned(), reading, unit };
    let mut facts = record("v1", "n1", "identity", 0);
    facts.series.clear();
    facts.facts = vec![
        fact("a.number", Reading::Value(Datum::Number(2.5)), Some(Unit::Bytes)),
        fact("a.text", Reading::Value(Datum::Text("Größe".to_owned())), None),
        fact("a.flag", Reading::Value(Datum::Flag(true)), None),
        fact("an.absence", Reading::Absent, None),
        fact("a.refusal", Reading::Denied, None),
        fact("a.failure", Reading::Failed("I/O error".to_owned()), None),
    ];
    let mut disk = record("v1", "n2", "disk", 0);
    disk.series = vec![
        series("seq-read", Unit::BytesPerSec, Direction::HigherIsBetter, vec![1.5e9, 1.25e9, -0.0, f64::INFINITY]),
        series("latency", Unit::Nanos, Direction::LowerIsBetter, (0..100).map(|i| 81_000.0 + f64::from(i)).collect()),
        series("nothing", Unit::Ratio, Direction::LowerIsBetter, Vec::new()),
    ];
    let ended = |node: &str, outcome| Record { outcome, series: Vec::new(), ..record("v1", node, "disk", 0) };
    vec![
        facts,
        disk,
        ended("n3", Outcome::Failed("no space".to_owned())),
        ended("n4", Outcome::Denied("O_DIRECT".to_owned())),
        ended("n5", Outcome::NotRun("busy".to_owned())),
        ended("n6", Outcome::NotApplicable("no disk".to_owned())),
    ]
}

/// A database with the files of one format, and no index.
fn from_golden(format: u32) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["runs", "criteria"] {
        fs::create_dir(dir.path().join(folder)).unwrap();
    }
    fs::copy(golden(&format!("run-v{format}.log")), dir.path().join("runs/v1.log")).unwrap();
    fs::copy(golden(&format!("criteria-v{format}.log")), dir.path().join("criteria/criteria.log")).unwrap();
    for ledger in ["incidents", "models"] {
        fs::copy(golden(&format!("{ledger}-v{format}.log")), dir.path().join(format!("{ledger}.log"))).unwrap();
    }
    dir
}

fn holds_the_contents(store: &Db) {
    assert_eq!(store.records("v1").unwrap(), contents());
    let shown = store.run("v1").unwrap().unwrap();
    let mut want = run("v1", 1_700_000_000_000);
    (want.state, want.ended_ms) = (RunState::Cancelled, Some(1_700_000_009_000));
    assert_eq!(shown, want);
    assert_eq!(store.get(Table::Criteria, "disk/latency@io_uring").unwrap().unwrap(), (0..=255).collect::<Vec<u8>>());
    assert_eq!(store.incidents().unwrap(), [incident(1), incident(2), incident(3)]);
    assert_eq!(store.model(None).unwrap().unwrap(), b"a model");
}

#[test]
fn files_of_format_1_decode() {
    let dir = from_golden(1);
    let store = db(dir.path());
    assert_eq!(store.opened().repairs, Vec::<String>::new());
    holds_the_contents(&store);
    drop(store);
    assert!(check(dir.path()).unwrap().sound());
    assert_eq!(fs::read_to_string(dir.path().join("version")).unwrap(), "1 83dcefb7\n");
}

#[test]
fn a_run_of_format_1_can_be_gone_on_with() {
    let dir = from_golden(1);
    let mut store = db(dir.path());
    store.begin(&run("v1", 5)).unwrap();
    store.append(&record("v1", "n9", "disk", 5)).unwrap();
    drop(store);
    let store = Db::open_read_only(dir.path()).unwrap();
    assert_eq!(store.records("v1").unwrap().len(), contents().len() + 1);
}

#[test]
fn what_is_written_today_is_what_the_newest_golden_file_holds() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    store.begin(&run("v1", 1_700_000_000_000)).unwrap();
    store.append_many(&contents()).unwrap();
    store.end("v1", RunState::Cancelled, 1_700_000_009_000).unwrap();
    store.put(Table::Criteria, "disk/latency@io_uring", &(0..=255).collect::<Vec<u8>>()).unwrap();
    store.record_incidents(&[incident(1), incident(2), incident(3)]).unwrap();
    store.put_model(b"a model").unwrap();
    holds_the_contents(&store);
    drop(store);
    if std::env::var_os("MUSTER_STORE_BLESS").is_some() {
        fs::copy(dir.path().join("runs/v1.log"), golden("run-v1.log")).unwrap();
        fs::copy(dir.path().join("criteria/criteria.log"), golden("criteria-v1.log")).unwrap();
        for ledger in ["incidents", "models"] {
            fs::copy(dir.path().join(format!("{ledger}.log")), golden(&format!("{ledger}-v1.log"))).unwrap();
        }
    }
    let today = plain(&dir.path().join("runs/v1.log"));
    assert!(!today.is_empty());
    assert_eq!(today, plain(&golden("run-v1.log")), "another layout needs another format number");
    let incidents = dir.path().join("incidents.log");
    assert_eq!(plain(&incidents), plain(&golden("incidents-v1.log")), "another layout needs another format number");
}

/// The decompressed payloads: another version of zstd may compress them differently.
fn plain(path: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).unwrap();
    let (mut at, mut found) = (16, Vec::new());
    while at < bytes.len() {
        let end = at + 8 + u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        found.push(zstd::decode_all(&bytes[at + 8..end]).unwrap());
        at = end;
    }
    found
}

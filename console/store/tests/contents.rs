//! A reader takes what lies beside a run file for what is in it as long as it fits, and reads the file otherwise.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{db, record, run};
use muster_run::{Record, RunState};
use muster_store::{Db, Store};

/// A closed database with one finished run of `n` records of `values` values each.
fn filled(dir: &Path, n: usize, values: usize) -> Vec<Record> {
    let records: Vec<Record> = (0..n).map(|i| record("r", &format!("n{i:04}"), "disk", values)).collect();
    let mut store = db(dir);
    store.begin(&run("r", 1)).unwrap();
    store.append_many(&records).unwrap();
    store.end("r", RunState::Finished, 2).unwrap();
    records
}

fn contents(dir: &Path) -> PathBuf {
    dir.join("runs/r.contents")
}

fn listed(dir: &Path) -> usize {
    Db::open_read_only(dir).unwrap().summaries("r").unwrap().len()
}

/// Spoils the last byte of the second record.
fn rot(dir: &Path) {
    let log = dir.join("runs/r.log");
    let mut bytes = fs::read(&log).unwrap();
    let mut at = 16;
    for _ in 0..3 {
        at += 8 + u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    }
    bytes[at - 1] ^= 1;
    fs::write(&log, bytes).unwrap();
}

#[test]
fn a_reader_lists_by_the_contents_and_checks_every_record_that_it_reads() {
    let dir = tempfile::tempdir().unwrap();
    let mut records = filled(dir.path(), 4, 8);
    assert_eq!(Db::open_read_only(dir.path()).unwrap().records("r").unwrap(), records);
    rot(dir.path());
    // Listed though its frame is rotten: the file was not read. Asked for, it is left out and told.
    assert_eq!(listed(dir.path()), 4);
    let store = Db::open_read_only(dir.path()).unwrap();
    records.remove(1);
    assert_eq!(store.records("r").unwrap(), records);
    assert!(store.notices().join("\n").contains("damaged"));
    fs::remove_file(contents(dir.path())).unwrap();
    assert_eq!(listed(dir.path()), 3);
}

#[test]
fn contents_that_are_cut_or_of_another_file_are_not_believed() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let records = filled(dir.path(), 3, 8);
    filled(other.path(), 2, 9);
    let whole = fs::read(contents(dir.path())).unwrap();
    let all = || Db::open_read_only(dir.path()).unwrap().records("r").unwrap();
    for cut in [0, 3, 4, whole.len() / 2, whole.len() - 1] {
        fs::write(contents(dir.path()), &whole[..cut]).unwrap();
        assert_eq!(all(), records, "cut at {cut}");
    }
    fs::copy(contents(other.path()), contents(dir.path())).unwrap();
    assert_eq!(all(), records);
}

#[test]
fn what_is_written_behind_the_contents_is_read_too() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 3, 8);
    let mut store = db(dir.path());
    store.begin(&run("r", 1)).unwrap();
    store.append(&record("r", "new", "disk", 2)).unwrap();
    assert_eq!(listed(dir.path()), 4);
    store.end("r", RunState::Finished, 3).unwrap();
    drop(store);
    let reader = Db::open_read_only(dir.path()).unwrap();
    assert_eq!((reader.summaries("r").unwrap().len(), reader.run("r").unwrap().unwrap().ended_ms), (4, Some(3)));
}

//! A run in short is what its records say, is kept for the next reader, and is not believed over the run file.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{db, record, run};
use muster_run::{Record, Run, RunState};
use muster_store::{Db, NodeSeen, Overview, Store};
use muster_wire::Outcome;

fn records() -> Vec<Record> {
    let of = |node: &str, work: &str, at_ms, elapsed_ns| Record { at_ms, elapsed_ns, ..record("r", node, work, 8) };
    vec![
        of("n2", "disk", 50, 7),
        of("n1", "disk", 20, 9),
        of("n1", "disk#2", 70, 5),
        Record { outcome: Outcome::Failed("no".to_owned()), ..of("n3", "disk", 90, 1) },
        of("n1", "net-pair/n2", 95, 1),
    ]
}

/// A closed database with one finished run.
fn filled(dir: &Path) {
    let mut store = db(dir);
    store.begin(&run("r", 1)).unwrap();
    store.append_many(&records()).unwrap();
    store.end("r", RunState::Finished, 100).unwrap();
}

fn kept(dir: &Path) -> PathBuf {
    dir.join("runs/r.overview")
}

fn log(dir: &Path) -> PathBuf {
    dir.join("runs/r.log")
}

/// All that a reader says without its records, and what it complains of.
fn said(dir: &Path) -> (Vec<Run>, Vec<NodeSeen>, Overview, Vec<String>) {
    let store = Db::open_read_only(dir).unwrap();
    (store.runs().unwrap(), store.nodes().unwrap(), (*store.overview("r").unwrap()).clone(), store.notices())
}

fn forget(dir: &Path) {
    for file in ["runs/r.overview", "runs/r.contents"] {
        let _ = fs::remove_file(dir.join(file));
    }
}

#[test]
fn it_says_of_nodes_and_works_what_the_records_say() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let (_, seen, known, _) = said(dir.path());
    let nodes: Vec<_> = known.nodes.iter().map(|node| (node.name.as_str(), node.last_ms, node.done)).collect();
    assert_eq!(nodes, [("n1", 95, true), ("n2", 50, true), ("n3", 90, false)]);
    let works: Vec<_> = known.works.iter().map(|w| (w.work.as_str(), w.last_ms, &w.elapsed_ns[..])).collect();
    assert_eq!(works, [("disk", 70, &[5, 7, 9][..])], "both visits, nothing that failed, no pairs");
    assert_eq!(seen.iter().map(|node| (node.last_ms, node.runs)).collect::<Vec<_>>(), [(95, 1), (50, 1), (90, 1)]);
}

#[test]
fn with_it_without_it_and_for_a_writer_the_answers_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let with = said(dir.path());
    for file in ["runs/r.overview", "runs/r.contents"] {
        fs::remove_file(dir.path().join(file)).unwrap();
        assert_eq!(said(dir.path()), with, "{file}");
        assert!(kept(dir.path()).exists(), "the reader kept it for the next one");
    }
    forget(dir.path());
    let writer = db(dir.path());
    assert_eq!((writer.runs().unwrap(), writer.nodes().unwrap()), (with.0, with.1));
    assert_eq!(*writer.overview("r").unwrap(), with.2);
}

#[test]
fn a_reader_that_has_it_still_reads_every_record_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let mut all = records();
    all.sort_by(|a, b| (&a.node, &a.work).cmp(&(&b.node, &b.work)));
    let store = Db::open_read_only(dir.path()).unwrap();
    let nodes = store.nodes().unwrap();
    assert_eq!((store.records("r").unwrap(), store.summaries("r").unwrap().len()), (all.clone(), 5));
    assert_eq!(store.records_of("r", "n2").unwrap(), [all[3].clone()]);
    assert_eq!((store.done("r").unwrap().len(), store.nodes().unwrap()), (5, nodes), "no node is counted twice");
}

#[test]
fn one_that_is_cut_rotten_or_of_another_file_is_not_believed() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    filled(dir.path());
    let mut store = db(other.path());
    store.begin(&run("r", 1)).unwrap();
    store.append(&record("r", "n9", "disk", 8)).unwrap();
    store.end("r", RunState::Finished, 2).unwrap();
    drop(store);
    let (with, whole) = (said(dir.path()), fs::read(kept(dir.path())).unwrap());
    for at in 0..whole.len() {
        let mut rotten = whole.clone();
        rotten[at] ^= 0x10;
        fs::write(kept(dir.path()), &rotten).unwrap();
        assert_eq!(said(dir.path()), with, "byte {at}");
        fs::write(kept(dir.path()), &whole[..at]).unwrap();
        assert_eq!(said(dir.path()), with, "cut at {at}");
    }
    fs::copy(kept(other.path()), kept(dir.path())).unwrap();
    assert_eq!(said(dir.path()), with);
}

#[test]
fn what_is_written_behind_it_is_seen_by_readers_new_and_old() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let old = Db::open_read_only(dir.path()).unwrap();
    assert_eq!(old.nodes().unwrap().len(), 3);
    let mut store = db(dir.path());
    store.begin(&run("r", 1)).unwrap();
    store.append(&record("r", "n4", "disk", 2)).unwrap();
    let names = |store: &Db| store.nodes().unwrap().into_iter().map(|node| node.name).collect::<Vec<_>>();
    for reader in [&old, &Db::open_read_only(dir.path()).unwrap()] {
        assert_eq!(names(reader), ["n1", "n2", "n3", "n4"]);
        assert_eq!(reader.run("r").unwrap().unwrap().state, RunState::Running);
        assert_eq!((reader.summaries("r").unwrap().len(), reader.overview("r").unwrap().nodes.len()), (6, 4));
    }
    store.end("r", RunState::Finished, 200).unwrap();
    drop(store);
    for reader in [&old, &Db::open_read_only(dir.path()).unwrap()] {
        assert_eq!((names(reader).len(), reader.run("r").unwrap().unwrap().ended_ms), (4, Some(200)));
    }
}

#[test]
fn a_damaged_file_is_read_and_told_every_time() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let sound = fs::read(log(dir.path())).unwrap();
    // Byte 30 is in the frame that begins the run, the last one in that which ends it.
    for (at, lists) in [(30, true), (sound.len() - 1, true), (sound.len() / 2, false)] {
        let mut rotten = sound.clone();
        rotten[at] ^= 1;
        fs::write(log(dir.path()), &rotten).unwrap();
        if !lists {
            // A rotten record is not noticed by a list; whoever reads it is told.
            assert_eq!(said(dir.path()).3, Vec::<String>::new());
            let store = Db::open_read_only(dir.path()).unwrap();
            assert_eq!(store.records("r").unwrap().len(), 4);
            assert!(store.notices().join("\n").contains("damaged"));
            forget(dir.path());
        }
        for _ in 0..2 {
            assert!(said(dir.path()).3.join("\n").contains("damaged"), "byte {at}");
            fs::remove_file(dir.path().join("runs/r.contents")).unwrap_or_default();
        }
    }
}

#[test]
fn none_is_kept_of_a_run_that_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = db(dir.path());
    store.begin(&run("r", 1)).unwrap();
    store.append_many(&records()).unwrap();
    assert_eq!(said(dir.path()).2, *store.overview("r").unwrap());
    drop(store);
    assert_eq!(said(dir.path()).0[0].state, RunState::Interrupted);
    assert!(!kept(dir.path()).exists());
}

#[test]
fn who_reads_the_whole_of_a_sound_file_keeps_it_and_of_a_damaged_one_nobody_does() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    forget(dir.path());
    let read = said(dir.path());
    assert!(kept(dir.path()).exists());
    assert_eq!(said(dir.path()), read);
    let sound = fs::read(log(dir.path())).unwrap();
    for at in [30, sound.len() / 2] {
        let mut rotten = sound.clone();
        rotten[at] ^= 1;
        fs::write(log(dir.path()), &rotten).unwrap();
        forget(dir.path());
        assert!(said(dir.path()).3.join("\n").contains("damaged"), "byte {at}");
        assert!(!kept(dir.path()).exists(), "byte {at}");
    }
}

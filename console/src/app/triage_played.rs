//! A bundle opened through the whole application, with a made-up user.

use std::io;
use std::path::Path;
use std::sync::Arc;

use muster_store::{Db, Store};
use muster_tui::snapshot::Load;
use muster_tui::{Screen, Snapshot};

use super::rehearsed::{Wanted, rehearsed};
use crate::cases::{self, marks_of};

/// A job of four ranks on two nodes of which rank 3 is behind, and whose kernel knows of a broken GPU on the other node.
fn bundle(dir: &Path) {
    let poll = |minute: u32| {
        let rank = |rank: u64| {
            let (node, count) = (rank / 2, if rank == 3 { 8 } else { 9 });
            format!(
                r#"{{"rank": {rank}, "host": "n{node}", "pid": {rank}, "cuda_dev": {rank}, "nvml_dev": {rank}, "collective_counts": {{"AllReduce": {count}}}}}"#
            )
        };
        let ranks: Vec<String> = (0..4).map(rank).collect();
        format!(
            r#"{{"timestamp": "2026-03-04 05:{minute:02}:00", "communicators": [{{"hash": "0x1", "size": 4, "ranks": [{}], "missing_ranks": []}}]}}"#,
            ranks.join(", ")
        )
    };
    let job = r#"{"nodes": [{"node": "n0", "ranks": [0, 1]}, {"node": "n1", "ranks": [2, 3]}]}"#.to_owned();
    for (path, text) in [("job.json", job), ("ras/poll1.json", poll(1)), ("ras/poll2.json", poll(2))] {
        let file = dir.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
}

/// The console on the bundle at `from`, and what was on the screen at the end.
fn played(from: &Path, db: &Path, words: &[&str], keys: Vec<(char, Wanted)>) -> Arc<Snapshot> {
    rehearsed((&[], db, words), |app| app.triage(from, |_| Ok(())), (Screen::Triage, io::sink()), keys)
}

fn is_open(snapshot: &Snapshot) -> bool {
    snapshot.triage.data.is_some()
}

fn said(snapshot: &Snapshot, word: &str) -> bool {
    snapshot.messages.iter().any(|message| message.text.contains(word))
}

#[test]
fn a_confirmed_cause_is_an_incident_and_a_mark_is_there_the_next_time() {
    let dir = tempfile::tempdir().unwrap();
    let (job, db) = (dir.path().join("job-7"), dir.path().join("db"));
    bundle(&job);
    let confirmed: Wanted = |shown| shown.triage.data.as_ref().is_some_and(|open| !open.confirmed.is_empty());
    let marked: Wanted =
        |shown| shown.triage.data.as_ref().is_some_and(|open| !open.overview.report.marked_wrong.is_empty());
    let keys = vec![('C', is_open as Wanted), ('y', is_open), ('x', confirmed), ('q', marked)];
    let last = played(&job, &db, &[], keys);
    let report = &last.triage.data.as_ref().unwrap().overview.report;
    assert!(report.suspects.is_empty(), "nobody else is suspected: {:?}", report.suspects);
    let incidents = Db::open_read_only(&db).unwrap().incidents().unwrap();
    assert_eq!(incidents.len(), 1, "{incidents:?}");
    let one = &incidents[0];
    assert_eq!((one.node.as_str(), one.source.as_str(), one.category.as_str()), ("n1", "triage", "software"));
    let marks = cases::read(&marks_of(&job)).unwrap();
    assert_eq!((marks.wrong.len(), marks.confirmed.len()), (1, 1));
    // The next time the mark is known, and taken away again.
    let free: Wanted = |shown| shown.triage.data.as_ref().is_some_and(|open| open.overview.report.suspects.len() == 1);
    let last = played(&job, &db, &[], vec![('x', marked), ('q', free)]);
    assert!(last.triage.data.as_ref().unwrap().overview.report.marked_wrong.is_empty());
}

/// The same on nodes of which a port takes connections and never speaks, or refuses them where `speaks_to` is nobody.
fn tested(from: &Path, db: &Path, words: &[&str], port: u16, keys: Vec<(char, Wanted)>) -> Arc<Snapshot> {
    let begin = |app: &mut super::App| {
        let inventory =
            ["n0", "n1"].map(|name| format!("[[nodes]]\nname = \"{name}\"\nhost = \"127.0.0.1\"\nport = {port}\n"));
        app.job.nodes = muster_fleet::Inventory::parse(&inventory.concat(), "made.toml").unwrap().nodes().to_vec();
        app.case = app.case.clone().and_knowing(&app.job.nodes);
        app.triage(from, |_| Ok(()));
    };
    rehearsed((&[], db, words), begin, (Screen::Triage, io::sink()), keys)
}

fn tests(snapshot: &Snapshot) -> bool {
    snapshot.testing.is_some()
}

#[test]
fn nodes_are_tested_without_the_job_and_what_they_show_is_in_the_case_also_the_next_time() {
    let dir = tempfile::tempdir().unwrap();
    let (job, db) = (dir.path().join("job-7"), dir.path().join("db"));
    bundle(&job);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let told: Wanted = |shown| {
        let step =
            |open: &muster_tui::snapshot::Triaged| open.overview.report.steps.iter().any(|s| s.step == "self-tests");
        shown.testing.is_none() && shown.triage.data.as_deref().is_some_and(step)
    };
    let last = tested(&job, &db, &[], free, vec![('O', is_open as Wanted), ('y', is_open), ('q', told)]);
    let report = &last.triage.data.as_ref().unwrap().overview.report;
    let step = report.steps.iter().find(|step| step.step == "offline-diagnosis").unwrap();
    // Nobody could be reached: the job's own evidence stays what it was.
    assert_eq!((step.result.as_str(), report.suspects[0].node.as_deref()), ("undecided", Some("n1")));
    assert_eq!(Db::open_read_only(&db).unwrap().runs().unwrap().len(), 1, "the self-tests are kept as a run");
    played(&job, &db, &[], vec![('q', told)]);
}

#[test]
fn a_test_without_the_job_is_cancelled_like_a_run_and_the_case_stays_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let (job, db) = (dir.path().join("job-7"), dir.path().join("db"));
    bundle(&job);
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let ended: Wanted = |shown| shown.testing.is_none() && said(shown, "diagnosis was cancelled");
    let keys = vec![('O', is_open as Wanted), ('y', is_open), ('c', tests), ('y', tests), ('q', ended)];
    tested(&job, &db, &[], port, keys);
    assert!(!cases::tested_of(&job).exists());
}

#[test]
fn a_case_that_is_replayed_has_one_moment_and_nothing_is_done_on_nodes() {
    let dir = tempfile::tempdir().unwrap();
    let (job, db) = (dir.path().join("job-7"), dir.path().join("db"));
    bundle(&job);
    let begin = |app: &mut super::App| {
        app.play_moment();
        app.triage(&job, |_| Ok(()));
    };
    let keys = ['P', '.', 'R', 'C', 'y', 'O', 'q'].map(|key| (key, is_open as Wanted)).into();
    let last = rehearsed((&["n0", "n1"], &db, &["--read-only"]), begin, (Screen::Triage, io::sink()), keys);
    assert!(last.replay().is_some_and(|replay| replay.is_moment()));
    assert_eq!(last.counts.present().count(), 0, "a case has no results that could be missing");
    let open = last.triage.data.as_ref().unwrap();
    assert_eq!(open.testable, Err("this is a replay: nothing is done on nodes".to_owned()));
    assert!(open.confirmed.is_empty() && !said(&last, "--read-only"), "{:?}", last.messages);
    let store = Db::open_read_only(&db).unwrap();
    assert!(store.runs().unwrap().is_empty() && store.incidents().unwrap().is_empty());
}

#[test]
fn nothing_is_tested_read_only_or_where_nobody_knows_the_nodes() {
    let dir = tempfile::tempdir().unwrap();
    let (job, db) = (dir.path().join("job-7"), dir.path().join("db"));
    bundle(&job);
    let testable = |last: &Snapshot| last.triage.data.as_ref().unwrap().testable.clone();
    let keys = || vec![('O', is_open as Wanted), ('y', is_open), ('q', is_open)];
    let refused = testable(&tested(&job, &db, &["--read-only"], 1, keys())).unwrap_err();
    assert!(refused.contains("--read-only"), "{refused}");
    let refused = testable(&played(&job, &db, &[], keys())).unwrap_err();
    assert!(refused.contains("muster triage offline -w n0,n1"), "{refused}");
    assert!(Db::open_read_only(&db).unwrap().runs().unwrap().is_empty());
}

#[test]
fn read_only_writes_no_incident_and_a_bad_bundle_is_told_on_the_screen() {
    let dir = tempfile::tempdir().unwrap();
    let (job, db) = (dir.path().join("job-7"), dir.path().join("db"));
    bundle(&job);
    let refused: Wanted = |shown| said(shown, "--read-only forbids");
    let keys = vec![('C', is_open as Wanted), ('y', is_open), ('q', refused)];
    played(&job, &db, &["--read-only"], keys);
    assert!(Db::open_read_only(&db).unwrap().incidents().unwrap().is_empty());
    let failed: Wanted = |shown| matches!(shown.triage.load, Load::Failed { .. });
    let last = played(&dir.path().join("nothing"), &db, &[], vec![('q', failed)]);
    let Load::Failed { what, why, .. } = &last.triage.load else { panic!("told") };
    assert!(what == "reading nothing" && why.contains("No such file"), "{what}: {why}");
}

//! Bits that rot on the disk: every command says so, or answers as before; a rebuild makes the database sound again.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use muster_tests::{Draw, Place, run};

/// Commands that answer from the database.
const READERS: [&[&str]; 11] = [
    &["runs", "--json"],
    &["results", "--json"],
    &["results", "--all", "--checks"],
    &["export", "--json"],
    &["export", "--format", "samples"],
    &["nodes", "--json"],
    &["criteria", "list", "--json"],
    &["criteria", "show", "--json", "csv/net/copy"],
    &["incidents", "list", "--json"],
    &["model", "show", "--json"],
    &["gate", "-w", "n01,n02", "--job-hours", "24", "--json"],
];

/// A database with runs, frozen criteria, incidents and a model; and a copy of it.
fn filled(place: &Place) -> PathBuf {
    let _inventory = place.file("none.toml", "[[nodes]]\nnames = \"n[01-12]\"\n");
    for scale in [1.0, 1.1] {
        let mut rows = "node,metric,value\n".to_owned();
        for (node, metric, step) in (1..=12)
            .flat_map(|n| ["net/copy", "net/triad"].map(|m| (n, m)))
            .flat_map(|(n, m)| (0..4).map(move |s| (n, m, s)))
        {
            let value = if node == 7 { 60.0 } else { 100.0 + 0.01 * f64::from(node + step) };
            rows += &format!("n{node:02},{metric},{}\n", value * scale);
        }
        place.text(0, &["import", &place.file("samples.csv", &rows)]);
    }
    place.text(0, &["criteria", "learn"]);
    place.text(0, &["criteria", "freeze", "--all"]);
    let history = "node,start_h,end_h,category\n".to_owned()
        + &(1..40).map(|h| format!("n{:02},{},{},disk\n", h % 12 + 1, h * 30, h * 30 + 2)).collect::<String>();
    place.text(0, &["incidents", "import", &place.file("log.csv", &history), "--origin", "2026-01-01"]);
    place.text(0, &["model", "train"]);
    place.text(0, &["db", "check"]);
    let copy = PathBuf::from(place.path("whole"));
    run(&["cp", "-r", &place.path("db"), copy.to_str().unwrap()]).unwrap();
    copy
}

fn restore(place: &Place, whole: &Path) {
    fs::remove_dir_all(place.path("db")).unwrap();
    run(&["cp", "-r", whole.to_str().unwrap(), &place.path("db")]).unwrap();
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect();
    found.sort();
    found
}

/// Flips one to four bits of a file, within what is written; where they are.
fn flip(path: &Path, draw: &mut Draw) -> Vec<usize> {
    let mut bytes = fs::read(path).unwrap();
    let Some(last) = bytes.iter().rposition(|byte| *byte != 0) else { return Vec::new() };
    let mut below = |n: usize| (draw.unit() * n as f64) as usize;
    let places: Vec<usize> = (0..1 + below(4)).map(|_| below((last + 1) * 8)).collect();
    places.iter().for_each(|bit| bytes[bit / 8] ^= 1 << (bit % 8));
    fs::write(path, bytes).unwrap();
    places
}

fn answer(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn says_so(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    said.contains("database: ") || (output.status.code() == Some(74) && said.starts_with("muster: "))
}

#[test]
fn rotten_bits_are_told_by_every_command_or_change_no_answer() {
    let place = Place::new();
    let whole = filled(&place);
    let before: Vec<_> = READERS.iter().map(|words| answer(&place.muster(words))).collect();
    for ((code, out), words) in before.iter().zip(READERS) {
        assert!(code.is_some_and(|code| code < 4) && !out.is_empty(), "{words:?}: {code:?}");
    }
    let count = std::env::var("MUSTER_FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(26);
    let (mut draw, mut told) = (Draw::new(7), 0);
    for round in 0..count {
        restore(&place, &whole);
        let all = files(Path::new(&place.path("db")));
        let file = &all[round % all.len()];
        let bits = flip(file, &mut draw);
        for (words, before) in READERS.iter().zip(&before) {
            let output = place.muster(words);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                answer(&output) == *before || says_so(&output),
                "{words:?} answers otherwise and says nothing; bits {bits:?} of {}: {said}",
                file.display()
            );
            assert!(!said.contains("panicked"), "{words:?}, bits {bits:?} of {}: {said}", file.display());
            told += usize::from(says_so(&output));
        }
        let rebuilt = place.muster(&["db", "rebuild"]);
        let said = String::from_utf8_lossy(&rebuilt.stdout).into_owned() + &String::from_utf8_lossy(&rebuilt.stderr);
        assert!(
            rebuilt.status.success() || said.contains("the file is gone"),
            "bits {bits:?} of {}: {said}",
            file.display()
        );
        if rebuilt.status.success() {
            assert!(
                place.muster(&["results", "--strict"]).status.code() < Some(4),
                "bits {bits:?} of {}",
                file.display()
            );
        }
    }
    assert!(told > count, "{told} of {} answers said that something is damaged", count * READERS.len());
}

#[test]
fn damaged_records_are_told_where_results_are_read_and_refused_by_strict() {
    let place = Place::new();
    filled(&place);
    let log = files(Path::new(&place.path("db/runs"))).into_iter().rfind(|p| p.extension().is_some_and(|e| e == "log"));
    let log = log.unwrap();
    let mut bytes = fs::read(&log).unwrap();
    // The last byte of the second and of the fourth frame: two records.
    let (mut at, mut frame) = (16, 0);
    while at < bytes.len() {
        at += 8 + u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        frame += 1;
        if [3, 5].contains(&frame) {
            bytes[at - 1] ^= 1;
        }
    }
    fs::write(&log, bytes).unwrap();
    let id = log.file_stem().unwrap().to_str().unwrap();
    let said = format!("2 records of run {id} are damaged and left out (muster db check)");
    for words in [&["results", id][..], &["export", id], &["export", id, "--format", "samples"]] {
        let output = place.muster(words);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(err.contains(&said) && output.status.code() != Some(74), "{words:?}: {err}");
        assert!(place.text(74, &[words, &["--strict"]].concat()).contains(&said));
    }
    assert!(place.text(74, &["db", "check"]).contains("are damaged: the checksum"));
    assert!(place.text(0, &["db", "rebuild"]).contains("moved to"));
    assert!(!place.text(2, &["results", id, "--strict"]).contains("damaged"), "told once, then sound");
}

#[test]
fn an_incident_log_that_is_gone_is_told_by_the_gate() {
    let place = Place::new();
    filled(&place);
    fs::remove_file(place.path("db/incidents.log")).unwrap();
    let output = place.muster(&["gate", "-w", "n01,n02", "--job-hours", "24"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("incidents.log: the file is gone"), "{said}");
}

//! Replays as their users meet them: files that go to another machine, what is wrong with one, and the screen.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use muster_tests::{Place, Terminal, binary};
use serde_json::Value;

/// A run of twelve nodes of which n07 is slow, in the database of `place`; gives its id.
fn imported(place: &Place) -> String {
    let mut rows = "node,metric,value\n".to_owned();
    for (node, step) in (1..=12).flat_map(|node| (0..16).map(move |step| (node, step))) {
        let value = if node == 7 { 60.0 } else { 100.0 } + 0.01 * f64::from((node * 5 + step * 3) % 11);
        rows += &format!("n{node:02},triad,{value}\n");
    }
    let report = place.json(0, "muster.import.json", &["import", "--json", &place.file("samples.csv", &rows)]);
    report["run"].as_str().or(report["id"].as_str()).unwrap_or_default().to_owned()
}

/// Without the times at which somebody asked.
fn timeless(mut report: Value) -> Value {
    report.as_object_mut().unwrap().remove("asked_ms");
    report
}

#[test]
fn a_run_says_the_same_on_a_machine_that_only_has_its_file() {
    let (here, there) = (Place::new(), Place::new());
    imported(&here);
    let file = here.path("run.replay");
    let said = here.text(0, &["export", "--format", "replay", "-o", &file]);
    assert!(said.contains("holds host names, addresses and serial numbers"), "{said}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let stored = here.json(2, "muster.run.json", &["results", "--json"]);
    for (place, arguments) in [
        (&here, &["replay", "--json"][..]),
        (&here, &["replay", &file, "--json"]),
        (&there, &["replay", &file, "--json"]),
    ] {
        assert_eq!(timeless(place.json(2, "muster.run.json", arguments)), timeless(stored.clone()), "{arguments:?}");
    }
    assert_eq!(there.text(2, &["replay", &file, "--headless"]), here.text(2, &["replay", "--headless"]));
    assert!(there.text(74, &["runs"]).contains("no database"), "nothing was written");
}

#[test]
fn a_recording_and_a_case_go_along_as_files_and_say_the_same() {
    let (here, there) = (Place::new(), Place::new());
    let mut rows = "time_s,node,metric,value\n".to_owned();
    for (second, node) in (0..720).flat_map(|second| (1..=6).map(move |node| (second, node))) {
        for (metric, level) in [("gpu_power_w", 500.0), ("tensor_active", 0.6)] {
            let noise = 1.0 + 0.02 * f64::from((second * 7 + node * 13) % 11) / 11.0;
            let share = if node == 3 && second >= 360 { 0.6 } else { 1.0 };
            rows += &format!("{},n{node:02},{metric},{}\n", 1_760_000_000 + second, level * noise * share);
        }
    }
    let (csv, file) = (here.file("hurt.csv", &rows), here.path("hurt.replay"));
    let live = here.json(2, "muster.watch.json", &["watch", "--from", &csv, "--json"]);
    here.text(0, &["export", "--recording", &csv, "--format", "replay", "-o", &file]);
    assert_eq!(there.json(2, "muster.watch.json", &["replay", &file, "--json"]), live);
    assert_eq!(there.json(2, "muster.watch.json", &["replay", &csv, "--json"]), live);
    let poll = |minute: u32| {
        let rank = |rank: u64| {
            let (host, count) = (rank / 2, if rank == 3 { 8 } else { 9 });
            format!(
                r#"{{"rank": {rank}, "host": "n{host}", "pid": {rank}, "cuda_dev": {rank}, "nvml_dev": {rank}, "collective_counts": {{"AllReduce": {count}}}}}"#
            )
        };
        let ranks: Vec<String> = (0..4).map(rank).collect();
        format!(
            r#"{{"timestamp": "2026-03-04 05:{minute:02}:00", "communicators": [{{"hash": "0x1", "size": 4, "ranks": [{}], "missing_ranks": []}}]}}"#,
            ranks.join(", ")
        )
    };
    let bundle = here.path("job-7");
    std::fs::create_dir_all(format!("{bundle}/ras")).unwrap();
    let job = r#"{"nodes": [{"node": "n0", "ranks": [0, 1]}, {"node": "n1", "ranks": [2, 3]}]}"#;
    for (name, text) in [("job.json", job.to_owned()), ("ras/poll1.json", poll(1)), ("ras/poll2.json", poll(2))] {
        std::fs::write(format!("{bundle}/{name}"), text).unwrap();
    }
    let file = here.path("job.replay");
    let live = here.json(2, "muster.triage.json", &["triage", "--from", &bundle, "--json"]);
    here.text(0, &["export", "--case", &bundle, "--format", "replay", "-o", &file]);
    assert_eq!(there.json(2, "muster.triage.json", &["replay", &file, "--json"]), live);
    assert_eq!(there.json(2, "muster.triage.json", &["replay", &bundle, "--json"]), live);
}

#[test]
fn what_is_wrong_with_a_file_or_a_name_is_said_with_its_exit_code() {
    let place = Place::new();
    imported(&place);
    let file = place.path("run.replay");
    place.text(0, &["export", "--format", "replay", "-o", &file]);
    let whole = std::fs::read(&file).unwrap();
    let damaged = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let (mut bytes, path) = (whole.clone(), place.path(name));
        change(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let middle = whole.len() / 2;
    let rotten = damaged("rotten.replay", &|bytes| bytes[middle] ^= 1);
    let cut = damaged("cut.replay", &|bytes| bytes.truncate(middle));
    let newer = damaged("newer.replay", &|bytes| bytes[12] = 7);
    let other = place.file("other.replay", "hello");
    let none = place.path("nosuch.replay");
    for (code, what, said) in [
        (74, &rotten, "rotten.replay: damaged at byte "),
        (74, &cut, "cut.replay: cut off at byte "),
        (74, &newer, "newer.replay: written by a newer muster (format 7"),
        (78, &other, "other.replay: not a muster replay file"),
        (74, &none, "nosuch.replay: there is no such file"),
        (64, &"nosuchrun".to_owned(), "there is no run 'nosuchrun'"),
        (64, &"import".to_owned(), "did you mean 2"),
    ] {
        let text = place.text(code, &["replay", what, "--headless"]);
        assert!(text.contains(said), "{what}: {text}");
    }
    for (arguments, said) in [
        (&["export", "--format", "replay"][..], "--output names its file"),
        (&["export", "--format", "replay", "--redact", "names", "-o", &none], "--redact names: a replay file holds"),
        (&["export", "--format", "replay", "--node", "n01", "-o", &none], "holds a whole run"),
        (&["replay", "--speed", "0"], "is not a number from 0.1 to 100000"),
        (&["replay", "--speed", "2", "--json"], "cannot be used with"),
    ] {
        let text = place.text(64, arguments);
        assert!(text.contains(said), "{arguments:?}: {text}");
    }
    assert!(Place::new().text(74, &["replay"]).contains("no database"));
}

#[test]
fn the_recordings_that_come_with_muster_say_what_they_are_for() {
    let place = Place::new();
    let run = place.json(2, "muster.run.json", &["replay", "demo", "--json"]);
    assert_eq!(run["summary"]["fail"], Value::from(1), "one node of the demo is slow");
    let watch = place.json(2, "muster.watch.json", &["replay", "demo-watch", "--json"]);
    assert_eq!(watch["alerts"].as_array().unwrap().len(), 1);
    let case = place.json(2, "muster.triage.json", &["replay", "demo-case", "--json"]);
    assert_eq!(case["category"], Value::from("hang-not-launched"));
}

#[test]
fn on_the_screen_a_replay_can_be_paused_moved_and_left() {
    let dir = tempfile::tempdir().unwrap();
    let open = |what: &str| {
        let mut command = Command::new(binary());
        command.env("MUSTER_DB", dir.path().join("db")).env("HOME", dir.path()).env("TERM", "xterm-256color");
        command.env("MUSTER_INVENTORY", dir.path().join("none.toml")).args(["replay", what]);
        let size = (24.try_into().unwrap(), 120.try_into().unwrap());
        Terminal::open(&command, size).unwrap()
    };
    let mut screen = open("demo");
    screen.shows("REPLAY").unwrap();
    screen.press("P").unwrap();
    screen.shows("paused").unwrap();
    screen.press("}").unwrap();
    screen.wait("the end", |text| text.contains(", over") && text.contains("1 fail")).unwrap();
    screen.press("{").unwrap();
    screen.wait("the start", |text| text.contains("0:00 of") && !text.contains("1 fail")).unwrap();
    screen.press("q").unwrap();
    assert_eq!(screen.ended().unwrap(), Some(0));
    for (what, shown, said) in
        [("demo-watch", "REPLAY", ", paused"), ("demo-case", "hang-not-launched", "this recording is of one moment")]
    {
        let mut screen = open(what);
        screen.shows(shown).unwrap();
        screen.press("P").unwrap();
        let counts = |text: &str| text.lines().next().is_some_and(|line| line.contains("not run"));
        screen.wait("what P does", |text| text.contains(said) && !counts(text)).unwrap();
        screen.press("q").unwrap();
        assert_eq!(screen.ended().unwrap(), Some(0), "{what}");
    }
    assert!(!dir.path().join("db").exists(), "nothing was written");
}

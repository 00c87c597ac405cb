//! The demo names the slowed node and nobody else. Needs no root.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use muster_tests::{BUSY, Lacks, Load, Try, binary, decide_where_steady, skip};
use serde_json::Value;

fn demo(arguments: &[&str]) -> (Option<i32>, Value) {
    demo_in(tempfile::tempdir().unwrap().path(), arguments)
}

fn demo_in(place: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let mut command = Command::new(binary());
    command.env("XDG_DATA_HOME", place).env("TMPDIR", place).args(["demo", "--headless", "--json", "--minutes", "1"]);
    let output = command.args(arguments).output().unwrap();
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), report)
}

fn failed(report: &Value) -> Vec<String> {
    let nodes = report["nodes"].as_array().unwrap();
    nodes.iter().filter(|n| n["state"] == "fail").map(|n| n["node"].as_str().unwrap().to_owned()).collect()
}

/// How many nodes were not judged, and why the first was not.
fn reasons(report: &Value) -> String {
    let nodes = report["nodes"].as_array().unwrap();
    let unknown: Vec<&Value> = nodes.iter().filter(|node| node["state"] == "unknown").collect();
    let first = unknown.first().map_or(String::new(), |node| node["reasons"][0].to_string());
    format!("{} of {} nodes were not judged, the first as {first}", unknown.len(), nodes.len())
}

/// Whether other programs kept this machine so busy that nodes were not judged.
fn busy(report: &Value) -> bool {
    report["nodes"].to_string().contains("foreign CPU load")
}

#[test]
fn the_slowed_node_alone_fails() {
    // A busy machine may leave a run undecided, never wrong: then there is another try.
    decide_where_steady("the_slowed_node_alone_fails", 3, || {
        let load = Load::start(None);
        let (code, report) = demo(&["--nodes", "12", "--slow", "1", "--seed", "11"]);
        let others = load.others(None);
        let slowed: Vec<String> = serde_json::from_value(report["demo"]["slowed"].clone()).unwrap();
        assert_eq!(slowed.len(), 1);
        let failed = failed(&report);
        let state =
            report["nodes"].as_array().unwrap().iter().find(|node| node["node"] == slowed[0]).unwrap()["state"].clone();
        assert_ne!(state, "pass", "{report}");
        if failed.is_empty() && matches!(code, Some(1 | 3)) {
            return Try::new(Some(reasons(&report)), others);
        }
        assert_eq!(code, Some(2), "{report}");
        let nodes = report["nodes"].as_array().unwrap().iter();
        let sound = nodes.filter(|node| node["state"] == "fail" && node["node"] != slowed[0]);
        let accused: Vec<String> = sound.map(|node| format!("{}: {}", node["node"], node["reasons"])).collect();
        assert!(!accused.is_empty() || failed == slowed, "{report}");
        Try { accused, ..Try::new(None, others) }
    });
}

#[test]
fn of_virtual_nodes_the_slowed_ones_alone_fail_and_what_they_cost_the_console_is_told() {
    let place = tempfile::tempdir().unwrap();
    let (code, report) = demo_in(place.path(), &["--virtual", "40", "--slow", "3", "--seed", "7", "--pace", "20"]);
    let slowed: Vec<String> = serde_json::from_value(report["demo"]["slowed"].clone()).unwrap();
    assert_eq!((slowed.len(), report["nodes"].as_array().unwrap().len()), (3, 40));
    let state = |node: &Value| node["state"].as_str().unwrap().to_owned();
    assert_eq!((failed(&report), code), (slowed, Some(2)), "{report}");
    let passed = report["nodes"].as_array().unwrap().iter().filter(|node| state(node) == "pass").count();
    assert_eq!(passed, 37, "{report}");
    for key in ["cpu_s", "rss_mb", "wall_s", "verdict_s"] {
        assert!(report["cost"][key].as_f64().unwrap() > 0.0, "{}", report["cost"]);
    }
    // Every node was sent the probe, of which no more than two thirds can be packed away.
    assert!(report["cost"]["bytes"].as_u64().unwrap() > 40 << 20, "{}", report["cost"]);
    // Neither the servers nor their keys outlive the demo.
    let whole = place.path().as_os_str().as_encoded_bytes();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let ours = lines.filter(|line| line.windows(whole.len()).any(|part| part == whole));
    assert_eq!(ours.count(), 0);
    let left = std::fs::read_dir(place.path()).unwrap().flatten();
    assert_eq!(left.filter(|entry| entry.file_name().to_string_lossy().starts_with("muster-demo-")).count(), 0);
}

/// Processes that were started from below `place`.
fn started_from(place: &Path) -> usize {
    let place = place.to_str().unwrap();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.starts_with(place.as_bytes())).count()
}

fn wait_for(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_job_of_the_demo_is_watched_says_what_it_hurt_and_ends_with_the_demo() {
    let place = tempfile::tempdir().unwrap();
    let schema = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/schemas/muster.watch.json"));
    let schema: Value = serde_json::from_str(&schema.unwrap()).unwrap();
    let mut command = Command::new(binary());
    command.env("XDG_DATA_HOME", place.path()).env("TMPDIR", place.path());
    command.args(["demo", "--headless", "--json", "--nodes", "4", "--minutes", "1", "--seed", "2"]);
    let output = command.args(["--job", "hang", "--after", "5s", "--ranks", "2"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&report), "{report:#}");
    let hurt: Vec<String> = serde_json::from_value(report["demo"]["hurt"].clone()).unwrap();
    assert_eq!((hurt.len(), report["nodes"].as_u64()), (1, Some(4)), "{report:#}");
    let told: Vec<&str> = report["metrics"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(told.contains(&"job_stopped_pct") && told.iter().all(|name| name.starts_with("job_")), "{told:?}");
    // A minute is too short to know what is usual: nobody is named.
    assert_eq!((output.status.code(), &report["alerts"]), (Some(3), &serde_json::json!([])), "{report:#}");
    assert_eq!(started_from(place.path()), 0);
}

#[test]
fn a_console_that_is_killed_leaves_no_rank_of_its_demo() {
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(binary());
    command.env("XDG_DATA_HOME", place.path()).env("TMPDIR", place.path());
    command.args(["demo", "--headless", "--json", "--nodes", "4", "--job", "ok"]);
    let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("the ranks never started", || started_from(place.path()) >= 4);
    running.kill().unwrap();
    running.wait().unwrap();
    wait_for("ranks are left", || started_from(place.path()) == 0);
}

#[test]
fn a_fleet_without_a_slow_node_accuses_nobody_and_its_samples_teach_the_same_criteria_again() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let db = db.to_str().unwrap();
    let load = Load::start(None);
    let (code, report) = demo(&["--nodes", "5", "--slow", "0", "--seed", "4", "--db", db]);
    assert_eq!(failed(&report), Vec::<String>::new());
    assert!(matches!(code, Some(0 | 3)), "{code:?}");
    let others = load.others(None);
    if busy(&report) || others > BUSY {
        // The run leaves values of busy moments out of what it learns; a table has no such moments.
        let test = "a_fleet_without_a_slow_node_accuses_nobody_and_its_samples_teach_the_same_criteria_again";
        return skip(test, Lacks::Quiet, &format!("others used {others:.2} CPUs"));
    }
    let muster = |arguments: &[&str]| {
        let output = Command::new(binary()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let file = dir.path().join("samples.csv");
    std::fs::write(&file, muster(&["export", "--format", "samples", "--db", db])).unwrap();
    let lower = ["cpu-latency/*", "cpu-dispatch/*", "*latency@*", "*rtt*"].map(|p| format!("--lower-is-better={p}"));
    let mut arguments = vec!["criteria", "learn", "--json", "--from", file.to_str().unwrap(), "--higher-is-better=*"];
    arguments.extend(lower.iter().map(String::as_str));
    let learned: Value = serde_json::from_slice(&muster(&arguments)).unwrap();
    let known = report["criteria"].as_array().unwrap();
    assert!(known.len() >= 19, "{}", known.len());
    for criterion in known {
        let name = format!("{}@{}", criterion["metric"].as_str().unwrap(), criterion["engine"].as_str().unwrap());
        let same = |c: &&Value| c["metric"] == criterion["metric"] && c["engine"] == criterion["engine"];
        let again = learned["criteria"].as_array().unwrap().iter().find(same);
        let again = again.unwrap_or_else(|| panic!("{name} is not in the table"));
        assert_eq!(again["direction"], criterion["direction"], "{name}");
        let close = |key: &str| (again[key].as_f64().unwrap() - criterion[key].as_f64().unwrap()).abs() < 1e-9;
        assert!(again["status"] == criterion["status"] && close("repeatability"), "{name}: {again} and {criterion}");
    }
}

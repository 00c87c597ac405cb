//! Networks that go away and come back, on real OpenSSH nodes: a gap costs what it lasts, and nobody who was lost is forgotten.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::process::Child;
use std::time::{Duration, Instant};

use muster_tests::{Console, Fleet, Lacks, Options, Ran, is_root, skip};
use serde_json::Value;

const THREE_STEPS: &str = r#"
name = "three"
title = "Three short steps"
profile = "quick"
[[steps]]
id = "first"
run = ["cpu-dispatch"]
[[steps]]
id = "second"
collect = ["identity"]
[[steps]]
id = "third"
profile = "smoke"
run = ["cpu-stream"]
"#;

/// How long the bridge is down.
const GAP: Duration = Duration::from_secs(18);
/// What a gap may cost beyond that: until it is noticed that it is over, and the benchmark that begins anew.
const BESIDE: Duration = Duration::from_secs(25);

fn start(fleet: &Fleet, console: &Console, more: &[&str]) -> Child {
    let file = fleet.path("three.toml");
    std::fs::write(&file, THREE_STEPS).unwrap();
    console.start(&[&["run", &file, "--alpha", "0.001", "--visits", "1", "--json"], more].concat()).unwrap()
}

fn ended(child: Child) -> Ran {
    child.wait_with_output().unwrap().into()
}

/// Benchmarks of which a node has values.
fn measured(report: &Value, node: &str) -> Vec<String> {
    let found = report["nodes"].as_array().unwrap().iter().find(|n| n["node"] == node).unwrap();
    let values = found["verdicts"].as_array().unwrap().iter().filter(|v| v["value"].is_number());
    let mut names: Vec<String> =
        values.map(|v| v["metric"].as_str().unwrap().split('/').next().unwrap().to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

/// Where the newest run stands.
fn state(console: &Console) -> String {
    let runs = console.run(&["runs", "--json"]).unwrap().json().unwrap();
    runs["runs"][0]["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_bridge_that_is_down_for_18_seconds_in_the_first_of_three_steps_costs_18_seconds() {
    if !is_root() {
        return skip(
            "a_bridge_that_is_down_for_18_seconds_in_the_first_of_three_steps_costs_18_seconds",
            Lacks::Root,
            "for namespaces",
        );
    }
    let mut fleet = Fleet::up(Options { nodes: 3 }).unwrap();
    let console = fleet.console();
    let begun = Instant::now();
    let calm = ended(start(&fleet, &console, &["--new"]));
    let usual = begun.elapsed();
    let both = ["cpu-dispatch", "cpu-stream"];
    assert_eq!(measured(&calm.json().unwrap(), "n001"), both, "{}", calm.err);

    let begun = Instant::now();
    let running = start(&fleet, &console, &["--new"]);
    for node in ["n001", "n002", "n003"] {
        fleet.wait_until_measuring(node).unwrap();
    }
    fleet.bridge(false).unwrap();
    std::thread::sleep(GAP);
    fleet.bridge(true).unwrap();
    let ran = ended(running);
    let took = begun.elapsed();
    let report = ran.json().unwrap();
    for node in ["n001", "n002", "n003"] {
        assert_eq!(measured(&report, node), both, "{node}: {}", ran.err);
    }
    let said = "n[001-003]: 3 of 3 nodes lost within 10 s: probably the network or a switch";
    assert!(ran.err.contains(said), "{}", ran.err);
    assert_eq!(state(&console), "finished");
    println!("{:.1} s without the gap, {:.1} s with it", usual.as_secs_f64(), took.as_secs_f64());
    assert!(took < usual + GAP + BESIDE, "{took:?} against {usual:?}\n{}", ran.err);
    for node in ["n001", "n002", "n003"] {
        assert_eq!(fleet.node(node).probes(), 0, "a probe was left on {node}");
    }
}

#[test]
fn a_node_that_never_ends_its_first_step_keeps_nobody_from_the_next_ones() {
    if !is_root() {
        return skip(
            "a_node_that_never_ends_its_first_step_keeps_nobody_from_the_next_ones",
            Lacks::Root,
            "for namespaces",
        );
    }
    let mut fleet = Fleet::up(Options { nodes: 3 }).unwrap();
    let program = std::fs::read(env!("CARGO_BIN_EXE_hostile-probe")).unwrap();
    fleet.node("n003").hostile(&program, "stalls").unwrap();
    let console = fleet.console();
    let mut running = start(&fleet, &console, &["--new"]);
    let (mut through, until) = (Vec::new(), Instant::now() + Duration::from_secs(600));
    while through.len() < 2 {
        assert!(Instant::now() < until && running.try_wait().unwrap().is_none(), "only {through:?} were through");
        std::thread::sleep(Duration::from_millis(200));
        through = through_the_last_step(&console);
    }
    assert_eq!(through, ["n001", "n002"]);
    let stop = ["-INT", &running.id().to_string()];
    assert!(std::process::Command::new("kill").args(stop).status().unwrap().success());
    let ran = ended(running);
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    // It was at its first step all the time, and no longer than that allows.
    assert!(!ran.err.contains("took longer"), "{}", ran.err);
    let report = ran.json().unwrap();
    assert!(measured(&report, "n003").is_empty(), "{report}");
    assert_eq!(measured(&report, "n001"), ["cpu-dispatch", "cpu-stream"], "{}", ran.err);
}

/// Nodes with values of the last of the three steps, as a reader finds them while the run goes on.
fn through_the_last_step(console: &Console) -> Vec<String> {
    // Before the run begins there is nothing to read.
    let Ok(runs) = console.run(&["runs", "--json"]).unwrap().json() else { return Vec::new() };
    let Some(id) = runs["runs"][0]["id"].as_str() else { return Vec::new() };
    let table = console.run(&["export", id, "--format", "samples"]).unwrap().out;
    let has = |node: &&str| table.lines().any(|line| line.contains(*node) && line.contains("cpu-stream"));
    ["n001", "n002", "n003"].into_iter().filter(|node| has(node)).map(str::to_owned).collect()
}

#[test]
fn a_run_that_lost_a_node_is_incomplete_and_the_next_one_asks_that_node_again() {
    if !is_root() {
        return skip(
            "a_run_that_lost_a_node_is_incomplete_and_the_next_one_asks_that_node_again",
            Lacks::Root,
            "for namespaces",
        );
    }
    let mut fleet = Fleet::up(Options { nodes: 3 }).unwrap();
    let console = fleet.console();
    let running = start(&fleet, &console, &["--new"]);
    fleet.wait_until_measuring("n002").unwrap();
    fleet.unplug("n002").unwrap();
    let ran = ended(running);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert_eq!(state(&console), "incomplete", "{}", ran.err);
    let report = ran.json().unwrap();
    let found = report["nodes"].as_array().unwrap().iter().find(|n| n["node"] == "n002").unwrap();
    assert_eq!(found["state"], "unknown", "{found}");
    assert!(!ran.err.contains("a switch"), "one node alone is no outage: {}", ran.err);
    assert!(ran.err.contains("is incomplete"), "{}", ran.err);

    fleet.plug_in("n002").unwrap();
    let resumed = ended(start(&fleet, &console, &[]));
    assert!(resumed.err.contains("resuming run"), "{}", resumed.err);
    let again = resumed.json().unwrap();
    assert_eq!(again["run"]["id"], report["run"]["id"]);
    assert_eq!(measured(&again, "n002"), ["cpu-dispatch", "cpu-stream"], "{}", resumed.err);
    assert_eq!(state(&console), "finished");
}

/// A scan of all pairs in seven rounds.
const EIGHT: [&str; 10] =
    ["run", "network-full", "--profile", "smoke", "--new", "--json", "--alpha", "0.001", "--visits", "1"];

/// Pairs measured, those that failed, and nodes left out.
fn scanned(report: &Value) -> (u64, u64, usize) {
    let run = &report["network"]["run"];
    (run["visits"].as_u64().unwrap(), run["failed"].as_u64().unwrap(), run["left_out"].as_array().unwrap().len())
}

#[test]
fn a_bridge_that_is_down_during_a_scan_of_pairs_costs_no_pair_and_no_node() {
    if !is_root() {
        let test = "a_bridge_that_is_down_during_a_scan_of_pairs_costs_no_pair_and_no_node";
        return skip(test, Lacks::Root, "for namespaces");
    }
    let mut fleet = Fleet::up(Options { nodes: 8 }).unwrap();
    let console = fleet.console();
    let running = console.start(&EIGHT).unwrap();
    until_paired(&console);
    fleet.bridge(false).unwrap();
    std::thread::sleep(GAP);
    fleet.bridge(true).unwrap();
    let ran = ended(running);
    let report = ran.json().unwrap();
    assert_eq!(scanned(&report), (28, 0, 0), "{}", ran.err);
    assert_eq!(state(&console), "finished", "{}", ran.err);
    for node in ["n001", "n004", "n008"] {
        assert_eq!(fleet.node(node).probes(), 0, "a probe was left on {node}");
    }
}

#[test]
fn a_node_that_goes_away_during_a_scan_of_pairs_leaves_it_incomplete_and_the_next_run_measures_its_pairs() {
    if !is_root() {
        let test =
            "a_node_that_goes_away_during_a_scan_of_pairs_leaves_it_incomplete_and_the_next_run_measures_its_pairs";
        return skip(test, Lacks::Root, "for namespaces");
    }
    let fleet = Fleet::up(Options { nodes: 8 }).unwrap();
    let console = fleet.console();
    let running = console.start(&EIGHT).unwrap();
    until_paired(&console);
    fleet.unplug("n003").unwrap();
    let ran = ended(running);
    let report = ran.json().unwrap();
    let (visits, _, left_out) = scanned(&report);
    assert!(visits < 28 && left_out == 1, "{report:#}");
    assert_eq!(state(&console), "incomplete", "{}", ran.err);
    assert_ne!(ran.code, Some(0), "{}", ran.err);
    fleet.plug_in("n003").unwrap();
    let again: Vec<&str> = EIGHT.into_iter().filter(|word| *word != "--new").collect();
    let resumed = ended(console.start(&again).unwrap());
    let report = resumed.json().unwrap();
    let (visits, failed, left_out) = scanned(&report);
    assert_eq!((visits, failed, left_out), (28, 0, 0), "{}", resumed.err);
    assert_eq!(state(&console), "finished", "{}", resumed.err);
}

/// Waits until the first round of pairs is stored.
fn until_paired(console: &Console) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(200));
        let seen = console.run(&["pairs", "--run", "--json"]).unwrap();
        if seen.json().is_ok_and(|seen| seen["run"]["rounds"].as_u64() >= Some(1)) {
            return;
        }
    }
    panic!("no round was ever recorded");
}

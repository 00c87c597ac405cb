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

//! The main job on real OpenSSH nodes with real faults, as root; skipped loudly elsewhere.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::collections::BTreeSet;
use std::time::Duration;

use muster_tests::{Fleet, Options, is_root, skip};
use serde_json::Value;

fn state_of(report: &Value, node: &str) -> (String, String) {
    let nodes = report["nodes"].as_array().unwrap();
    let found = nodes.iter().find(|n| n["node"] == node).unwrap_or_else(|| panic!("{node} is not in the report"));
    (found["state"].as_str().unwrap().to_owned(), found["reasons"].to_string())
}

#[test]
fn sixteen_nodes_with_five_faults_are_each_named_with_the_right_reason() {
    if !is_root() {
        return skip("sixteen_nodes_with_five_faults", "needs root for namespaces and cgroups");
    }
    // A machine may be too noisy to let a healthy node pass; it must never accuse one, nor fail to name the faulty.
    for _ in 0..3 {
        let (report, code) = scan_with_five_faults();
        let undecided = check(&report);
        assert_eq!(code, Some(2));
        if undecided.is_empty() {
            return;
        }
        eprintln!("undecided, measured again: {undecided:?}");
    }
    skip(
        "sixteen_nodes_with_five_faults",
        "the faults were named, but this machine is too noisy for the others to pass",
    );
}

fn scan_with_five_faults() -> (Value, Option<i32>) {
    let mut fleet = Fleet::up(Options { nodes: 16 }).unwrap();
    fleet.node("n003").limit_cpu(60).unwrap();
    fleet.node("n005").limit_disk(20_000_000).unwrap();
    fleet.node("n009").kill();
    fleet.change_recorded_key("n011").unwrap();
    let console = fleet.console();
    // One at a time: the nodes share this machine's cores.
    let running = console.start(&["run", "demo", "--fan-out", "1", "--json", "--new"]).unwrap();
    fleet.wait_until_measuring("n007").unwrap();
    fleet.node("n007").kill();
    let ran: muster_tests::Ran = running.wait_with_output().unwrap().into();
    (ran.json().unwrap(), ran.code)
}

/// Nodes without a fault that nothing could be said of.
fn check(report: &Value) -> Vec<String> {
    let faults = [
        ("n003", "fail", "cpu metrics"),
        ("n005", "fail", "disk metrics"),
        ("n007", "unknown", "n007: run: "),
        ("n009", "unknown", "n009: connect: "),
        ("n011", "unknown", "host key"),
    ];
    let mut undecided = Vec::new();
    for node in (1..=16).map(|index| format!("n{index:03}")) {
        let (found, reasons) = state_of(report, &node);
        match faults.iter().find(|(faulty, ..)| *faulty == node) {
            Some((_, state, words)) => {
                assert!(found == *state && reasons.contains(words), "{node} is {found}: {reasons}");
            }
            None if found == "pass" => {}
            None => {
                assert_eq!(found, "unknown", "{node} has no fault: {reasons}");
                undecided.push(format!("{node}: {reasons}"));
            }
        }
    }
    undecided
}

#[test]
fn ten_kills_at_random_moments_lose_no_acknowledged_sample() {
    if !is_root() {
        return skip("ten_kills_at_random_moments", "needs root for namespaces");
    }
    let fleet = Fleet::up(Options { nodes: 4 }).unwrap();
    let console = fleet.console();
    let mut before = BTreeSet::new();
    for round in 0..10_u64 {
        let mut running = console.start(&["run", "cbd-light", "--fan-out", "2", "--json"]).unwrap();
        // Different moments each round, from the handshake to the middle of a benchmark.
        std::thread::sleep(Duration::from_millis(300 + (round * 1_237) % 2_900));
        running.kill().unwrap();
        running.wait().unwrap();
        let now = kept(&console);
        assert!(before.is_subset(&now), "round {round} lost {:?}", before.difference(&now));
        before = now;
    }
    let last = console.run(&["run", "cbd-light", "--fan-out", "2", "--json"]).unwrap();
    assert!(last.json().is_ok(), "{}", last.err);
    assert!(before.is_subset(&kept(&console)));
    let check = console.run(&["db", "check"]).unwrap();
    assert_eq!(check.code, Some(0), "{}{}", check.out, check.err);
    let runs = console.run(&["runs", "--json"]).unwrap().json().unwrap();
    assert!(runs.as_array().unwrap().len() < 10, "killed runs are taken up again, not begun anew: {runs}");
}

/// What a reader finds: run, node and metric of every stored series.
fn kept(console: &muster_tests::Console) -> BTreeSet<(String, String, String)> {
    let mut kept = BTreeSet::new();
    // A console killed before its first write leaves no database.
    let Ok(runs) = console.run(&["runs", "--json"]).unwrap().json() else { return kept };
    for run in runs.as_array().unwrap() {
        let id = run["id"].as_str().unwrap();
        let report = console.run(&["results", id, "--json"]).unwrap().json().unwrap();
        for node in report["nodes"].as_array().unwrap() {
            for verdict in node["verdicts"].as_array().unwrap().iter().filter(|v| v["value"].is_number()) {
                kept.insert((id.to_owned(), node["node"].to_string(), verdict["metric"].to_string()));
            }
        }
    }
    kept
}

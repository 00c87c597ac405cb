//! Nodes that lie, flood and forge, on real OpenSSH nodes: each costs its own verdict and 2 MB of the console, and nobody else's.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::process::Child;
use std::time::Duration;

use muster_tests::{Fleet, Lacks, Options, Ran, is_root, skip};
use serde_json::Value;

/// A look at all nodes at the same time, and a measurement of those that are left of them, one after another.
const PLAYBOOK: &str = r#"
name = "hostile"
title = "A look and one short benchmark"
profile = "smoke"
[[steps]]
id = "look"
check = ["swap", "cpu-online"]
collect = ["identity", "cpu", "memory", "disk", "nic", "pcie", "kernel", "time"]
drop_failed = true
[[steps]]
id = "measure"
run = ["cpu-stream"]
"#;

/// Most that a hostile node may cost the console, kilobytes.
const COST: u64 = 2_048;
const HONEST: usize = 4;

/// What a node does, and what must be said of it.
const HOSTILE: [(&str, &str, &[&str]); 13] = [
    ("asked", "fail", &["speaks out of turn: sent a result of 'console/asked'", "times more"]),
    ("link", "fail", &["speaks out of turn: sent a result of 'link'", "times more"]),
    ("pairs", "fail", &["speaks out of turn: sent values of 'net-pair'", "times more"]),
    ("visit", "fail", &["speaks out of turn: opened a port for visit 0, which it was not told to"]),
    ("unasked", "fail", &["speaks out of turn: sent values of 'gpu-burn'", "times more"]),
    ("twice", "fail", &["speaks out of turn: said hello twice"]),
    ("finished", "fail", &["speaks out of turn: sent a result of 'collect/", "times more"]),
    ("endless", "fail", &["speaks out of turn: sent more than the ", " kB that its orders allow"]),
    ("facts", "fail", &["speaks out of turn: sent more than the ", " kB that its orders allow"]),
    ("huge", "fail", &["speaks out of turn: sent more than the ", " kB that its orders allow"]),
    ("upload", "fail", &["speaks out of turn: the node sent ", "kB of its own after "]),
    ("greedy", "unknown", &[" kB where the median of ", " peers is ", " kB; nothing is kept"]),
    ("garbage", "unknown", &["run: no probe answered: ", "bytes without a preamble"]),
];

fn name(place: usize) -> String {
    format!("n{:03}", place + 1)
}

/// Runs to the end and gives what it said and the most address space it had, kilobytes.
fn watched(mut running: Child) -> (Ran, u64) {
    let status = format!("/proc/{}/status", running.id());
    let mut most = 0;
    while running.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmPeak:")?.trim().strip_suffix(" kB")?.parse().ok());
        most = most.max(peak.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(20));
    }
    (running.wait_with_output().unwrap().into(), most)
}

/// State and reasons of a node.
fn of(report: &Value, node: &str) -> (String, String) {
    let found = report["nodes"].as_array().unwrap().iter().find(|n| n["node"] == node);
    let found = found.unwrap_or_else(|| panic!("{node} is not in the report"));
    (found["state"].as_str().unwrap().to_owned(), found["reasons"].to_string())
}

/// Answers of the checks of a node.
fn checks(report: &Value, node: &str) -> Value {
    let found = report["nodes"].as_array().unwrap().iter().find(|n| n["node"] == node).unwrap();
    assert_eq!(found["checks"].as_array().map(Vec::len), Some(2), "{node} answers what it was asked: {found}");
    found["checks"].clone()
}

#[test]
fn thirteen_kinds_of_hostile_node_cost_their_own_verdict_and_two_megabytes_each() {
    if !is_root() {
        return skip(
            "thirteen_kinds_of_hostile_node_cost_their_own_verdict_and_two_megabytes_each",
            Lacks::Root,
            "for namespaces",
        );
    }
    let mut fleet = Fleet::up(Options { nodes: u8::try_from(HONEST + HOSTILE.len()).unwrap() }).unwrap();
    let (console, file) = (fleet.console(), fleet.path("hostile.toml"));
    std::fs::write(&file, PLAYBOOK).unwrap();
    let words = ["run", &file, "--alpha", "0.001", "--one-at-a-time", "--visits", "1", "--json", "--new"];
    let (all, most) = watched(console.start_within(None, &words).unwrap());
    assert!(all.json().is_ok(), "{}", all.err);
    let alone = [&words[..], &["-w", "n[001-004]"]].concat();
    let before = console.run(&alone).unwrap().json().unwrap();

    let program = std::fs::read(env!("CARGO_BIN_EXE_hostile-probe")).unwrap();
    for (place, (kind, ..)) in HOSTILE.iter().enumerate() {
        fleet.node(&name(HONEST + place)).hostile(&program, kind).unwrap();
    }
    let limit = most + COST * HOSTILE.len() as u64;
    let (after, used) = watched(console.start_within(Some(limit), &words).unwrap());
    println!("{most} kB with honest nodes, {used} kB with {} hostile ones, limit {limit} kB", HOSTILE.len());
    assert_eq!(after.code, Some(2), "{}", after.err);
    let after = after.json().unwrap();
    for node in (0..HONEST).map(name) {
        let (was, is) = (of(&before, &node), of(&after, &node));
        println!("{node}: {was:?}; beside hostile nodes {is:?}");
        // What was measured differs by chance, and with it whether it was enough to decide; who fails does not.
        assert_eq!((is.0 == "fail", checks(&after, &node)), (was.0 == "fail", checks(&before, &node)), "{node}");
    }
    for (place, (kind, state, words)) in HOSTILE.iter().enumerate() {
        let (found, reasons) = of(&after, &name(HONEST + place));
        let right = found == *state && words.iter().all(|word| reasons.contains(word));
        assert!(right, "{kind} is {found}: {reasons}");
    }
}

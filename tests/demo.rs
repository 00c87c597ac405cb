//! The demo names the slowed node and nobody else. Needs no root.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::process::Command;

use muster_tests::binary;
use serde_json::Value;

fn demo(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = Command::new(binary()).args(["demo", "--headless", "--json"]).args(arguments).output().unwrap();
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), report)
}

fn failed(report: &Value) -> Vec<String> {
    let nodes = report["nodes"].as_array().unwrap();
    nodes.iter().filter(|n| n["state"] == "fail").map(|n| n["node"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_slowed_node_alone_fails() {
    // A noisy moment may leave a run undecided, never wrong: then there is another try.
    for _ in 0..3 {
        let (code, report) = demo(&["--nodes", "6", "--slow", "1", "--seed", "11"]);
        let slowed: Vec<String> = serde_json::from_value(report["demo"]["slowed"].clone()).unwrap();
        assert_eq!(slowed.len(), 1);
        let failed = failed(&report);
        if failed.is_empty() && code == Some(3) {
            continue;
        }
        assert_eq!((failed, code), (slowed, Some(2)));
        return;
    }
    panic!("three runs in a row could not decide");
}

#[test]
fn a_fleet_without_a_slow_node_accuses_nobody() {
    let (code, report) = demo(&["--nodes", "5", "--slow", "0", "--seed", "3"]);
    assert_eq!(failed(&report), Vec::<String>::new());
    assert!(matches!(code, Some(0 | 1 | 3)), "{code:?}");
}

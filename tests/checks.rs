//! On a fleet of real nodes, each fault is named by the check that is there for it, and by that one on nobody else.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use muster_tests::{Fleet, Lacks, Options, is_root, skip};
use serde_json::Value;

/// A look that drops who fails it, and then a short measurement of the others.
const BOOK: &str = "\
name = \"look-then-measure\"
title = \"Checks, then a benchmark\"
profile = \"smoke\"
[[steps]]
id = \"look\"
check = [\"host\", \"cpu\", \"memory\", \"nic\", \"time\"]
drop_failed = true
[[steps]]
id = \"measure\"
run = [\"cpu-dispatch\"]
idle_s = 1
";

/// Node, check, its state there, and what it says.
const FAULTS: [(&str, &str, &str, &str); 3] = [
    ("n002", "nic-mtu", "fail", "eth0.mtu is 1400, 5 of 6 nodes have 1500"),
    ("n004", "sysctl-consistent", "warn", "sysctl.net.core.somaxconn is 77, 5 of 6 nodes have "),
    ("n005", "time-offset", "fail", "from the median of 6 nodes"),
];

#[test]
fn wrong_mtu_other_kernel_parameter_and_a_clock_five_seconds_off_are_named_by_their_checks() {
    if !is_root() {
        return skip(
            "wrong_mtu_other_kernel_parameter_and_a_clock_five_seconds_off_are_named_by_their_checks",
            Lacks::Root,
            "for namespaces",
        );
    }
    let mut fleet = Fleet::up(Options { nodes: 6 }).unwrap();
    fleet.node("n002").sh("ip link set eth0 mtu 1400").unwrap();
    fleet.node("n004").sh("echo 77 > /proc/sys/net/core/somaxconn").unwrap();
    let filter = std::fs::read(env!("CARGO_BIN_EXE_clock-shift")).unwrap();
    fleet.node("n005").shift_clock(&filter, 5_000_000_000).unwrap();
    let book = fleet.path("book.toml");
    std::fs::write(&book, BOOK).unwrap();
    let ran = fleet.console().run(&["run", &book, "--json", "--new"]).unwrap();
    let report = ran.json().unwrap();
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    for (faulty, check, state, words) in FAULTS {
        for (node, answer) in answers(&report, check) {
            let (found, said) = (answer["state"].as_str().unwrap(), answer["said"].as_str().unwrap());
            if node == faulty {
                assert!(found == state && said.contains(words), "{node}: {check} is {found}: {said}");
                assert!(!answer["next"].as_str().unwrap().is_empty());
            } else {
                assert_eq!(found, "pass", "{node}: {check}: {said}");
            }
        }
    }
    let offset = answers(&report, "time-offset").remove(4).1["said"].as_str().unwrap().to_owned();
    let word = |at: usize| offset.split(' ').nth(at).unwrap().parse::<f64>().unwrap();
    let (seconds, uncertainty) = (word(0), word(3));
    // Half a millisecond more: the offset is printed with three decimals.
    assert!((seconds - 5.0).abs() < uncertainty + 0.000_6 && uncertainty < 1.0, "{offset}");
    who_left(&report, &ran.err);
}

/// Only those that fail leave, each with its reason, and they are not measured.
fn who_left(report: &Value, progress: &str) {
    let dropped = report["dropped"].as_array().unwrap();
    let mut left: Vec<(&str, &str)> = dropped
        .iter()
        .map(|left| (left["node"].as_str().unwrap(), left["reason"].as_str().unwrap().split(": ").nth(1).unwrap()))
        .collect();
    left.sort_unstable();
    assert_eq!(left, [("n002", "nic-mtu"), ("n005", "time-offset")], "{dropped:?}");
    assert!(progress.contains("left out after look: n002: nic-mtu: "), "{progress}");
    for node in report["nodes"].as_array().unwrap() {
        let measured = node["verdicts"].as_array().unwrap().iter().any(|v| v["value"].is_number());
        let expected = !matches!(node["node"].as_str(), Some("n002" | "n005"));
        assert_eq!(measured, expected, "{node}");
    }
}

/// What `check` says of each node, in the order of the nodes.
fn answers<'a>(report: &'a Value, check: &str) -> Vec<(&'a str, &'a Value)> {
    let of_node = |node: &'a Value| {
        let answer = node["checks"].as_array().unwrap().iter().find(|c| c["id"] == check);
        (node["node"].as_str().unwrap(), answer.unwrap_or_else(|| panic!("no {check} in {node}")))
    };
    report["nodes"].as_array().unwrap().iter().map(of_node).collect()
}

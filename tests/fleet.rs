//! The main job on real OpenSSH nodes with real faults, as root; skipped loudly elsewhere.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::collections::BTreeSet;
use std::time::Duration;

use muster_tests::{Fleet, Lacks, Load, Options, Try, decide_where_steady, is_root, skip};
use serde_json::Value;

fn state_of(report: &Value, node: &str) -> (String, String, Vec<String>) {
    let nodes = report["nodes"].as_array().unwrap();
    let found = nodes.iter().find(|n| n["node"] == node).unwrap_or_else(|| panic!("{node} is not in the report"));
    let parts = found["components"].as_array().unwrap().iter().filter(|part| part["undecided"] == true);
    let unclear = parts.map(|part| part["component"].as_str().unwrap().to_owned()).collect();
    (found["state"].as_str().unwrap().to_owned(), found["reasons"].to_string(), unclear)
}

#[test]
#[ignore = "a campaign: tests/campaign verdicts"]
fn sixteen_nodes_with_five_faults_are_each_named_with_the_right_reason() {
    if !is_root() {
        return skip(
            "sixteen_nodes_with_five_faults_are_each_named_with_the_right_reason",
            Lacks::Root,
            "for namespaces and cgroups",
        );
    }
    decide_where_steady("sixteen_nodes_with_five_faults_are_each_named_with_the_right_reason", 3, || {
        let (report, code, others) = scan_with_five_faults();
        let (open, accused) = check(&report);
        if open.is_empty() {
            assert_eq!(code, Some(2));
        }
        let words = |first: &String| format!("nothing is known of {} of 16 nodes, of the first as {first}", open.len());
        Try { accused, ..Try::new(open.first().map(words), others) }
    });
}

fn scan_with_five_faults() -> (Value, Option<i32>, f64) {
    let mut fleet = Fleet::up(Options { nodes: 16 }).unwrap();
    fleet.node("n003").limit_cpu(60).unwrap();
    fleet.node("n005").limit_disk(20_000_000).unwrap();
    fleet.node("n009").kill();
    fleet.change_recorded_key("n011").unwrap();
    let (console, load) = (fleet.console(), Load::start(Some(&fleet)));
    // One at a time: the nodes share this machine's cores.
    let running = console.start(&["run", "demo", "--one-at-a-time", "--json", "--new"]).unwrap();
    fleet.wait_until_measuring("n007").unwrap();
    fleet.node("n007").kill();
    let ran: muster_tests::Ran = running.wait_with_output().unwrap().into();
    (ran.json().unwrap(), ran.code, load.others(Some(&fleet)))
}

/// Nodes that nothing could be said of, with the reason, and sound ones that failed. A busy machine may leave a slow node undecided;
/// it must not let one pass.
fn check(report: &Value) -> (Vec<String>, Vec<String>) {
    let faults = [
        ("n003", "fail", "n003: cpu-"),
        ("n005", "fail", "disk metrics"),
        ("n007", "unknown", "n007: run: "),
        ("n009", "unknown", "n009: connect: "),
        ("n011", "unknown", "host key"),
    ];
    let (mut undecided, mut accused) = (Vec::new(), Vec::new());
    for node in (1..=16).map(|index| format!("n{index:03}")) {
        let (found, reasons, unclear) = state_of(report, &node);
        match faults.iter().find(|(faulty, ..)| *faulty == node) {
            // All of the speed is the most that can be lost, and chance does as much where the sound disks differ enough.
            Some(("n005", _, words)) if found == "warn" && reasons.contains(words) => {}
            // A slow core may be found in the right part and be too little to fail where the sound ones differ as much.
            Some(("n003", _, words)) if found == "warn" && reasons.contains(words) => {
                undecided.push(format!("{node}: {reasons}"));
            }
            // Severity and doubt are told apart: a warning may stand beside the faulty part that is not decided.
            Some((_, "fail", words)) if found != "fail" && unclear.iter().any(|part| words.contains(part)) => {
                undecided.push(format!("{node}: {reasons}"));
            }
            Some((_, state, words)) => {
                assert!(found == *state && reasons.contains(words), "{node} is {found}: {reasons}");
            }
            None if found == "pass" => {}
            // A doubt is no accusation, and nodes of one machine may truly differ by some percent. Counted, and tried again.
            None if found == "warn" => undecided.push(format!("{node}: {reasons}")),
            None if found == "fail" => accused.push(format!("{node}: {reasons}")),
            None => {
                // With a slow node among a dozen, the others may be too few to vouch for each other; each says of what and why.
                assert!(found == "unknown" && reasons.contains(" not decided"), "{node} has no fault: {reasons}");
            }
        }
    }
    (undecided, accused)
}

#[test]
fn six_kills_at_random_moments_lose_no_acknowledged_sample() {
    if !is_root() {
        return skip("six_kills_at_random_moments_lose_no_acknowledged_sample", Lacks::Root, "for namespaces");
    }
    let fleet = Fleet::up(Options { nodes: 4 }).unwrap();
    let console = fleet.console();
    let mut before = BTreeSet::new();
    for round in 0..6_u64 {
        let mut running = console.start(&["run", "cbd-light", "--fan-out", "2", "--json"]).unwrap();
        // Different moments each round, from the handshake to the middle of a benchmark.
        std::thread::sleep(Duration::from_millis(300 + (round * 1_737) % 2_900));
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
    let runs = console.run(&["runs", "--json"]).unwrap().json().unwrap()["runs"].take();
    assert!(runs.as_array().unwrap().len() < 6, "killed runs are taken up again, not begun anew: {runs}");
}

/// What a reader finds: run, node and metric of every stored series.
fn kept(console: &muster_tests::Console) -> BTreeSet<(String, String, String)> {
    let mut kept = BTreeSet::new();
    // A console killed before its first write leaves no database.
    let Ok(runs) = console.run(&["runs", "--json"]).unwrap().json() else { return kept };
    for run in runs["runs"].as_array().unwrap() {
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

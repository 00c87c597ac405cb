//! Collectives between real nodes, as root; skipped loudly elsewhere.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use muster_tests::{Console, Fleet, Lacks, Options, Ran, is_root, run, skip};
use serde_json::Value;

const SIZES: &str = "8K,256K";

fn measured(console: &Console, what: &str) -> Value {
    let arguments = ["collective", what, "--sizes", SIZES, "--profile", "smoke", "--quiet", "--json"];
    let ran = console.run(&arguments).unwrap();
    let report = ran.json().unwrap_or_else(|e| panic!("{e}: {}", ran.err));
    assert_eq!(ran.code, Some(0), "{report:#}");
    assert_eq!(errors(&report), Vec::<String>::new());
    report
}

/// Where a document differs from its published form.
fn errors(report: &Value) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/schemas/muster.collective.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.iter_errors(report).map(|e| e.to_string()).collect()
}

fn busbw(result: &Value) -> f64 {
    result["sizes"][1]["busbw"].as_f64().unwrap()
}

#[test]
fn four_nodes_compute_together_and_a_slow_or_a_dying_node_is_told() {
    if !is_root() {
        return skip("four_nodes_compute_together_and_a_slow_or_a_dying_node_is_told", Lacks::Root, "for namespaces");
    }
    let mut fleet = Fleet::up(Options { nodes: 4 }).unwrap();
    let console = fleet.console();
    let sound = measured(&console, "allreduce,allgather,alltoall");
    for (what, factor) in [("allreduce", 1.5), ("allgather", 0.75), ("alltoall", 0.75)] {
        let all = sound["collectives"].as_array().unwrap();
        let result = all.iter().find(|result| result["collective"] == what).unwrap();
        assert_eq!(result["ranks"], serde_json::json!(["n001", "n002", "n003", "n004"]));
        assert!(result["checked_bytes"].as_f64().unwrap() > 1e6, "{result:#}");
        for size in result["sizes"].as_array().unwrap() {
            let ratio = size["busbw"].as_f64().unwrap() / size["algbw"].as_f64().unwrap();
            assert!((ratio - factor).abs() < 1e-9 && size["operations"].as_u64().unwrap() >= 5, "{size:#}");
        }
    }

    fleet.slow_link("n003", "40mbit").unwrap();
    let slow = measured(&console, "allreduce");
    let (before, after) = (busbw(&sound["collectives"][0]), busbw(&slow["collectives"][0]));
    assert!(after < before / 2.0 && after < 5.5e6, "{before} and with a slow NIC {after}");
    pairs_of_two(&console);
    killed(&mut fleet, &console);
}

/// The same operation between every two nodes: those with the slow one are slow, and no others.
fn pairs_of_two(console: &Console) {
    let arguments = ["pairs", "--scan", "full", "--engine", "allreduce", "--profile", "smoke", "--quiet", "--csv"];
    let ran = console.run(&arguments).unwrap();
    let rows: Vec<Vec<&str>> = ran.out.lines().map(|line| line.split(',').collect()).collect();
    // A pair that looks odd is measured twice.
    let value = |with: bool| {
        let of = rows.iter().filter(|row| row[2] == "allreduce" && row[..2].contains(&"n003") == with);
        let pairs: BTreeSet<&[&str]> = of.clone().map(|row| &row[..2]).collect();
        (pairs.len(), of.map(|row| row[3].parse::<f64>().unwrap()).collect::<Vec<_>>())
    };
    let ((slow_pairs, slow), (sound_pairs, sound)) = (value(true), value(false));
    assert_eq!((slow_pairs, sound_pairs), (6, 6), "{} {}", ran.out, ran.err);
    let best = slow.into_iter().fold(0.0, f64::max);
    assert!(sound.into_iter().all(|value| value > best * 2.0), "{}", ran.out);
}

/// A node killed in the middle is named, with the step at which the others waited for it, long before the run's own time.
fn killed(fleet: &mut Fleet, console: &Console) {
    let arguments = ["collective", "allreduce", "--sizes", "64K", "--duration", "60000", "--deadline", "90", "--json"];
    let running = console.start(&arguments).unwrap();
    let netns = format!("--net=/run/netns/{}", fleet.node("n003").netns);
    let deadline = Instant::now() + Duration::from_secs(600);
    // Connections to other nodes, and not only that of the console.
    while run(&["nsenter", &netns, "--", "ss", "-Htn", "dst", "10.79.1.0/24"]).unwrap().lines().count() < 8 {
        assert!(Instant::now() < deadline, "the nodes never met");
        std::thread::sleep(Duration::from_millis(50));
    }
    fleet.node("n003").kill();
    let ran: Ran = running.wait_with_output().unwrap().into();
    let report = ran.json().unwrap();
    assert_eq!(errors(&report), Vec::<String>::new());
    assert_eq!(ran.code, Some(3), "{report:#}");
    let failure = &report["collectives"][0]["failure"];
    assert_eq!((&failure["nodes"], &failure["wrong_data"]), (&serde_json::json!(["n003"]), &Value::Bool(false)));
    let reason = failure["reason"].as_str().unwrap();
    assert!(
        reason.contains("n003") && reason.contains("65536 bytes, operation ") && reason.contains("step"),
        "{reason}"
    );
}

//! What the console prints is what assets/schemas promises.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::io::Write;
use std::path::Path;
use std::process::Command;

use muster_tests::binary;
use serde_json::Value;

fn validator(name: &str) -> jsonschema::Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/schemas").join(name);
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

fn criteria(rows: &str, arguments: &[&str]) -> Value {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(rows.as_bytes()).unwrap();
    let output = Command::new(binary())
        .args(["criteria", "learn", "--json", "--from"])
        .arg(file.path())
        .args(arguments)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn criteria_from_a_csv_name_the_slow_node_in_the_published_form() {
    let mut rows = "node,metric,value\n".to_owned();
    for node in 0..20 {
        let value = if node == 7 { 80.0 } else { 100.0 + f64::from(node) * 0.01 };
        rows += &format!("n{node},throughput,{value}\n");
    }
    let report = criteria(&rows, &["--higher-is-better", "thr*"]);
    let errors: Vec<String> = validator("muster.criteria.json").iter_errors(&report).map(|e| e.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    let criterion = &report["criteria"][0];
    assert_eq!(criterion["metric"], "throughput");
    assert_eq!(criterion["defects"][0]["node"], "n7");
    assert_eq!(criterion["defects"].as_array().unwrap().len(), 1);
    assert_eq!(criterion["healthy"], 19);
}

#[test]
fn a_swap_is_told_in_the_published_form() {
    let dir = tempfile::tempdir().unwrap();
    let muster = |arguments: &[&str]| {
        let mut command = Command::new(binary());
        command.env("MUSTER_DB", dir.path().join("db")).env("MUSTER_INVENTORY", dir.path().join("none.toml"));
        command.env("HOME", dir.path()).env("USER", "kim").env_remove("XDG_CONFIG_HOME");
        let output = command.args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let document = |schema: &str, arguments: &[&str]| {
        let report: Value = serde_json::from_slice(&muster(&[arguments, &["--json"]].concat())).unwrap();
        let errors: Vec<String> = validator(schema).iter_errors(&report).map(|e| e.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{report:#}");
        report
    };
    let import = |file: &str, slow: f64| {
        let mut rows = "node,metric,value\n".to_owned();
        for node in 1..=12 {
            let value = if node == 7 { slow } else { 100.0 + 0.01 * f64::from(node) };
            rows += &format!("n{node},copy,{value}\nn{node},triad,{value}\nn{node},scale,{value}\n");
        }
        std::fs::write(dir.path().join(file), rows).unwrap();
        muster(&["import", "--aggregated", &dir.path().join(file).display().to_string()]);
    };
    import("slow.csv", 60.0);
    muster(&["swap", "replace", "-w", "n7", "--by", "n1", "--reason", "RMA 4711"]);
    let listed = document("muster.swap.json", &["swap"]);
    assert_eq!(listed["in_repair"][0]["node"], "n7");
    assert_eq!(listed["in_repair"][0]["replaced_by"]["node"], "n1");
    let states = document("muster.swap-states.json", &["swap", "states", "-w", "n[1,7]"]);
    assert_eq!(states["nodes"][0]["in_place_of"]["node"], "n7");
    assert_eq!(states["nodes"][1]["replaced_by"]["node"], "n1");
    import("repaired.csv", 100.0);
    let back = document("muster.swap-return.json", &["swap", "return", "-w", "n7"]);
    assert_eq!(back["nodes"][0]["replaced_by"]["node"], "n1");
    let handed = document("muster.swap-history.json", &["swap", "history", "-w", "n7"])["handed"].clone();
    assert_eq!((handed[0]["state"].as_str(), handed[0]["counterpart"].as_str()), (Some("in-repair"), Some("n1")));
    assert_eq!((handed[1]["state"].as_str(), handed[1].get("counterpart")), (Some("in-service"), None));
}

#[test]
fn a_lower_is_better_pattern_turns_the_verdict_round() {
    let mut rows = "node,metric,value\n".to_owned();
    for node in 0..20 {
        rows += &format!("n{node},latency,{}\n", if node == 3 { 130.0 } else { 100.0 + f64::from(node) * 0.01 });
    }
    let report = criteria(&rows, &["--lower-is-better", "lat*"]);
    assert_eq!(report["criteria"][0]["defects"][0]["node"], "n3");
    let report = criteria(&rows, &["--higher-is-better", "lat*"]);
    assert_eq!(report["criteria"][0]["defects"].as_array().unwrap().len(), 0);
}

#[test]
fn a_matrix_names_the_bad_uplink_in_the_published_form() {
    let dir = tempfile::tempdir().unwrap();
    let (matrix, topology) = (dir.path().join("matrix.csv"), dir.path().join("topology.csv"));
    let leaf = |node: usize| node / 4;
    let mut rows = "src,dst,metric,value,up\n".to_owned();
    for (src, dst) in (0..16).flat_map(|a| (0..16).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        let up = if leaf(src) == leaf(dst) { String::new() } else { format!("leaf{}-spine{}", leaf(src), dst % 2) };
        let base = if up == "leaf2-spine1" { 30.0 } else { 100.0 };
        rows += &format!("n{src},n{dst},bandwidth,{},{up}\n", base * (1.0 + 0.01 * ((src * 7 + dst * 3) % 5) as f64));
    }
    std::fs::write(&matrix, rows).unwrap();
    let lines: Vec<String> = (0..16).map(|node| format!("n{node},leaf{}", leaf(node))).collect();
    std::fs::write(&topology, format!("node,leaf\n{}\n", lines.join("\n"))).unwrap();
    let output = Command::new(binary())
        .args(["pairs", "--json", "--from"])
        .arg(&matrix)
        .arg("--topology")
        .arg(&topology)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let errors: Vec<String> = validator("muster.pairs.json").iter_errors(&report).map(|e| e.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    let suspects = report["suspects"].as_array().unwrap();
    assert_eq!(suspects.len(), 1, "{suspects:?}");
    assert_eq!((suspects[0]["kind"].as_str(), suspects[0]["element"].as_str()), (Some("uplink"), Some("leaf2-spine1")));
    assert!((suspects[0]["effect"].as_f64().unwrap() - 0.3).abs() < 0.03, "{suspects:?}");
}

#[test]
fn the_list_of_checks_keeps_to_its_published_form() {
    let output = Command::new(binary()).args(["checks", "list", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let errors: Vec<String> = validator("muster.checks.json").iter_errors(&list).map(|e| e.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
    let checks = list["checks"].as_array().unwrap();
    assert!(checks.len() >= 60, "{}", checks.len());
    assert!(checks.iter().any(|check| check["id"] == "nic-mtu" && check["severity"] == "critical"));
    let some = Command::new(binary()).args(["checks", "list", "--json", "swap", "time"]).output().unwrap();
    let some: Value = serde_json::from_slice(&some.stdout).unwrap();
    let ids: Vec<&str> = some["checks"].as_array().unwrap().iter().map(|check| check["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["swap", "time-offset", "time-synchronised", "clocksource"]);
}

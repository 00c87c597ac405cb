//! Exports of a run: for tickets, for a warehouse, for a monitoring system; and steps that a search finds enough.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::path::Path;
use std::process::{Command, Output};

use muster_tests::binary;
use serde_json::Value;

fn muster(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.env("MUSTER_DB", dir.join("db")).env("HOME", dir).env("MUSTER_INVENTORY", dir.join("none.toml"));
    command.args(arguments).output().unwrap()
}

fn said(dir: &Path, arguments: &[&str]) -> String {
    let output = muster(dir, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn validate(schema: &str, value: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/schemas").join(schema);
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let errors: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(value).map(|e| e.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
}

/// Eight nodes of a rack, the third at 70 %.
fn imported() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut rows = "node,metric,value,step\n".to_owned();
    for node in 1..=8 {
        for step in 0..40 {
            let level = if node == 3 { 70.0 } else { 100.0 };
            rows += &format!("rack7-{node:02},net/bandwidth@own,{},{step}\n", level + 0.01 * f64::from(step % 7));
        }
    }
    let file = dir.path().join("samples.csv");
    std::fs::write(&file, rows).unwrap();
    said(dir.path(), &["import", "--higher-is-better", "*", file.to_str().unwrap()]);
    dir
}

#[test]
fn a_ticket_holds_the_evidence_and_no_name() {
    let dir = imported();
    let text = said(dir.path(), &["export", "--ticket"]);
    assert!(!text.contains("rack7"), "{text}");
    let ticket: Value = serde_json::from_str(&text).unwrap();
    validate("muster.ticket.json", &ticket);
    validate("muster.run.json", &ticket["report"]);
    let evidence = ticket["evidence"].as_array().unwrap();
    assert_eq!((evidence.len(), &evidence[0]["node"]), (1, &Value::from("node-003")));
    assert_eq!(evidence[0]["values"].as_array().unwrap().len(), 40);
    let slow = &ticket["report"]["nodes"][2];
    assert_eq!((slow["node"].as_str(), slow["state"].as_str()), (Some("node-003"), Some("fail")));
    assert!(
        slow["reasons"][0].as_str().unwrap().starts_with("node-003: net/bandwidth 70.0, 30 % below 7 peers"),
        "{slow}"
    );
    // Names on request.
    assert!(said(dir.path(), &["export", "--ticket", "--redact", "addresses,serials"]).contains("rack7-03"));
    assert!(said(dir.path(), &["export", "--format", "markdown"]).contains("rack7-03"));
    assert!(!said(dir.path(), &["export", "--format", "csv", "--redact", "names"]).contains("rack7"));
}

#[test]
fn openmetrics_text_replaces_its_file_and_says_states_and_values() {
    let dir = imported();
    let file = dir.path().join("muster.prom");
    std::fs::write(&file, "old").unwrap();
    said(dir.path(), &["export", "--format", "openmetrics", "--output", file.to_str().unwrap()]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.ends_with("# EOF\n"), "{text}");
    assert!(text.contains("muster_node_state{node=\"rack7-03\",muster_node_state=\"fail\"} 1\n"), "{text}");
    assert!(text.contains("muster_node_state{node=\"rack7-04\",muster_node_state=\"fail\"} 0\n"), "{text}");
    let median = "muster_metric_median{node=\"rack7-03\",metric=\"net/bandwidth\",engine=\"own\",unit=\"\"} 70.03";
    assert!(text.lines().any(|l| l.starts_with(median)), "{text}");
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".muster")), "{left:?}");
}

#[test]
fn parquet_needs_a_file_and_has_its_marks() {
    let dir = imported();
    assert_eq!(muster(dir.path(), &["export", "--format", "parquet"]).status.code(), Some(64));
    let file = dir.path().join("samples.parquet");
    said(dir.path(), &["export", "--format", "parquet", "--output", file.to_str().unwrap()]);
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    // Dictionaries and zstd: 320 rows of ten columns in a few kilobytes.
    assert!(bytes.len() < 8_000, "{}", bytes.len());
}

/// Noise between 0 and 1 that is the same on every machine and does not repeat itself.
fn noise(seed: i32) -> f64 {
    let mixed = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed ^ mixed >> 27) >> 11) as f64 / (1u64 << 53) as f64
}

#[test]
fn a_search_saves_steps_and_keeps_what_it_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut rows = "node,metric,value,step\n".to_owned();
    for node in 0..6 {
        for step in 0..1_600 {
            // Warm-up, a cycle of 50 steps, and a little of the node's own.
            let warm = 1.0 - 0.4 * (-f64::from(step) / 10.0).exp();
            let cycle = if step % 50 == 49 { 0.97 } else { 1.0 };
            let own = 1.0 + 0.01 * noise(step * 31 + node);
            rows += &format!("n{node},model/gpt2@own,{},{step}\n", 100.0 * warm * cycle * own);
        }
    }
    let file = dir.path().join("steps.csv");
    std::fs::write(&file, rows).unwrap();
    let arguments = ["tune", "--json", "--store", "--higher-is-better", "*", "--from", file.to_str().unwrap()];
    let report: Value = serde_json::from_str(&said(dir.path(), &arguments)).unwrap();
    validate("muster.tune.json", &report);
    let tuned = &report["benchmarks"][0]["metrics"][0]["tuned"];
    assert!(tuned["saving"].as_f64().unwrap() > 0.4 && tuned["loss"].as_f64().unwrap() < 0.01, "{report}");
    assert_eq!(tuned["period"], 50);
    let kept = said(dir.path(), &["tune", "--show"]);
    let measured = report["benchmarks"][0]["setting"]["measured"].to_string();
    assert!(kept.lines().any(|l| l.starts_with("model ") && l.contains(&measured)), "{kept}");
    // Too short a series is not searched, and says so.
    let short = dir.path().join("short.csv");
    std::fs::write(&short, "node,metric,value\na,m,1\nb,m,1\nc,m,1\n").unwrap();
    let output = muster(dir.path(), &["tune", "--from", short.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("too few steps: 1 of at least"));
}

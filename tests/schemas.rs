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

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
fn what_superbench_measures_too_goes_by_its_names_and_its_baseline_judges_it() {
    let dir = tempfile::tempdir().unwrap();
    let metric = "cublas-function/cgemm-tn-512x512x32:0@cublas-12.4";
    let mut rows = "node,metric,value,step\n".to_owned();
    for (node, nanos) in [("n1", 4000.0), ("n2", 4100.0), ("n3", 9000.0)] {
        for step in 0..40 {
            let value = nanos + f64::from(step % 3);
            rows += &format!(
                "{node},{metric},{value},{step}\n{node},cublas-function/cgemm-tn-512x512x32:0@own,1.0,{step}\n"
            );
        }
    }
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    said(dir.path(), &["import", &file("samples.csv", &rows)]);
    let text = said(dir.path(), &["export", "--format", "superbench"]);
    let name = "cublas-function/name_cublascgemm_k_32_m_512_n_512_transa_1_transb_0_time:0";
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "{text}");
    let time = lines[0][name].as_f64().unwrap();
    assert!((4.0..4.002).contains(&time) && lines[0].as_object().unwrap().len() == 2, "{text}");
    let rules = "superbench:\n  rules:\n    cublas:\n      function: variance\n      criteria: \"lambda x:x>0.05\"\n      \
                 categories: CUBLAS\n      metrics:\n        - cublas-function/.*_time:\\d+\n";
    let (rules, ours) = (file("rules.yaml", rules), file("ours.jsonl", &text));
    let baseline = file("baseline.json", &format!("{{\"{name}\": 4.0}}"));
    let judged = muster(
        dir.path(),
        &["criteria", "judge", "--rules", &rules, "--baseline", &baseline, "--from", &ours, "--json"],
    );
    assert_eq!(judged.status.code(), Some(2), "{}", String::from_utf8_lossy(&judged.stderr));
    let report: Value = serde_json::from_slice(&judged.stdout).unwrap();
    let states: Vec<&str> = report["nodes"].as_array().unwrap().iter().map(|n| n["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["pass", "pass", "fail"]);
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

/// Families of an OpenMetrics text with their lines; panics where the text is none (OpenMetrics 1.0, section 5).
fn families(text: &str) -> Vec<(String, Vec<String>)> {
    let mut families: Vec<(String, Vec<String>)> = Vec::new();
    let body = text.strip_suffix("# EOF\n").unwrap();
    for line in body.lines() {
        if let Some(of) = line.strip_prefix("# TYPE ") {
            let (name, kind) = of.split_once(' ').unwrap();
            assert!(["gauge", "stateset"].contains(&kind), "{line}");
            assert!(families.iter().all(|(known, _)| known != name), "{name} comes twice");
            families.push((name.to_owned(), Vec::new()));
        } else if let Some(of) = line.strip_prefix("# HELP ") {
            assert_eq!(of.split(' ').next().unwrap(), families.last().unwrap().0, "{line}");
        } else {
            let (name, lines) = families.last_mut().unwrap();
            let (labels, value) = line.strip_prefix(name.as_str()).unwrap().rsplit_once(' ').unwrap();
            assert!(labels.starts_with('{') && labels.ends_with('}'), "{line}");
            assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
            assert!(
                lines.iter().all(|known| known.rsplit_once(' ').unwrap().0 != &line[..line.len() - value.len() - 1])
            );
            lines.push(line.to_owned());
        }
    }
    families
}

#[test]
fn openmetrics_text_is_well_formed_and_counts_nodes_and_age() {
    let dir = imported();
    let families = families(&said(dir.path(), &["export", "--format", "openmetrics"]));
    let of = |name: &str| &families.iter().find(|(known, _)| known == name).unwrap().1;
    assert_eq!((of("muster_node_state").len(), of("muster_metric_median").len()), (8 * 6, 8));
    let nodes = of("muster_nodes");
    assert!(nodes.iter().any(|line| line == "muster_nodes{state=\"fail\"} 1"), "{nodes:?}");
    let value = |name: &str| of(name)[0].rsplit_once(' ').unwrap().1.parse::<f64>().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    let sum = value("muster_run_end_timestamp_seconds") + value("muster_run_age_seconds");
    assert!((0.0..60.0).contains(&(now - sum)), "{sum} at {now}");
}

/// Every file below a folder, by its path in it.
fn files(folder: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            found.extend(files(&entry.path()).into_iter().map(|(path, bytes)| (format!("{name}/{path}"), bytes)));
        } else {
            found.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
    found
}

#[test]
fn all_runs_since_a_time_become_a_data_set_that_a_second_export_leaves_as_it_is() {
    let dir = imported();
    let samples = dir.path().join("samples.csv");
    said(dir.path(), &["import", "--higher-is-better", "*", samples.to_str().unwrap()]);
    let folder = dir.path().join("set");
    let set = |since: &str| {
        said(dir.path(), &["export", "--since", since, "--format", "parquet", "--output", folder.to_str().unwrap()])
    };
    let told = set("2020-01-01");
    assert!(told.starts_with("2 runs: 640 rows of samples and 16 of verdicts in "), "{told}");
    let first = files(&folder);
    let runs: Value = serde_json::from_str(&said(dir.path(), &["runs", "--json"])).unwrap();
    for run in runs["runs"].as_array().unwrap() {
        for table in ["samples", "verdicts"] {
            let own = format!("/{}.parquet", run["id"].as_str().unwrap());
            let (path, bytes) = first.iter().find(|(path, _)| path.starts_with(table) && path.ends_with(&own)).unwrap();
            assert!(path.starts_with(&format!("{table}/date=20")), "{path}");
            assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{path}");
        }
    }
    assert_eq!(first.len(), 4);
    set("2020-01-01");
    assert_eq!(files(&folder), first);
    assert!(set("2199-01-01").starts_with("0 runs: "));
    assert_eq!(muster(dir.path(), &["export", "--since", "2020-01-01"]).status.code(), Some(64));
}

#[test]
fn all_rows_are_those_of_a_run_without_kept_verdicts_and_fit_their_columns() {
    let dir = imported();
    let rows = |arguments: &[&str]| {
        let output = muster(dir.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = rows(&["results", "--all"]);
    let at = |line: &str, word: &str| line.find(word).unwrap();
    let mut lines = text.lines();
    let metric = at(lines.next().unwrap(), "metric");
    let all: Vec<&str> = lines.by_ref().take(8).collect();
    assert!(lines.next().is_some_and(|why| why.starts_with("rack7-03")), "{text}");
    assert!(all.len() == 8 && all.iter().all(|line| at(line, "net/bandwidth") == metric), "{text}");
    assert_eq!(all.iter().filter(|line| line.starts_with("rack7-03") && line.ends_with("fail")).count(), 1, "{text}");
    let (report, csv) = (rows(&["results", "--json"]), said(dir.path(), &["export", "--format", "csv"]));
    for entry in std::fs::read_dir(dir.path().join("db/runs")).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.extension().is_some_and(|ending| ending == "judged") {
            std::fs::remove_file(entry).unwrap();
        }
    }
    assert_eq!(rows(&["results", "--json"]), report, "judged anew");
    assert_eq!((rows(&["results", "--all"]), said(dir.path(), &["export", "--format", "csv"])), (text, csv));
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

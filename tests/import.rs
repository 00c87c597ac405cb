//! Other tools' files through the command line: as runs, and analysed directly.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::path::Path;
use std::process::{Command, Output};

use muster_tests::binary;
use serde_json::Value;

fn muster(db: &Path, arguments: &[&str]) -> Output {
    Command::new(binary()).env("MUSTER_DB", db).args(arguments).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn validate(schema: &str, value: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/schemas").join(schema);
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(value).map(|e| e.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
}

/// A SuperBench summary of `nodes` nodes: n3 has slow memory, n5's benchmark failed.
fn summary(nodes: usize) -> String {
    let line = |n: usize| {
        let bandwidth = if n == 3 { 20.0 } else { 26.0 + 0.01 * (n % 5) as f64 };
        let time = 0.0057 + 0.000_01 * (n % 3) as f64;
        if n == 5 {
            return format!(
                "{{\"mem-bw/return_code\": 1, \"kernel-launch/event_time:0\": {time}, \"node\": \"n{n}\"}}\n"
            );
        }
        format!(
            "{{\"mem-bw/return_code\": 0, \"mem-bw/h2d_bw:0\": {bandwidth}, \"kernel-launch/event_time:0\": {time}, \
             \"node\": \"n{n}\"}}\n"
        )
    };
    (0..nodes).map(line).collect()
}

#[test]
fn a_superbench_summary_becomes_a_run_and_names_the_slow_and_the_failed_node() {
    let dir = tempfile::tempdir().unwrap();
    let (db, file) = (dir.path().join("db"), dir.path().join("results-summary.jsonl"));
    std::fs::write(&file, summary(20)).unwrap();
    let file = file.to_str().unwrap();
    let report = json(&muster(&db, &["import", "--json", file]));
    validate("muster.import.json", &report);
    assert_eq!((report["nodes"].as_u64(), report["metrics"].as_u64()), (Some(20), Some(2)));
    assert_eq!(report["failed"][0]["node"], "n5");
    assert_eq!(report["files"][0]["sha256"].as_str().unwrap().len(), 64);

    let judged = muster(&db, &["results", "--json"]);
    assert_eq!(judged.status.code(), Some(2));
    let results: Value = serde_json::from_slice(&judged.stdout).unwrap();
    validate("muster.run.json", &results);
    assert_eq!(results["run"]["playbook"], "import/superbench");
    let node = |name: &str| results["nodes"].as_array().unwrap().iter().find(|n| n["node"] == name).unwrap().clone();
    assert_eq!((node("n3")["state"].as_str(), node("n5")["state"].as_str()), (Some("fail"), Some("fail")));
    let value =
        node("n0")["verdicts"].as_array().unwrap().iter().find(|v| v["metric"] == "mem-bw/h2d_bw:0").unwrap()["value"]
            .clone();
    assert_eq!((value.as_f64(), &node("n0")["verdicts"][0]["engine"]), (Some(26.0e9), &Value::from("superbench")));

    // The same file analysed directly, and our own export of the run, say the same.
    let learned = json(&muster(&db, &["criteria", "learn", "--json", "--from", file]));
    validate("muster.criteria.json", &learned);
    let defects = |report: &Value| {
        let memory = report["criteria"].as_array().unwrap().iter().find(|c| c["metric"] == "mem-bw/h2d_bw:0").unwrap();
        memory["defects"].as_array().unwrap().iter().map(|d| d["node"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(defects(&learned), ["n5", "n3"]);
    let samples = dir.path().join("samples.csv");
    std::fs::write(&samples, muster(&db, &["export", "--format", "samples"]).stdout).unwrap();
    let again = json(&muster(
        &db,
        &[
            "criteria",
            "learn",
            "--json",
            "--higher-is-better",
            "mem-bw/*",
            "--lower-is-better",
            "*_time*",
            "--from",
            samples.to_str().unwrap(),
        ],
    ));
    assert_eq!(defects(&again), ["n3"]);
}

#[test]
fn a_file_of_no_known_kind_and_a_broken_line_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let said = |name: &str, text: &str| {
        let file = dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        let output = muster(&db, &["import", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(78));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said("a.txt", "hello\n").contains("a.txt: no format that is known"));
    let broken = said("b.jsonl", "{\"mem-bw/h2d_bw\": 26.1, \"node\": \"a\"}\n{\"mem-bw/h2d_bw\": }\n");
    assert!(broken.contains("b.jsonl: line 2"), "{broken}");
    let unnamed =
        said("c.log", "#  size  count  type  redop  root  time  algbw  busbw  error  time  algbw  busbw  error\n");
    assert!(unnamed.contains("--operation"), "{unnamed}");
}

#[test]
fn step_series_of_ranks_are_found_below_an_output_folder() {
    let dir = tempfile::tempdir().unwrap();
    for node in 0..6 {
        let rank = dir.path().join(format!("out/nodes/n{node}/benchmarks/model-benchmarks:nlp/rank0"));
        std::fs::create_dir_all(&rank).unwrap();
        let level = if node == 4 { 130.0 } else { 100.0 };
        let steps: Vec<String> = (0..64).map(|i| format!("{}", level + f64::from(i % 7) * 0.05)).collect();
        let text = format!(
            "[{{\"name\": \"pytorch-gpt2-large\", \"return_code\": 0, \"raw_data\": {{\"fp16_train_step_time\": [[{}]]}}}}]",
            steps.join(",")
        );
        std::fs::write(rank.join("results.json"), text).unwrap();
    }
    let out = dir.path().join("out");
    let report =
        json(&muster(&dir.path().join("db"), &["criteria", "learn", "--json", "--from", out.to_str().unwrap()]));
    let criterion = &report["criteria"][0];
    assert_eq!(criterion["metric"], "model-benchmarks:nlp/pytorch-gpt2-large/fp16_train_step_time:0");
    assert_eq!((criterion["n"].as_u64(), criterion["direction"].as_str()), (Some(6), Some("lower_is_better")));
    assert_eq!(criterion["defects"][0]["node"], "n4");
}

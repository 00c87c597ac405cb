//! The probe as a person meets it: words on the command line, text and exit codes back.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::process::{Command, Output};

use serde_json::Value;

fn probe(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_muster-probe")).args(words).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn the_list_names_the_catalogue() {
    let output = probe(&["list"]);
    assert!(output.status.success());
    let text = stdout(&output);
    assert!(muster_wire::BENCHMARKS.iter().all(|entry| text.contains(entry.name)), "{text}");
    assert!(muster_wire::COLLECTORS.iter().all(|entry| text.contains(entry.name)), "{text}");
}

#[test]
fn info_is_one_document_with_every_collector() {
    let output = probe(&["info", "--format", "json"]);
    assert!(output.status.success());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&document["schema"], &document["version"]), (&"muster.probe".into(), &1.into()));
    let collectors = document["collectors"].as_array().unwrap();
    assert_eq!(collectors.len(), muster_wire::COLLECTORS.len());
    assert!(collectors.iter().any(|one| one["collector"] == "identity"));
    assert!(collectors.iter().all(|one| !one["facts"].as_array().unwrap().is_empty()));
}

#[test]
fn a_run_is_one_document_with_values() {
    let output = probe(&["run", "cpu-dispatch", "--profile", "smoke", "--format", "json"]);
    assert!(output.status.success(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let benchmark = &document["benchmarks"][0];
    assert_eq!((&benchmark["benchmark"], &benchmark["outcome"]), (&"cpu-dispatch".into(), &"done".into()));
    let series = benchmark["series"].as_array().unwrap();
    assert!(!series.is_empty());
    for one in series {
        assert_eq!(one["n"].as_u64().unwrap(), u64::try_from(one["values"].as_array().unwrap().len()).unwrap());
        assert!(one["min"].as_f64().unwrap() <= one["median"].as_f64().unwrap());
    }
}

#[test]
fn what_is_not_understood_ends_with_64_and_help_with_0() {
    for words in [&["run"][..], &["run", "aura"], &["run", "disk", "--profile", "huge"], &["aura"], &[]] {
        let output = probe(words);
        assert_eq!(output.status.code(), Some(64), "{words:?}: {output:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{words:?}");
    }
    let help = probe(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(stdout(&help).contains("Examples:"));
}

#[test]
fn a_benchmark_that_fails_ends_with_2() {
    let output = probe(&["run", "disk", "--profile", "smoke", "--scratch", "/proc/no/such/place"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stdout(&output).contains("disk: FAILED"), "{output:?}");
}

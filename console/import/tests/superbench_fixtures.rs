//! The readers and the rules on SuperBench's own test data: what its analyser expects, rule by rule.
//!
//! Needs the data directory that `MUSTER_DATA` names, with `bench/superbench_fixtures/` (and `bench/superbench_results/`)
//! below it; says so and passes where there is none.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]
#![expect(clippy::disallowed_methods, reason = "opens the files whose text the library is given")]

use std::path::PathBuf;

use muster_analysis::rules::{Baseline, Diagnosis, RuleFile, diagnose};
use muster_analysis::{State, Table};
use muster_import::superbench::{Key, summary};
use muster_import::{Limits, Meaning, Series, fio, nccl, nvbandwidth, perftest};
use muster_skip::Lacks;
use serde_json::Value;

/// The folder of data, which `test` cannot do without.
struct Data(PathBuf);

impl Data {
    fn of(test: &str) -> Option<Self> {
        let Some(root) = std::env::var_os("MUSTER_DATA") else {
            muster_skip::skip(test, Lacks::Data, "MUSTER_DATA names no folder with SuperBench's files");
            return None;
        };
        Some(Self(PathBuf::from(root).join("bench")))
    }

    fn file(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.0.join(path)).unwrap()
    }

    fn text(&self, path: &str) -> String {
        String::from_utf8(self.file(path)).unwrap()
    }

    fn table(&self) -> Table {
        let bytes = self.file("superbench_fixtures/analyzer/test_results.jsonl");
        summary::read(&bytes[..], Limits::default()).unwrap().table
    }
}

/// pandas writes ten decimals.
fn rounded(value: f64) -> f64 {
    (value * 1e10).round() / 1e10
}

fn equal(found: &Diagnosis, expected: &Value, table: &Table, keys: [&str; 2]) {
    let [category, details] = keys;
    assert_eq!(expected["index"], found.node.as_str());
    assert_eq!(expected[category], found.categories.iter().cloned().collect::<Vec<_>>().join(","));
    let text: Vec<String> = found.details.iter().map(ToString::to_string).collect();
    assert_eq!(expected[details], text.join(","));
    let columns = expected.as_object().unwrap().len() - 3;
    assert_eq!(found.summary.len(), columns, "as many metrics as SuperBench shows");
    for (column, value) in &found.summary {
        let metric = &table.metrics()[*column];
        match value {
            None => assert_eq!(expected[metric], "N/A", "{metric}"),
            Some(value) => {
                let expected = expected[metric].as_f64().unwrap();
                assert!((rounded(*value) - expected).abs() < 1.5e-10, "{metric}: {value} {expected}");
            }
        }
    }
}

#[test]
fn verdicts_equal_superbench_s_expected_output() {
    let Some(data) = Data::of("verdicts_equal_superbench_s_expected_output") else { return };
    let table = data.table();
    assert_eq!((table.nodes().len(), table.metrics().len()), (3, 462));
    let rules = RuleFile::parse(&data.text("superbench_fixtures/analyzer/test_rules.yaml")).unwrap();
    let baseline = Baseline::parse(&data.text("superbench_fixtures/analyzer/test_baseline.json")).unwrap();
    assert!(rules.refused.is_empty());
    let found = diagnose(&table, &rules, &baseline);
    assert_eq!(found.iter().map(|d| d.state).collect::<Vec<_>>(), [State::Fail, State::Pass, State::Fail]);
    let failed: Vec<&Diagnosis> = found.iter().filter(|d| d.state == State::Fail).collect();
    let expected = data.text("superbench_fixtures/data/diagnosis_summary.jsonl");
    let expected: Vec<Value> = expected.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(failed.len(), expected.len());
    for (found, expected) in failed.iter().zip(&expected) {
        equal(found, expected, &table, ["Category", "Defective Details"]);
    }
    let expected: Vec<Value> =
        serde_json::from_str(&data.text("superbench_fixtures/data/diagnosis_summary_json.json")).unwrap();
    for (found, expected) in failed.iter().zip(&expected) {
        equal(found, expected, &table, ["diagnosis/category", "diagnosis/issue_details"]);
    }
    // The document of all nodes: accepted or not, and how many issues.
    let all: Vec<Value> = serde_json::from_str(&data.text("superbench_fixtures/data/diagnosis_summary.json")).unwrap();
    for (found, expected) in found.iter().zip(&all) {
        assert_eq!(expected["diagnosis/accept"], found.state == State::Pass, "{}", found.node);
        assert_eq!(expected["diagnosis/issue_num"], found.details.len(), "{}", found.node);
    }
}

#[test]
fn rules_that_run_code_are_refused_and_the_others_applied() {
    let Some(data) = Data::of("rules_that_run_code_are_refused_and_the_others_applied") else { return };
    let table = data.table();
    let rules = RuleFile::parse(&data.text("superbench_fixtures/analyzer/test_rules_without_baseline.yaml")).unwrap();
    assert_eq!((rules.rules.len(), rules.refused.len()), (2, 1));
    assert_eq!((rules.refused[0].rule.as_str(), rules.refused[0].line), ("rule2", 19));
    let found = diagnose(&table, &rules, &Baseline::default());
    assert!(found.iter().all(|d| d.state == State::Fail && d.categories.contains("KernelLaunch")));
}

#[test]
fn every_published_metric_has_a_meaning_and_the_quick_scan_s_rules_are_read() {
    let rules = "superbench_results/v0.4.0/Azure-NDv4-A100-quickscan/rule.yaml";
    let Some(data) = Data::of("every_published_metric_has_a_meaning_and_the_quick_scan_s_rules_are_read") else {
        return;
    };
    let rules = RuleFile::parse(&data.text(rules)).unwrap();
    assert_eq!((rules.rules.len(), rules.refused.len()), (8, 0));
    for set in
        ["v0.3.0/Azure-NDv4-A100", "v0.3.0/Azure-NDmv4-A100", "v0.4.0/Azure-NDv4-A100", "v0.4.0/Azure-NDmv4-A100"]
    {
        let baseline = data.text(&format!("superbench_results/{set}/baseline.json"));
        let baseline = Baseline::parse(&baseline).unwrap();
        let unknown = |key: &&String| Key::parse(key).is_none_or(|k| k.meaning() == Meaning::Unknown);
        let unknown: Vec<&String> = baseline.0.keys().filter(unknown).collect();
        println!("{set}: {} metrics", baseline.0.len());
        assert!(unknown.is_empty(), "{set}: {unknown:?}");
    }
    let table = data.table();
    let unknown = table.metrics().iter().filter(|key| Key::parse(key).is_none_or(|k| k.meaning() == Meaning::Unknown));
    println!("test_results.jsonl, of unknown meaning: {:?}", unknown.collect::<Vec<_>>());
}

fn values<'a>(series: &'a [Series], metric: &str) -> &'a [f64] {
    let found = series.iter().find(|s| s.metric.path() == metric);
    found.map_or_else(|| panic!("no {metric}"), |s| &s.values)
}

#[test]
fn outputs_of_real_tools_are_read() {
    let Some(data) = Data::of("outputs_of_real_tools_are_read") else { return };
    let file = |name: &str| data.file(&format!("superbench_fixtures/data/{name}"));
    for operation in ["allgather", "allreduce", "alltoall", "broadcast", "reduce", "reducescatter"] {
        let bytes = file(&format!("nccl_{operation}.log"));
        let out = nccl::read(&bytes[..], "n", operation, Limits::default()).unwrap();
        println!("nccl_{operation}: {} metrics, {} rounded to zero", out.series.len(), out.rounded_to_zero);
        assert_eq!(out.out_of_bounds, Some(0), "{operation}");
    }
    let bytes = file("nccl_allreduce.log");
    let out = nccl::read(&bytes[..], "n", "allreduce", Limits::default()).unwrap();
    assert_eq!(values(&out.series, "nccl-bw/allreduce_8589934592_busbw"), [235.26e9]);
    let bytes = file("ib_loopback_8M_size.log");
    let out = perftest::read(&bytes[..], "n", Limits::default()).unwrap();
    assert_eq!(values(&out, "ib-write-bw/8388608_avg"), [24056.72 * 1_048_576.0]);
    let bytes = file("ib_loopback_all_sizes.log");
    let out = perftest::read(&bytes[..], "n", Limits::default()).unwrap();
    assert_eq!((out.len(), values(&out, "ib-write-bw/2_avg")), (46, &[5.30 * 1_048_576.0][..]));
    let bytes = file("disk_performance.log");
    let out = fio::read(&bytes[..], "n", Limits::default()).unwrap();
    assert_eq!(values(&out.series, "disk/rand_read_write_read_iops"), [85_138.890_741]);
    assert_eq!(values(&out.series, "disk/rand_read_write_read_lat_p99.9"), [3_620_864.0]);
    let bytes = file("nvbandwidth_results.log");
    let out = nvbandwidth::read(&bytes[..], "n", Limits::default()).unwrap();
    assert_eq!(values(&out.series, "nvbandwidth/host_to_device_memcpy_ce_cpu0_gpu2_bw"), [412.11e9]);
    assert_eq!(values(&out.series, "nvbandwidth/host_device_latency_sm_cpu0_gpu0_lat"), [772.58]);
}

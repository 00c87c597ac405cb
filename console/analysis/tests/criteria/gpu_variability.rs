//! Criteria on measured GPUs of two clusters (Sinha et al., SC'22): the slow ones are named, and noise names nobody.
//!
//! Needs the data directory that `MUSTER_DATA` names, with `bench/gpu_variability/` below it; says so and passes
//! where there is none.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]
#![expect(
    clippy::disallowed_methods,
    reason = "reads the data that the library is shown on, which the library never does"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use muster_analysis::decide::{Fleet, Metric, Settings, decide};
use muster_analysis::{Learned, Observation, Params, Sample, State, Status, learn};
use muster_skip::Lacks;
use muster_wire::{Component, Direction, MetricId, Unit};

/// Runs of every GPU, milliseconds or seconds as the file has them, by its identity.
fn gpus(test: &str, file: &str) -> Option<BTreeMap<String, Vec<f64>>> {
    let Some(root) = std::env::var_os("MUSTER_DATA") else {
        muster_skip::skip(test, Lacks::Data, &format!("MUSTER_DATA names no folder with the measured GPUs of {file}"));
        return None;
    };
    let path = PathBuf::from(root).join("bench/gpu_variability").join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = |name: &str| header.iter().position(|h| *h == name).unwrap();
    let (uuid, perf) = (at("uuid"), at("perf"));
    let mut gpus: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        gpus.entry(cells[uuid].to_owned()).or_default().push(cells[perf].parse().unwrap());
    }
    Some(gpus)
}

fn learned(gpus: &BTreeMap<String, Vec<f64>>, name: &str) -> Learned {
    let nodes: Vec<(String, Observation)> =
        gpus.iter().map(|(uuid, runs)| (uuid.clone(), Observation::from_values(runs))).collect();
    let metric = MetricId::new("gpu", name, "sc22");
    learn(&metric, Unit::Count, Direction::LowerIsBetter, &nodes, &Params::default())
}

/// GPUs whose median is slower than the fleet's by more than `share`.
fn slower_than(gpus: &BTreeMap<String, Vec<f64>>, share: f64) -> Vec<&str> {
    let medians: Vec<f64> = gpus.values().map(|runs| Sample::new(runs).unwrap().median()).collect();
    let fleet = Sample::new(&medians).unwrap().median();
    let slow = gpus.keys().zip(&medians).filter(|(_, m)| **m > fleet * (1.0 + share));
    slow.map(|(uuid, _)| uuid.as_str()).collect()
}

fn failed(learned: &Learned) -> Vec<&str> {
    learned.verdicts.iter().filter(|v| v.state == State::Fail).map(|v| &*v.node).collect()
}

/// GPUs that fail by the decision.
fn decided(gpus: &BTreeMap<String, Vec<f64>>) -> Vec<&str> {
    let id = MetricId::new("gpu", "time", "sc22");
    let samples: Vec<Sample> = gpus.values().map(|runs| Sample::new(runs).unwrap()).collect();
    let metric = Metric {
        id: &id,
        direction: Direction::LowerIsBetter,
        component: Component::Gpu(0),
        aggregated: true,
        samples: samples.iter().map(Some).collect(),
        frozen: None,
    };
    let fleet = Fleet { nodes: gpus.len(), metrics: vec![metric], run_nodes: gpus.len() };
    let decision = decide(&fleet, &Settings::default());
    let failed = gpus.keys().zip(&decision.nodes).filter(|(_, node)| node.state == State::Fail);
    failed.map(|(uuid, _)| uuid.as_str()).collect()
}

fn print(name: &str, learned: &Learned) {
    let found = &learned.criterion;
    println!("{name}: {} GPUs, {}, repeatability {:?}", found.n, found.status.name(), found.repeatability);
    for verdict in learned.verdicts.iter().filter(|v| v.state != State::Pass && v.state != State::Unknown) {
        println!("  {} {}", verdict.state.name(), verdict.reason);
    }
}

#[test]
fn slow_gpus_of_sgemm_on_longhorn_are_flagged() {
    let Some(gpus) = gpus("slow_gpus_of_sgemm_on_longhorn_are_flagged", "sgemm-longhorn-agg.csv") else { return };
    let learned = learned(&gpus, "sgemm-longhorn");
    print("sgemm-longhorn", &learned);
    let slow = slower_than(&gpus, 0.05);
    let flagged = failed(&learned);
    assert_eq!(learned.criterion.status, Status::Ok);
    assert_eq!(slow.len(), 4);
    assert!(slow.iter().all(|uuid| flagged.contains(uuid)), "{slow:?} {flagged:?}");
    println!("  decided: {:?}", decided(&gpus));
}

#[test]
fn slow_gpus_of_resnet_on_lonestar6_are_flagged() {
    let Some(gpus) = gpus("slow_gpus_of_resnet_on_lonestar6_are_flagged", "resnet-ls6-agg.csv") else { return };
    let learned = learned(&gpus, "resnet-ls6");
    print("resnet-ls6", &learned);
    let slow = slower_than(&gpus, 0.20);
    let flagged = failed(&learned);
    assert_eq!(slow.len(), 6);
    assert!(slow.iter().all(|uuid| flagged.contains(uuid)), "{slow:?} {flagged:?}");
    println!("  decided: {:?}", decided(&gpus));
}

#[test]
fn resnet_on_longhorn_is_noise_and_accuses_nobody() {
    let Some(gpus) = gpus("resnet_on_longhorn_is_noise_and_accuses_nobody", "resnet-longhorn-agg.csv") else { return };
    let learned = learned(&gpus, "resnet-longhorn");
    print("resnet-longhorn", &learned);
    assert_eq!(learned.criterion.status, Status::NotRepeatable);
    assert!(failed(&learned).is_empty(), "{:?}", failed(&learned));
    assert_eq!(decided(&gpus), [""; 0]);
}

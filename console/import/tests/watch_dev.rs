//! The detector on made recordings with known culprits: who is named, who is missed, and how late.
//!
//! Needs the data directory that `MUSTER_DATA` names, with `watch_dev/` below it; says so and passes where there is none.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]
#![expect(clippy::disallowed_methods, reason = "opens the files whose text the library is given")]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use muster_analysis::Chance;
use muster_import::telemetry::{Recording, unpacked};
use muster_skip::Lacks;
use muster_watch::{Alert, Settings, Watch};
use serde_json::Value;

/// Seconds after its end for which a fault may still be told: what is averaged comes late.
const AFTER: f64 = 60.0;

struct Fault {
    node: String,
    onset_s: f64,
    end_s: f64,
    detectable: bool,
}

#[derive(Default)]
struct Score {
    right: usize,
    wrong: usize,
    detectable: usize,
    found: usize,
    delays: Vec<f64>,
    machine_s: f64,
    clean_accused: usize,
}

fn recordings() -> Option<Vec<PathBuf>> {
    let folder = std::env::var_os("MUSTER_DATA").map(|root| PathBuf::from(root).join("watch_dev"));
    let Some(entries) = folder.and_then(|folder| std::fs::read_dir(folder).ok()) else {
        let why = "MUSTER_DATA names no folder with watch_dev";
        muster_skip::skip("faults_are_named_in_time_and_healthy_machines_are_not", Lacks::Data, why);
        return None;
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.to_string_lossy().ends_with(".csv.gz"));
    files.sort();
    Some(files)
}

fn alerts(input: impl BufRead) -> Vec<Alert> {
    let mut recording = Recording::default();
    recording.add_csv(unpacked(input).unwrap()).unwrap();
    recording.sort();
    alerts_of(&recording)
}

fn alerts_of(recording: &Recording) -> Vec<Alert> {
    let mut watch = Watch::new(Settings::default());
    let nodes: Vec<_> = recording.nodes.iter().map(|name| watch.node(name).unwrap()).collect();
    let metrics: Vec<_> = recording.metrics.iter().map(|name| watch.metric(name).unwrap()).collect();
    for row in recording.rows() {
        let (node, metric) = recording.of(row);
        watch.push(row.time_s, nodes[node], metrics[metric], f64::from(row.value));
    }
    watch.finish();
    watch.alerts().to_vec()
}

fn truth(file: &Path) -> (Value, Vec<Fault>) {
    let path = file.to_string_lossy().replace(".csv.gz", ".truth.json");
    let truth: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let fault = |one: &Value| Fault {
        node: one["node"].as_str().unwrap().to_owned(),
        onset_s: one["onset_s"].as_f64().unwrap(),
        end_s: one["end_s"].as_f64().unwrap(),
        detectable: one["detectable"].as_bool().unwrap(),
    };
    let faults = truth["faulty"].as_array().unwrap().iter().map(fault).collect();
    (truth, faults)
}

impl Score {
    /// Counts one recording; its line of the table.
    fn add(&mut self, file: &Path) -> String {
        self.add_alerts(file, &alerts(BufReader::new(File::open(file).unwrap())))
    }

    fn add_alerts(&mut self, file: &Path, alerts: &[Alert]) -> String {
        let (truth, faults) = truth(file);
        let of = |fault: &Fault, alert: &Alert| {
            alert.node == fault.node && (fault.onset_s..=fault.end_s + AFTER).contains(&alert.alerted_s)
        };
        let (mut wrong, mut delays) = (Vec::new(), Vec::new());
        for alert in alerts {
            if faults.iter().any(|fault| of(fault, alert)) {
                self.right += 1;
            } else {
                wrong.push(alert.node.clone());
            }
        }
        for fault in &faults {
            let first = alerts.iter().find(|alert| of(fault, alert));
            self.detectable += usize::from(fault.detectable);
            self.found += usize::from(fault.detectable && first.is_some());
            delays.extend(first.map(|alert| alert.alerted_s - fault.onset_s));
        }
        self.wrong += wrong.len();
        self.clean_accused += usize::from(faults.is_empty() && !alerts.is_empty());
        self.delays.extend(&delays);
        self.machine_s += truth["nodes"].as_array().unwrap().len() as f64 * truth["duration_s"].as_f64().unwrap();
        let expected: Vec<&str> = faults.iter().map(|fault| fault.node.as_str()).collect();
        let named = alerts.iter().map(|a| format!("{} ({})", a.node, a.metric.as_deref().unwrap_or("silent")));
        let kind = truth["kind"].as_str().unwrap();
        let named = named.collect::<Vec<_>>().join(", ");
        let delays = delays.iter().map(|d| format!("{d:.0}")).collect::<Vec<_>>().join(", ");
        format!("{kind:<17} {:<20} {delays:<10} {named}", expected.join(", "))
    }
}

#[test]
fn faults_are_named_in_time_and_healthy_machines_are_not() {
    let Some(files) = recordings() else { return };
    let mut score = Score::default();
    println!("{:<17} {:<20} {:<10} named", "kind", "expected", "delay s");
    files.iter().for_each(|file| println!("{}", score.add(file)));
    let precision = score.right as f64 / (score.right + score.wrong).max(1) as f64;
    let recall = score.found as f64 / score.detectable.max(1) as f64;
    let delay = score.delays.iter().sum::<f64>() / score.delays.len().max(1) as f64;
    println!(
        "{} recordings: precision {precision:.3}, recall of detectable faults {recall:.3}, mean delay {delay:.0} s, {:.2} false \
         alarms per machine-day, {} clean recordings accused",
        files.len(),
        score.wrong as f64 / (score.machine_s / 86_400.0),
        score.clean_accused
    );
    assert!(!files.is_empty());
    assert!(precision >= 0.97, "precision {precision:.3}");
    assert!(recall >= 0.98, "recall {recall:.3}");
    assert!(delay <= 115.0, "mean delay {delay:.0} s");
    assert_eq!(score.clean_accused, 0);
}

/// Rows of eight nodes for twelve minutes with noise of 3 %; n5 loses a third of its power after half of it.
fn made(chance: &mut Chance) -> Vec<String> {
    let mut rows = Vec::new();
    for (second, node) in (0..720).flat_map(|second| (0..8).map(move |node| (second, node))) {
        for (metric, level) in [("gpu_power_w", 500.0), ("tensor_active", 0.6), ("net_tx_gbs", 50.0)] {
            let share = if node == 5 && second >= 360 && metric == "gpu_power_w" { 0.66 } else { 1.0 };
            let value = level * share * (1.0 + 0.03 * chance.normal());
            rows.push(format!("{}.{node},n{node},{metric},{value:.4}\n", 1_760_000_000 + second));
        }
    }
    rows
}

#[test]
fn a_recording_of_our_own_names_its_odd_machine_packed_or_plain_in_any_order_and_with_holes() {
    let mut chance = Chance::new(16);
    let mut rows = made(&mut chance);
    let plain = "time_s,node,metric,value\n".to_owned() + &rows.concat();
    let expected = alerts(plain.as_bytes());
    assert_eq!(expected.iter().map(|alert| alert.node.as_str()).collect::<Vec<_>>(), ["n5"]);
    // Every row twice, some without a value besides, in any order.
    rows.extend(rows.clone());
    rows.extend((0..500).map(|second| format!("{}.9,n1,gpu_power_w,NaN\n", 1_760_000_000 + second)));
    (1..rows.len()).rev().for_each(|at| rows.swap(at, chance.below(at + 1)));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(format!("time_s,node,metric,value\n{}", rows.concat()).as_bytes()).unwrap();
    assert_eq!(alerts(&packed.finish().unwrap()[..]), expected);
    // Seconds of one node are lost, and another is silent for 100 s while the job goes on.
    let lost = |row: &str| row.contains("0.1,n1,") || (row.contains(",n2,") && row.starts_with("17600001"));
    let torn: String = plain.split_inclusive('\n').filter(|row| !lost(row)).collect();
    assert_eq!(alerts(torn.as_bytes()).len(), 1);
}

/// Every `step`-th second of a recording, as an exporter that is asked so often would have told it.
fn coarse(file: &Path, step: u64) -> Vec<Alert> {
    let mut text = String::new();
    let mut input = unpacked(BufReader::new(File::open(file).unwrap())).unwrap();
    std::io::Read::read_to_string(&mut input, &mut text).unwrap();
    let kept = |row: &&str| {
        row.split(',').next().is_none_or(|time| time.parse().is_ok_and(|time: f64| (time as u64).is_multiple_of(step)))
    };
    let rows: String = text.split_inclusive('\n').skip(1).filter(kept).collect();
    let mut recording = Recording::default();
    recording.add_csv(format!("time_s,node,metric,value\n{rows}").as_bytes()).unwrap();
    recording.sort();
    recording.hold().unwrap();
    alerts_of(&recording)
}

#[test]
#[ignore = "prints what a slow exporter costs; half a minute for each step"]
fn slow_exporters_cost_delay() {
    let Some(files) = recordings() else { return };
    for step in [1, 5, 10, 15, 30] {
        let mut score = Score::default();
        files.iter().for_each(|file| drop(score.add_alerts(file, &coarse(file, step))));
        println!(
            "| {step} s | {} of {} | {} of {} | {:.0} s | {} |",
            score.right,
            score.right + score.wrong,
            score.found,
            score.detectable,
            score.delays.iter().sum::<f64>() / score.delays.len().max(1) as f64,
            score.clean_accused
        );
    }
}

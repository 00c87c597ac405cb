//! What recordings cost: CPU time to read one and go through it, by format, and bytes for each value that `--record` keeps.
//!
//! `cargo run --release -p muster --example watch_files [NODES] [METRICS] [SECONDS]`: 32 nodes, 10 metrics and 30 minutes unless told otherwise.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use muster_analysis::Chance;
use muster_import::telemetry::{Files, Recording};
use muster_store::telemetry::{Recorder, replay};
use muster_watch::{Settings, Watch};

/// Metrics of a job, each with its level and its noise.
const METRICS: [(&str, f64, f64); 10] = [
    ("gpu_util_pct", 97.0, 0.01),
    ("gpu_power_w", 560.0, 0.02),
    ("gpu_temp_c", 62.0, 0.01),
    ("gpu_clock_mhz", 1_755.0, 0.005),
    ("tensor_active", 0.42, 0.03),
    ("nvlink_gbs", 180.0, 0.04),
    ("net_tx_gbs", 38.0, 0.05),
    ("cpu_util_pct", 31.0, 0.05),
    ("mem_used_pct", 44.0, 0.002),
    ("tcp_retrans_pps", 0.0, 0.0),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse().unwrap_or_default());
    let mut next = |usual: usize| numbers.next().filter(|n| *n > 0).unwrap_or(usual);
    let (nodes, metrics, seconds) = (next(32), next(10).min(METRICS.len()), next(1_800));
    let dir = tempfile::tempdir()?;
    let packed = dir.path().join("job.csv.gz");
    let own = made(&dir.path().join("db"), &packed, (nodes, metrics, seconds))?;
    println!("{seconds} s x {nodes} nodes x {metrics} metrics:");
    let began = now();
    let mut files = Files::default();
    files.add(File::open(&packed)?)?;
    let (recording, _) = files.finish()?;
    let read = now();
    told("CSV.gz", packed.metadata()?.len(), recording.rows().len(), (read - began, watched(&recording)));
    let began = now();
    let (mut files, mut failed) = (Files::default(), None);
    replay(&own, &mut |told| {
        let pushed = files.recording().push(told.node, told.metric, told.time_s, told.value);
        failed = failed.take().or(pushed.err());
    })?;
    failed.map_or(Ok(()), Err)?;
    let (recording, _) = files.finish()?;
    let read = now();
    told("--record", own.metadata()?.len(), recording.rows().len(), (read - began, watched(&recording)));
    Ok(())
}

fn told(what: &str, bytes: u64, values: usize, (read, watched): (Duration, Duration)) {
    println!(
        "{what}: {values} values in {:.2} MB, {:.2} bytes a value; read in {:.2} s, gone through in {:.2} s of CPU time",
        bytes as f64 / 1e6,
        bytes as f64 / values.max(1) as f64,
        read.as_secs_f64(),
        watched.as_secs_f64()
    );
}

/// A healthy job, as CSV.gz and as a recording.
fn made(
    dir: &Path,
    packed: &Path,
    (nodes, metrics, seconds): (usize, usize, usize),
) -> Result<std::path::PathBuf, Box<dyn std::error::Error>> {
    let names: Vec<String> = (0..nodes).map(|node| format!("n{node:03}")).collect();
    let mut csv = GzEncoder::new(File::create(packed)?, Compression::default());
    csv.write_all(b"time_s,node,metric,value\n")?;
    let mut recorder = Recorder::create(dir, "job", names.clone(), u64::MAX)?;
    let mut chance = Chance::new(1);
    for second in 0..seconds {
        for (node, name) in names.iter().enumerate() {
            let time_s = 1.76e9 + second as f64 + 0.37 + 0.02 * chance.normal();
            let value =
                |(metric, level, noise): &(&'static str, f64, f64)| (*metric, level * (1.0 + noise * chance.normal()));
            let values: Vec<(&'static str, f64)> = METRICS.iter().take(metrics).map(value).collect();
            for (metric, value) in &values {
                writeln!(csv, "{time_s:.3},{name},{metric},{value:.4}")?;
            }
            recorder.push(u32::try_from(node)?, time_s, &values)?;
        }
        // As a watch does it: a chunk in half a minute.
        if second % 30 == 29 {
            recorder.commit()?;
        }
    }
    recorder.commit()?;
    csv.finish()?;
    Ok(recorder.path().to_owned())
}

/// CPU time in which the detector goes through it.
fn watched(recording: &Recording) -> Duration {
    let began = now();
    let mut watch = Watch::new(Settings::default());
    let nodes: Vec<_> = recording.nodes.iter().map(|name| watch.node(name)).collect();
    let metrics: Vec<_> = recording.metrics.iter().map(|name| watch.metric(name)).collect();
    for row in recording.rows() {
        let (node, metric) = recording.of(row);
        if let (Some(node), Some(metric)) = (nodes[node], metrics[metric]) {
            watch.push(row.time_s, node, metric, f64::from(row.value));
        }
    }
    watch.finish();
    now() - began
}

/// CPU time of this process: what one idle core would have taken, also on a busy machine.
fn now() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    Duration::from_nanos(nanos)
}

//! How do the probe's own engines compare with the field's tools on this machine? Runs both in turns and prints ratios.
//!
//! ```text
//! cargo build --release -p muster-probe
//! cargo run --release -p muster-probe --example field_tools -- --stream ./stream --openblas ./dgemm
//! ```
//!
//! `fio` and `iperf3` are taken from the path. `--stream` is McCalpin's STREAM (`gcc -O3 -fopenmp
//! -DSTREAM_ARRAY_SIZE=40000000 stream.c`). `--openblas` is any program that multiplies two square matrices with
//! `cblas_dgemm` a dozen times and prints the best rate in FLOP/s as its only word. What is missing is skipped and said.
//! Exit code 2 when a ratio is below its target.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::Duration;

use clap::Parser;
use serde_json::Value;

#[derive(Parser)]
#[command(about = "The probe's engines against STREAM, OpenBLAS, fio and iperf3, in turns")]
struct Options {
    /// STREAM, compiled
    #[arg(long)]
    stream: Option<PathBuf>,
    /// A program around cblas_dgemm that prints FLOP/s
    #[arg(long)]
    openblas: Option<PathBuf>,
    /// Directory for the disk's files
    #[arg(long, default_value = "/var/tmp")]
    scratch: PathBuf,
    /// The probe; beside this program when not given
    #[arg(long)]
    probe: Option<PathBuf>,
    /// Turns of each
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only these rows: triad, gemm, rand-read, seq-read, loopback
    rows: Vec<String>,
}

type Outcome = Result<f64, String>;

/// Ours and theirs.
struct Row {
    name: &'static str,
    tool: &'static str,
    benchmark: &'static str,
    metric: &'static str,
    /// STREAM and BLAS report their best pass, the others what the whole run came to.
    best: bool,
    target: f64,
    theirs: fn(&Options) -> Outcome,
}

const ROWS: [Row; 5] = [
    Row {
        name: "triad",
        tool: "STREAM",
        benchmark: "cpu-stream",
        metric: "triad",
        best: true,
        target: 0.97,
        theirs: stream,
    },
    Row {
        name: "gemm",
        tool: "OpenBLAS",
        benchmark: "cpu-gemm",
        metric: "fp64",
        best: true,
        target: 0.9,
        theirs: openblas,
    },
    Row {
        name: "rand-read",
        tool: "fio",
        benchmark: "disk",
        metric: "rand-read",
        best: false,
        target: 0.97,
        theirs: random,
    },
    Row {
        name: "seq-read",
        tool: "fio",
        benchmark: "disk",
        metric: "seq-read",
        best: false,
        target: 0.97,
        theirs: sequential,
    },
    Row {
        name: "loopback",
        tool: "iperf3",
        benchmark: "net-loopback",
        metric: "throughput",
        best: false,
        target: 0.95,
        theirs: iperf,
    },
];

fn main() -> ExitCode {
    let options = Options::parse();
    let mut missed = false;
    println!(
        "{:10} {:>11} {:>11}  {:9} {:>6} {:>7}  spread of the ratio over {} turns",
        "row", "ours", "theirs", "tool", "ratio", "target", options.rounds
    );
    for row in ROWS.iter().filter(|row| options.rows.is_empty() || options.rows.iter().any(|name| name == row.name)) {
        let turns: Result<Vec<(f64, f64)>, String> =
            (0..options.rounds.max(1)).map(|_| Ok((ours(&options, row)?, (row.theirs)(&options)?))).collect();
        match turns {
            Ok(turns) => missed |= !told(row, &turns),
            Err(why) => println!("{:10} SKIPPED: {why}", row.name),
        }
    }
    if missed { ExitCode::from(2) } else { ExitCode::SUCCESS }
}

/// Prints a row; whether its target is met.
fn told(row: &Row, turns: &[(f64, f64)]) -> bool {
    let (ours, theirs): (Vec<f64>, Vec<f64>) = turns.iter().copied().unzip();
    let ratios: Vec<f64> = turns.iter().map(|(ours, theirs)| ours / theirs).collect();
    let (ours, theirs, ratio) = (median(ours), median(theirs), median(ratios.clone()));
    let (low, high) = ratios.iter().fold((f64::MAX, 0.0f64), |(low, high), r| (low.min(*r), high.max(*r)));
    let verdict = if ratio >= row.target { "" } else { "  MISSED" };
    let Row { name, tool, target, .. } = row;
    println!(
        "{name:10} {ours:11.4e} {theirs:11.4e}  {tool:9} {ratio:6.3} {target:7.2}  {low:.3} to {high:.3}{verdict}"
    );
    ratio >= *target
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn ours(options: &Options, row: &Row) -> Outcome {
    let beside = || Some(std::env::current_exe().ok()?.parent()?.parent()?.join("muster-probe"));
    let probe = options.probe.clone().or_else(beside).ok_or("no probe")?;
    let mut command = Command::new(&probe);
    command.args(["run", row.benchmark, "--profile", "quick", "--format", "json", "--scratch"]).arg(&options.scratch);
    let document = json(&mut command)?;
    let series = document["benchmarks"][0]["series"].as_array().cloned().unwrap_or_default();
    let found = series.iter().find(|series| series["name"] == row.metric);
    let values: Vec<f64> = found
        .and_then(|series| series["values"].as_array())
        .map(|values| values.iter().filter_map(Value::as_f64).collect())
        .filter(|values: &Vec<f64>| !values.is_empty())
        .ok_or_else(|| format!("{} gave no {}", probe.display(), row.metric))?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    Ok(if row.best { values.into_iter().fold(0.0, f64::max) } else { mean })
}

fn stream(options: &Options) -> Outcome {
    let program = options.stream.as_ref().ok_or("no --stream given")?;
    let text = text(&mut Command::new(program))?;
    let line = text.lines().find(|line| line.starts_with("Triad:")).ok_or("STREAM printed no Triad")?;
    let rate = line.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
    rate.map(|rate| rate * 1e6).ok_or_else(|| format!("no rate in '{line}'"))
}

fn openblas(options: &Options) -> Outcome {
    let program = options.openblas.as_ref().ok_or("no --openblas given")?;
    let text = text(&mut Command::new(program))?;
    text.trim().parse().map_err(|_| format!("no rate in '{}'", text.trim()))
}

fn random(options: &Options) -> Outcome {
    fio(options, &["--rw=randread", "--bs=4k", "--iodepth=16"])?["iops"].as_f64().ok_or("fio gave no IOPS".into())
}

fn sequential(options: &Options) -> Outcome {
    let read = fio(options, &["--rw=read", "--bs=256k", "--iodepth=4"])?;
    read["bw_bytes"].as_f64().ok_or("fio gave no bandwidth".into())
}

/// Same file size, depth and engine as the quick profile's.
fn fio(options: &Options, load: &[&str]) -> Result<Value, String> {
    let file = options.scratch.join(format!("muster-fio-{}", std::process::id()));
    let mut command = Command::new("fio");
    command.arg("--name=read").arg(format!("--filename={}", file.display())).args(load);
    command.args(["--size=256m", "--direct=1", "--ioengine=io_uring", "--norandommap", "--randrepeat=1"]);
    command.args(["--time_based", "--ramp_time=1", "--runtime=3", "--output-format=json"]);
    let document = json(&mut command);
    drop(std::fs::remove_file(file));
    Ok(document?["jobs"][0]["read"].clone())
}

fn iperf(_options: &Options) -> Outcome {
    let mut server = Command::new("iperf3");
    let server = server.args(["-s", "-1", "-p", "5299", "--bind", "127.0.0.1"]).stdout(Stdio::null()).spawn();
    let mut server = server.map_err(|e| format!("iperf3: {e}"))?;
    sleep(Duration::from_millis(300));
    let ended = json(Command::new("iperf3").args(["-c", "127.0.0.1", "-p", "5299", "-t", "3", "-O", "1", "-J"]));
    drop(server.kill());
    drop(server.wait());
    let bits = ended?["end"]["sum_received"]["bits_per_second"].as_f64();
    bits.map(|bits| bits / 8.0).ok_or("iperf3 gave no rate".into())
}

fn json(command: &mut Command) -> Result<Value, String> {
    let text = text(command)?;
    serde_json::from_str(&text).map_err(|e| format!("{:?}: {e}", command.get_program()))
}

fn text(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stderr(Stdio::inherit()).output().map_err(|e| format!("{name}: {e}"))?;
    if !output.status.success() {
        return Err(format!("{name} ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{name} printed no text"))
}

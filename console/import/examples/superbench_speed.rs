//! How long a whole SuperBench file takes: 3,000 nodes x 2,441 metrics written to a temporary file, loaded, all its
//! criteria learned, and everything judged again at another alpha; CPU seconds of one thread, and who was found.
//!
//! `cargo run --release -p muster-import --example superbench_speed [NODES]`

#![expect(clippy::disallowed_methods, reason = "measures time and makes its own file, which the library never does")]

use std::collections::BTreeSet;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use muster_analysis::what_if::{Standing, flags, flips};
use muster_analysis::{Criterion, Params, Sample, Table, criterion_of};
use muster_import::superbench::{Key, summary};
use muster_import::{Limits, Meaning};
use muster_wire::Direction;

/// How often a short stretch is measured.
const REPEATS: u32 = 100;

/// CPU time of this thread: what one idle core would have taken, also on a busy machine.
fn now() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    Duration::from_nanos(nanos)
}

fn since(start: Duration) -> f64 {
    (now() - start).as_secs_f64()
}

/// A small generator, enough for noise.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Twelve uniforms: near enough to normal, and bounded.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// 2,441 keys in SuperBench's grammar with a level each.
fn keys() -> Vec<(String, f64)> {
    let mut keys = Vec::new();
    for rank in 0..8 {
        for (name, level) in [("kernel-launch/event_time", 0.0057), ("kernel-launch/wall_time", 0.0096)] {
            keys.push((format!("{name}:{rank}"), level));
        }
        for (name, level) in [("fp64", 9030.9), ("fp32", 18353.0), ("fp16_tc", 280_435.1), ("tf32_tc", 128_225.0)] {
            keys.push((format!("gemm-flops/{name}_flops:{rank}"), level));
        }
        keys.push((format!("mem-bw/h2d_bw:{rank}"), 25.92));
        keys.push((format!("mem-bw/d2h_bw:{rank}"), 26.03));
        for power in 1..24 {
            keys.push((format!("ib-loopback/ib_write_{}_ib{rank}_bw:{rank}", 1u64 << power), 23.68));
        }
        for kernel in 0..50 {
            keys.push((format!("cudnn-function/name_conv_{kernel}_128_64_time:{rank}"), 31.5 + f64::from(kernel)));
        }
    }
    for operation in ["allreduce", "allgather", "reducescatter", "alltoall", "broadcast"] {
        for power in 3..34 {
            for (what, level) in [("busbw", 231.7), ("algbw", 132.4), ("time", 16215.0)] {
                keys.push((format!("nccl-bw:nvlink/{operation}_{}_{what}", 1u64 << power), level));
            }
        }
    }
    for model in ["bert-large", "gpt2-large", "resnet50", "resnet152", "densenet169", "vgg19", "lstm"] {
        for precision in ["fp32", "fp16"] {
            for (what, level) in [("step_time", 206.8), ("throughput", 154.8)] {
                let model = format!("model-benchmarks:train/pytorch-{model}");
                keys.push((format!("{model}/{precision}_train_{what}"), level));
            }
        }
    }
    let mut pair = 0;
    while keys.len() < 2441 {
        keys.push((
            format!("gpu-copy-bw:perf/gpu{}_to_gpu{}_read_by_sm_bw:{}", pair % 8, pair / 8 % 8, pair / 64),
            258.4,
        ));
        pair += 1;
    }
    keys
}

/// Every tenth node is 6 to 40 % worse in one to eight metrics.
fn write(path: &Path, keys: &[(String, f64)], nodes: usize) -> io::Result<BTreeSet<usize>> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut noise = Noise(7);
    let mut planted = BTreeSet::new();
    for node in 0..nodes {
        let mut bad = BTreeSet::new();
        if node % 10 == 3 {
            planted.insert(node);
            for _ in 0..1 + node / 10 % 8 {
                bad.insert((noise.uniform() * keys.len() as f64) as usize);
            }
        }
        write!(out, "{{")?;
        for (at, (key, level)) in keys.iter().enumerate() {
            let mut value = level * 0.004f64.mul_add(noise.normal(), 1.0);
            if bad.contains(&at) {
                let loss = 0.34f64.mul_add(noise.uniform(), 0.07);
                let slow = matches!(meaning(key), Some((_, Direction::LowerIsBetter)));
                value *= if slow { 1.0 / (1.0 - loss) } else { 1.0 - loss };
            }
            write!(out, "\"{key}\": {value}, ")?;
        }
        writeln!(out, "\"node\": \"node-{node:04}\"}}")?;
    }
    out.flush()?;
    Ok(planted)
}

fn meaning(key: &str) -> Option<(f64, Direction)> {
    match Key::parse(key)?.meaning() {
        Meaning::Measure { factor, direction, .. } => Some((factor, direction)),
        _ => None,
    }
}

fn learn(table: &Table, column: usize, params: &Params) -> Option<(Criterion, f64)> {
    let key = Key::parse(&table.metrics()[column])?;
    let Meaning::Measure { unit, factor, direction } = key.meaning() else { return None };
    let samples: Vec<Sample> = table.column(column).iter().filter_map(|v| Sample::new(&[v * factor]).ok()).collect();
    let refs: Vec<&Sample> = samples.iter().collect();
    Some((criterion_of(&key.metric_id(), unit, direction, &refs, params), factor))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nodes = std::env::args().nth(1).map_or(Ok(3000), |word| word.parse())?;
    let path = std::env::temp_dir().join(format!("superbench_speed-{}.jsonl", std::process::id()));
    let keys = keys();
    let planted = write(&path, &keys, nodes)?;
    let bytes = std::fs::metadata(&path)?.len();
    println!("{nodes} nodes x {} metrics, {:.0} MB", keys.len(), bytes as f64 / 1e6);

    let start = now();
    let read = summary::read(BufReader::with_capacity(1 << 20, File::open(&path)?), Limits::default());
    let load = since(start);
    std::fs::remove_file(&path)?;
    let table = read?.table;
    println!("load                        {load:.3} s CPU");

    let params = Params::default();
    let start = now();
    let criteria: Vec<_> = (0..table.metrics().len()).map(|column| learn(&table, column, &params)).collect();
    println!("learn all criteria          {:.3} s CPU", since(start));

    let start = now();
    let standings: Vec<Standing> = criteria
        .iter()
        .enumerate()
        .filter_map(|(column, found)| found.as_ref().map(|(c, factor)| (column, c, *factor)))
        .map(|(column, criterion, factor)| Standing::of_values(criterion, table.column(column), factor))
        .collect();
    println!("judge everything            {:.1} ms CPU", since(start) * 1e3);
    for alpha in [0.95, 0.97, 0.90, 0.95] {
        // Often, since the kernel counts CPU time in ticks.
        let start = now();
        for _ in 0..REPEATS {
            black_box((flags(&standings, black_box(alpha)), flips(&standings, 0.95, black_box(alpha))));
        }
        let took = since(start) * 1e3 / f64::from(REPEATS);
        let flagged = flags(&standings, alpha);
        let changed = flips(&standings, 0.95, alpha).len();
        let found: BTreeSet<usize> = (0..nodes).filter(|&row| flagged.by_row[row] > 0).collect();
        let (missed, extra) = (planted.difference(&found).count(), found.difference(&planted).count());
        println!(
            "alpha {alpha}: again            {took:.2} ms CPU; {changed} flips, {missed} of {} missed, {extra} accused wrongly",
            planted.len()
        );
    }
    Ok(())
}

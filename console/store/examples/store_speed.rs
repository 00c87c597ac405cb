//! Times the store on 7.3 million samples: 20,000 records of 365 values, appended in batches of 100 with one sync each.
//!
//! `cargo run --release -p muster-store --example store_speed [directory]`

use std::path::Path;
use std::time::Instant;

use muster_run::{Record, Run, RunState};
use muster_store::{Db, Options, Store, StoreError, check, rebuild};
use muster_wire::{Direction, MetricId, Outcome, Profile, Series, Unit};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const RECORDS: usize = 20_000;
const VALUES: usize = 365;
const BATCH: usize = 100;

fn main() -> Result<(), StoreError> {
    let temporary = tempfile::tempdir().map_err(|e| fault(&e))?;
    let given = std::env::args_os().nth(1);
    let dir = given.as_ref().map_or_else(|| temporary.path(), Path::new).join("store-speed");

    let append = Instant::now();
    let made = fill(&dir)?;
    let append = append.elapsed().as_secs_f64();
    println!("appended  {RECORDS} records x {VALUES} values = {} samples", RECORDS * VALUES);
    println!("          {:.2} s, of it {made:.2} s for making them; one sync per {BATCH} records", append);
    println!("memory    {} MB at most so far", peak_mb());
    println!("on disk   {:.1} MB", disk(&dir) as f64 / 1e6);

    timed("open", || Db::open(&dir, &Options::default()).map(drop))?;
    let store = Db::open(&dir, &Options::default())?;
    timed("done", || store.done("speed").map(drop))?;
    timed("read all", || store.records("speed").map(drop))?;
    timed("one node", || store.records_of("speed", "node0077").map(drop))?;
    drop(store);
    timed("open ro", || Db::open_read_only(&dir).map(drop))?;
    timed("check", || check(&dir).map(drop))?;
    timed("rebuild", || rebuild(&dir, false).map(drop))?;
    println!("memory    {} MB at most in all", peak_mb());
    Ok(())
}

/// Seconds spent in making the samples.
fn fill(dir: &Path) -> Result<f64, StoreError> {
    let mut random = SmallRng::seed_from_u64(7);
    let mut making = 0.0;
    let mut store = Db::open(dir, &Options::default())?;
    store.begin(&run())?;
    for batch in 0..RECORDS / BATCH {
        let start = Instant::now();
        let records: Vec<Record> = (0..BATCH).map(|i| record(batch * BATCH + i, &mut random)).collect();
        making += start.elapsed().as_secs_f64();
        store.append_many(&records)?;
    }
    store.end("speed", RunState::Finished, 2)?;
    Ok(making)
}

fn run() -> Run {
    Run {
        id: "speed".to_owned(),
        playbook: "none".to_owned(),
        profile: Profile::Standard,
        started_ms: 1,
        ended_ms: None,
        nodes: (0..2_000).map(|n| format!("node{n:04}")).collect(),
        plan: (0..10).map(|w| format!("work{w}")).collect(),
        state: RunState::Running,
    }
}

/// Values as hard to compress as measurements are: every digit below the second is noise.
fn record(i: usize, random: &mut SmallRng) -> Record {
    let level = 40e9 * (1.0 + 0.05 * random.random::<f64>());
    Record {
        run: "speed".to_owned(),
        node: format!("node{:04}", i / 10),
        work: format!("work{}", i % 10),
        outcome: Outcome::Done,
        at_ms: 1_700_000_000_000 + i as u64,
        elapsed_ns: 1_000_000_000,
        series: vec![Series {
            metric: MetricId::new(format!("work{}", i % 10), "copy", "own"),
            unit: Unit::BytesPerSec,
            direction: Direction::HigherIsBetter,
            values: (0..VALUES).map(|_| level * (1.0 + 0.01 * random.random::<f64>())).collect(),
            warmup: 3,
            started_ns: 1,
        }],
        facts: Vec::new(),
    }
}

fn timed(what: &str, work: impl FnOnce() -> Result<(), StoreError>) -> Result<(), StoreError> {
    let start = Instant::now();
    work()?;
    println!("{what:<9} {:.3} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Largest resident set of this process, megabytes.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) * 1_024 / 1_000_000
}

/// Bytes that the directory takes on disk.
fn disk(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => disk(&entry.path()),
        Ok(meta) => meta.blocks() * 512,
        Err(_) => 0,
    };
    entries.map(size).sum()
}

fn fault(e: &std::io::Error) -> StoreError {
    StoreError::BadName { what: "directory", name: e.to_string(), why: "no temporary directory can be made" }
}

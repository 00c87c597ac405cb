//! Makes a database of some gigabytes and times what a list of runs and the Selector ask of it.
//!
//! `cargo run --release -p muster-store --example large_store -- DIRECTORY [RUNS [NODES [WORKS [VALUES]]]]`; what is in the
//! directory already is not made again. 60 runs of 2,000 nodes, 15 benchmarks and 365 values take 5 GB.

use std::path::Path;
use std::time::Instant;

use muster_run::{Record, Run, RunState};
use muster_store::{Db, Options, Store, StoreError};
use muster_wire::{BENCHMARKS, Direction, MetricId, Outcome, Profile, Series, Unit};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const USUAL: [usize; 4] = [60, 2_000, 15, 365];
/// Nodes whose records are written with one sync.
const BATCH: usize = 100;
const HOUR_MS: u64 = 3_600_000;

fn main() -> Result<(), StoreError> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(dir) = words.first() else {
        println!("where to? large_store DIRECTORY [RUNS [NODES [WORKS [VALUES]]]]");
        return Ok(());
    };
    let mut sizes = USUAL;
    for (size, word) in sizes.iter_mut().zip(&words[1..]) {
        *size = word.parse().unwrap_or(*size);
    }
    if !Path::new(dir).exists() {
        fill(dir, sizes)?;
    }
    let runs = timed("open and list runs", || Db::open_read_only(dir)?.runs())?;
    timed("open and list nodes", || Db::open_read_only(dir)?.nodes())?;
    if let Some(run) = runs.first() {
        timed("open and list the results of a run", || Db::open_read_only(dir)?.summaries(&run.id))?;
    }
    Ok(())
}

fn fill(dir: &str, [runs, nodes, works, values]: [usize; 4]) -> Result<(), StoreError> {
    let mut random = SmallRng::seed_from_u64(7);
    let mut store = Db::open(dir, &Options::default())?;
    for at in 0..runs {
        let run = Run {
            id: format!("run{at:04}"),
            playbook: "regular".to_owned(),
            profile: Profile::Quick,
            started_ms: at as u64 * HOUR_MS,
            ended_ms: None,
            nodes: (0..nodes).map(|node| format!("node{node:05}")).collect(),
            // Of works with other names nobody knows whether a newer run asked the same.
            plan: BENCHMARKS.iter().take(works).map(|of| of.name.to_owned()).collect(),
            state: RunState::Running,
        };
        store.begin(&run)?;
        for batch in run.nodes.chunks(BATCH) {
            let mut records = Vec::new();
            for (node, work) in batch.iter().flat_map(|node| run.plan.iter().map(move |work| (node, work))) {
                records.push(record(&run, (node, work), values, &mut random));
            }
            store.append_many(&records)?;
        }
        store.end(&run.id, RunState::Finished, run.started_ms + HOUR_MS / 2)?;
        println!("{} of {runs} runs", at + 1);
    }
    Ok(())
}

/// Values as hard to compress as measurements are: every digit below the second is noise.
fn record(run: &Run, (node, work): (&str, &str), values: usize, random: &mut SmallRng) -> Record {
    let level = 40e9 * (1.0 + 0.05 * random.random::<f64>());
    Record {
        run: run.id.clone(),
        node: node.to_owned(),
        work: work.to_owned(),
        outcome: Outcome::Done,
        at_ms: run.started_ms + random.random_range(0..HOUR_MS / 2),
        elapsed_ns: random.random_range(1_000_000_000..90_000_000_000),
        series: vec![Series {
            metric: MetricId::new(work, "copy", "own"),
            unit: Unit::BytesPerSec,
            direction: Direction::HigherIsBetter,
            values: (0..values).map(|_| level * (1.0 + 0.01 * random.random::<f64>())).collect(),
            warmup: 3,
            started_ns: 1,
        }],
        facts: Vec::new(),
    }
}

fn timed<T>(what: &str, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let start = Instant::now();
    let done = work()?;
    println!("{what:<36} {:.3} s", start.elapsed().as_secs_f64());
    Ok(done)
}

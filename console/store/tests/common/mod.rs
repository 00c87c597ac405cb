//! Runs and records for the tests of this crate.

use std::path::Path;

use muster_run::{Record, Run, RunState};
use muster_store::{Db, Options};
use muster_wire::{Direction, MetricId, Outcome, Profile, Series, Unit};

pub(crate) fn db(dir: &Path) -> Db {
    Db::open(dir, &Options::default()).expect("the database opens")
}

pub(crate) fn run(id: &str, started_ms: u64) -> Run {
    Run {
        id: id.to_owned(),
        playbook: "cbd-light".to_owned(),
        profile: Profile::Quick,
        started_ms,
        ended_ms: None,
        nodes: vec!["n1".to_owned(), "n2".to_owned()],
        plan: vec!["disk".to_owned(), "cpu-gemm".to_owned()],
        state: RunState::Running,
    }
}

/// A record of `values` samples that its names decide.
pub(crate) fn record(run: &str, node: &str, work: &str, values: usize) -> Record {
    let seed = crc(node) ^ crc(work);
    let series = Series {
        metric: MetricId::new(work, "copy", "own"),
        unit: Unit::BytesPerSec,
        direction: Direction::HigherIsBetter,
        values: (0..values).map(|i| 41e9 + f64::from(seed % 1_000) * 1e6 + i as f64 * 1.25).collect(),
        warmup: 2,
        started_ns: 17,
    };
    Record {
        run: run.to_owned(),
        node: node.to_owned(),
        work: work.to_owned(),
        outcome: Outcome::Done,
        at_ms: 1_700_000_000_000,
        elapsed_ns: 1_000_000,
        series: vec![series],
        facts: Vec::new(),
    }
}

fn crc(text: &str) -> u32 {
    text.bytes().fold(7, |h, b| h.wrapping_mul(31).wrapping_add(u32::from(b)))
}

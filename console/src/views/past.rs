//! What does the database know of a node from before? Read on a thread of its own, so that neither scan nor screen waits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::channel;

use muster_analysis::{Sample, State};
use muster_run::{LINK, Record, joined};
use muster_store::{Db, Incident, Store, StoreError};
use muster_tui::snapshot::{IncidentRow, MetricPast, Past, WorkSeen};
use muster_wire::limits::TEXT_BYTES;
use muster_wire::{MetricId, Outcome, clean};

use super::Board;

/// Runs that are looked into, newest first.
const RUNS: usize = 32;

/// Reads the database in `dir` for `board` from now on, whatever node it looks at.
pub fn read_past(dir: PathBuf, board: &Board) {
    each_looked_at(board, move |board, node| {
        let looked = Db::open_read_only(&dir).and_then(|db| {
            let found = past(&db, node).and_then(|past| Ok((past, stored(&db, &board.shown(), node)?)));
            board.tell_damage(&db);
            found
        });
        match looked {
            Ok((past, stored)) => board.past(node, past, stored),
            Err(why) => log::warn!("the past of {node} cannot be read: {why}"),
        }
    });
}

/// Calls `read`, on a thread of its own, with every node that `board` looks at from now on.
pub(super) fn each_looked_at(board: &Board, read: impl Fn(&Board, &str) + Send + 'static) {
    let (sender, names) = channel::<String>();
    board.read_by(sender);
    let board = board.clone();
    std::thread::spawn(move || {
        while let Ok(first) = names.recv() {
            // Whoever scrolls asks for many nodes and waits for the last one.
            let node = names.try_iter().last().unwrap_or(first);
            read(&board, &node);
        }
    });
}

/// The records of `node` in `runs`, newest first.
fn stored(store: &dyn Store, runs: &[String], node: &str) -> Result<Vec<Record>, StoreError> {
    let mut found = Vec::new();
    for run in runs {
        found.extend(store.records_of(run, node)?.into_iter().rev());
    }
    Ok(found)
}

/// The past of `node` in the newest runs.
fn past(store: &dyn Store, node: &str) -> Result<Past, StoreError> {
    let mut works: BTreeMap<String, WorkSeen> = BTreeMap::new();
    let mut metrics: BTreeMap<MetricId, Vec<(u64, f64)>> = BTreeMap::new();
    let runs = store.runs()?.into_iter().filter(|run| run.nodes.iter().any(|n| n == node)).take(RUNS);
    for run in runs {
        for record in store.records_of(&run.id, node)?.iter().filter(|r| r.work != LINK) {
            works.entry(record.work.clone()).or_insert_with(|| seen(record));
            for (metric, series) in record.by_metric() {
                if let Ok(sample) = Sample::new(&joined(series)) {
                    metrics.entry(metric.clone()).or_default().push((record.at_ms, sample.median()));
                }
            }
        }
    }
    let metric = |(metric, mut medians): (MetricId, Vec<(u64, f64)>)| {
        medians.sort_by_key(|(at, _)| *at);
        medians.dedup_by_key(|(at, _)| *at);
        MetricPast { metric, medians: medians.into() }
    };
    let mut incidents: Vec<Incident> = store.incidents()?.into_iter().filter(|i| i.node == node).collect();
    incidents.sort_by_key(|i| std::cmp::Reverse(i.start_ms));
    Ok(Past {
        works: works.into_values().collect(),
        metrics: metrics.into_iter().map(metric).collect(),
        incidents: incidents.iter().map(incident).collect(),
    })
}

fn seen(record: &Record) -> WorkSeen {
    let ended = match record.outcome {
        Outcome::Done => State::Pass,
        Outcome::NotApplicable(_) => State::NotApplicable,
        Outcome::NotRun(_) => State::NotRun,
        Outcome::Denied(_) => State::Unknown,
        Outcome::Failed(_) => State::Fail,
    };
    WorkSeen { work: record.work.clone(), at_ms: record.at_ms, ended }
}

fn incident(incident: &Incident) -> IncidentRow {
    let tidy = |text: &str| clean(text, TEXT_BYTES);
    IncidentRow {
        start_ms: incident.start_ms,
        end_ms: incident.end_ms,
        category: tidy(&incident.category),
        reason: tidy(&incident.reason),
        source: tidy(&incident.source),
    }
}

//! How long a key takes to its finished frame while a run on 10,000 nodes goes on and is judged. Everything is what a user has but
//! the nodes, whose records are made up, the terminal, which is written to and not looked at, and the user.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::Parser;
use muster_fleet::{Inventory, LinkState, Settings};
use muster_playbook::find_builtin;
use muster_run::{Record, RunState};
use muster_store::{Db, Store};
use muster_tui::{Event, Input, Screen, rehearse};
use muster_wire::{Direction, MetricId, Outcome, Progress, Series, benchmark};
use tokio_util::sync::CancellationToken;

use super::App;
use crate::clock::now_ms;
use crate::config::{Raw, resolve};
use crate::options::Common;
use crate::session::Job;
use crate::work::{Observer, Scan, Update};

const NODES: usize = 10_000;
/// One of so many nodes is slow in every benchmark.
const SLOW: usize = 997;
/// How long keys are pressed, how often, and how long the run takes.
const MEASURED: Duration = Duration::from_secs(60);
const EVERY: Duration = Duration::from_millis(47);
const RUN: Duration = Duration::from_secs(70);
/// Records that a scan keeps at once at most.
const BATCH: usize = 256;
/// What an engineer looks at, over and over: rows, findings, a node, its metrics, a metric, the map, orders, filters, other screens.
const KEYS: &str = "jjjjk]]\rjjdjdn\rjj+\x1b\x1b\x1bmjjjjlmsjSjsssss1/n0[12]\rjj\x1b\x1bGgw9j5j6j7j8j1w?\x1b:n0777\rnp2jj\x1bFjjF3jj\rj\x1b\x1b";

/// A command line without words.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    common: Common,
}

/// Keys that come at their times, and when each was seen to be drawn.
#[derive(Clone)]
struct User {
    begun: Instant,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    pressed: usize,
    /// Pressed and not drawn yet.
    open: Vec<(usize, Instant)>,
    took: Vec<(usize, Duration)>,
    /// When the screen's thread last woke up, and its CPU time then.
    woken: Option<Duration>,
    /// CPU time of every turn of the screen's thread, from waking up until it waits again.
    turns: Vec<Duration>,
}

/// CPU time of this thread so far.
fn cpu() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec.unsigned_abs(), spent.tv_nsec.unsigned_abs() as u32)
}

impl User {
    fn due(&self, nr: usize) -> Instant {
        self.begun + EVERY * u32::try_from(nr).unwrap()
    }
}

/// The key number `nr`; the last two leave.
fn key(nr: usize) -> char {
    let last = (MEASURED.as_millis() / EVERY.as_millis()) as usize;
    match nr.checked_sub(last) {
        None => KEYS.chars().nth(nr % KEYS.chars().count()).unwrap(),
        // Whatever is open is closed first.
        Some(0..=3) => '\x1b',
        Some(4) => 'q',
        Some(_) => 'y',
    }
}

impl Input for User {
    fn wait(&mut self, most: Duration) -> io::Result<()> {
        let mut log = self.log.lock().unwrap();
        if let Some(woken) = log.woken {
            log.turns.push(cpu() - woken);
        }
        let due = self.due(log.pressed);
        std::thread::sleep(due.saturating_duration_since(Instant::now()).min(most));
        log.woken = Some(cpu());
        Ok(())
    }

    fn next(&mut self) -> io::Result<Option<Event>> {
        let mut log = self.log.lock().unwrap();
        let (nr, due) = (log.pressed, self.due(log.pressed));
        if due > Instant::now() {
            return Ok(None);
        }
        log.pressed += 1;
        log.open.push((nr, due));
        Ok(Some(Event::from(key(nr))))
    }
}

/// The terminal: a frame ends where it is flushed.
impl Write for User {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut log = self.log.lock().unwrap();
        let drawn: Vec<_> = log.open.drain(..).map(|(nr, due)| (nr, due.elapsed())).collect();
        log.took.extend(drawn);
        Ok(())
    }
}

/// What `node` gives for `work`: a steady value with a little noise of its own in every step.
fn record(run: &str, node: &str, work: &str) -> Record {
    let mut state = node
        .bytes()
        .chain(work.bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as f64 / f64::from(1 << 24) - 0.5
    };
    let slow = node[1..].parse::<usize>().unwrap() % SLOW == SLOW - 1;
    let metrics = benchmark(work).map_or(&[][..], |entry| entry.metrics);
    let series = metrics.iter().map(|metric| {
        let name = metric.pattern.replace("{core}", "0").replace("{gpu}", "0").replace("{n}", "1");
        let factor = match (slow, metric.direction) {
            (false, _) => 1.0,
            (true, Direction::HigherIsBetter) => 0.7,
            (true, Direction::LowerIsBetter) => 1.4,
        };
        let values = (0..16).map(|_| 1e6 * factor * (1.0 + 0.01 * noise())).collect();
        let metric_id = MetricId::new(work, name, "own");
        Series { metric: metric_id, unit: metric.unit, direction: metric.direction, values, warmup: 2, started_ns: 1 }
    });
    Record {
        run: run.to_owned(),
        node: node.to_owned(),
        work: work.to_owned(),
        outcome: Outcome::Done,
        at_ms: now_ms(),
        elapsed_ns: 1_000_000_000,
        series: series.collect(),
        facts: Vec::new(),
    }
}

/// What [`crate::work::scan`] does, with records that no node sent.
async fn feed(
    scan: &Scan,
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    cancel: &CancellationToken,
) -> anyhow::Result<RunState> {
    let (begun, mut done) = (Instant::now(), 0);
    let total: usize = scan.plan.phases.iter().map(|phase| phase.work_names().len() * phase.nodes.len()).sum();
    for (index, phase) in scan.plan.phases.iter().enumerate() {
        let works = phase.work_names();
        let (step, nodes) = (phase.step.as_str(), phase.nodes.len());
        watchers
            .iter_mut()
            .for_each(|w| w.see(&Update::Phase { index, step, nodes, work: works.len() * nodes, further: &[] }));
        for nodes in phase.nodes.chunks(BATCH / works.len()) {
            if cancel.is_cancelled() {
                return Ok(RunState::Cancelled);
            }
            for node in nodes {
                watchers.iter_mut().for_each(|w| w.see(&Update::Link { node, state: &LinkState::Live }));
                let progress = Progress { benchmark: works[0].clone(), done: 0.5, note: "step 1 of 2".to_owned() };
                watchers.iter_mut().for_each(|w| w.see(&Update::Working { node, progress: &progress }));
            }
            let of = |node: &String| works.iter().map(|work| record(&scan.run.id, node, work)).collect::<Vec<_>>();
            let records: Vec<Record> = nodes.iter().flat_map(of).collect();
            tokio::task::block_in_place(|| store.append_many(&records))?;
            for record in &records {
                watchers.iter_mut().for_each(|w| w.see(&Update::Recorded(record)));
            }
            for node in nodes {
                watchers.iter_mut().for_each(|w| w.see(&Update::Ended { node, failure: None }));
            }
            done += records.len();
            let due = begun + RUN.mul_f64(done as f64 / total as f64);
            tokio::time::sleep(due.saturating_duration_since(Instant::now())).await;
        }
    }
    Ok(RunState::Finished)
}

#[test]
#[ignore = "a campaign: tests/campaign keys10k"]
fn a_key_at_ten_thousand_nodes_while_a_run_goes_on_and_is_judged() {
    let dir = tempfile::tempdir().unwrap();
    let raw = Raw { db: Some(dir.path().to_owned()), ..Raw::default() };
    let config = resolve(raw, Raw::default(), Path::new("none.toml")).unwrap();
    let common = Line::parse_from(["muster"]).common;
    let nodes = Inventory::from_names(&format!("n[0001-{NODES}]")).unwrap().nodes().to_vec();
    let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    let playbook = find_builtin("cbd-light").unwrap();
    let job = Job::new(playbook.clone(), nodes, Arc::new(Settings::default()));
    let store = Db::open(dir.path(), &muster_store::Options::default()).unwrap();
    let log = Arc::new(Mutex::new(Log::default()));
    let (seen, sink) = (Arc::new(Mutex::new((0, None))), log.clone());
    let counted = seen.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let ended = runtime.block_on(async {
        let mut app = App::new(job, Ok(store), (config, &common), "10,000 nodes");
        app.carry_by(playbook, &names, feed);
        let options = muster_tui::Options { ascii: false, color: true, first: Screen::Fleet };
        app.serve(None, move |newest, wish| {
            let mut user = User { begun: Instant::now(), log: sink };
            let newest = || {
                let newest = newest()?;
                let (judged, last) = &mut *counted.lock().unwrap();
                *judged += usize::from(last.as_ref().is_some_and(|last| !Arc::ptr_eq(last, &newest.metrics)));
                *last = Some(newest.metrics.clone());
                Some(newest)
            };
            rehearse((user.clone(), 200, 60), options, &mut user, (&newest, wish))
        })
        .await
    });
    ended.map_err(|problem| problem.error).unwrap();
    table(&mut log.lock().unwrap(), seen.lock().unwrap().0);
    let done = Db::open_read_only(dir.path()).unwrap().runs().unwrap();
    assert_eq!(done.len(), 1, "the run is kept");
}

/// Prints what was measured, and on standard error which keys took longest.
fn table(log: &mut Log, judged: usize) {
    log.took.sort_by_key(|(_, took)| *took);
    log.turns.sort_unstable();
    let at = |len: usize, share: f64| ((len - 1) as f64 * share).round() as usize;
    let row = |what: &str, of: &[Duration]| {
        let ms = [0.5, 0.95, 0.99, 1.0].map(|share| of[at(of.len(), share)].as_secs_f64() * 1e3);
        println!("| {what} | {} | {:.1} | {:.1} | {:.1} | {:.1} |", of.len(), ms[0], ms[1], ms[2], ms[3]);
    };
    println!(
        "| milliseconds; judged {judged} times meanwhile | count | median | p95 | p99 | longest |\n|---|---|---|---|---|---|"
    );
    row("from a key to its finished frame", &log.took.iter().map(|(_, took)| *took).collect::<Vec<_>>());
    row("CPU time of a turn of the screen's thread", &log.turns);
    for (nr, took) in log.took.iter().rev().take(20) {
        eprintln!("key {nr} {:?} after {:?}: {took:?}", key(*nr), nr.checked_sub(1).map(key));
    }
}

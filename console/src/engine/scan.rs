//! Carries one plan through: works out to the fleet, records into the store, updates to the watchers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use muster_analysis::State;
use muster_fleet::{Event, EventKind, Failure, Node, Probe, Settings, Work};
use muster_playbook::report::VerdictReport;
use muster_playbook::{Phase, Plan, collector_work};
use muster_store::{Record, Run, RunState, Store};
use muster_wire::{Frame, Outcome, Profile, Request};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::gather::Gather;
use super::network::{self, Fabric};
use super::observe::{Observer, Update};
use super::{Judging, assess, company, report};

/// Name of the record that says how a node's link ended.
pub const LINK: &str = "link";

/// What to carry through.
#[derive(Debug)]
pub struct Scan {
    /// Already begun in the store.
    pub run: Run,
    /// By what a node that fails a step is left out of later ones.
    pub judging: Judging,
    /// Phases and their work.
    pub plan: Plan,
    /// Nodes with their addresses.
    pub nodes: Vec<Node>,
    /// What to push.
    pub probe: Arc<Probe>,
    /// How to connect.
    pub settings: Arc<Settings>,
    /// What is known of the fabric before the pairs of nodes are measured.
    pub fabric: Fabric,
    /// Acknowledged earlier, not measured again.
    pub done: BTreeSet<(String, String)>,
}

/// Runs every phase in turn. Returns how the run ended; nodes that failed are records, not errors.
///
/// # Errors
/// When the store cannot keep a record: then the scan stops, because an unrecorded result is none.
pub async fn scan(
    scan: &Scan,
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    cancel: &CancellationToken,
) -> Result<RunState> {
    let mut lost = BTreeSet::new();
    let mut plan = scan.plan.clone();
    for index in 0..plan.phases.len() {
        let phase = &plan.phases[index];
        if cancel.is_cancelled() {
            return Ok(RunState::Cancelled);
        }
        if let Some(method) = phase.pairs {
            let phase = phase.clone();
            network::phase(scan, (&phase, method), store, watchers, (index, &mut lost, cancel)).await?;
            continue;
        }
        let works = works_of(scan, phase, &lost);
        let update =
            Update::Phase { index, step: &phase.step, nodes: works.len(), work: works.iter().map(work_count).sum() };
        watchers.iter_mut().for_each(|w| w.see(&update));
        if !works.is_empty() {
            carry(scan, works, store, watchers, (&mut lost, cancel)).await?;
        }
        drop_failed(scan, &mut plan, index, store)?;
    }
    if !cancel.is_cancelled() {
        confirm(scan, &lost, store, watchers, cancel).await?;
    }
    Ok(if cancel.is_cancelled() { RunState::Cancelled } else { RunState::Finished })
}

/// Measures again what puts a node in doubt, at another moment: a neighbour's burst has passed by then and a slow
/// node is still slow. The newer record of a piece of work replaces the older one, so the verdict rests on the second
/// look.
async fn confirm(
    scan: &Scan,
    lost: &BTreeSet<String>,
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    cancel: &CancellationToken,
) -> Result<()> {
    let records = store.records(&scan.run.id).context("reading back the results")?;
    let found = report(&scan.run, &assess(&scan.run, &records, &scan.judging));
    let mut accused: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for node in found.nodes.into_iter().filter(|n| n.state >= State::Warn) {
        let doubted = node.verdicts.into_iter().filter(|v| v.state >= State::Warn).map(benchmark);
        accused.entry(node.node).or_default().extend(doubted);
    }
    for record in records.iter().filter(|r| company(r).is_some()) {
        accused.entry(record.node.clone()).or_default().insert(record.work.clone());
    }
    accused.retain(|node, works| !works.is_empty() && !lost.contains(node));
    // Half of the fleet does not have a bad moment at once; and a day-long burn-in is not run twice unasked.
    if accused.is_empty() || accused.len() * 2 > scan.nodes.len() || scan.plan.profile == Profile::Full {
        return Ok(());
    }
    let mut works = Vec::new();
    for phase in &scan.plan.phases {
        for node in scan.nodes.iter().filter(|n| phase.nodes.contains(&n.name)) {
            let Some(failing) = accused.get(&node.name) else { continue };
            let benchmarks: Vec<String> = phase.benchmarks.iter().filter(|b| failing.contains(*b)).cloned().collect();
            if !benchmarks.is_empty() {
                let request =
                    Request::Run { collectors: Vec::new(), benchmarks, profile: phase.profile, scratch: None };
                works.push(Work { node: node.clone(), request, limit: phase.limit });
            }
        }
    }
    let work = works.iter().map(work_count).sum();
    let (index, step) = (scan.plan.phases.len(), "confirm");
    let update = Update::Phase { index, step, nodes: works.len(), work };
    watchers.iter_mut().for_each(|w| w.see(&update));
    carry(scan, works, store, watchers, (&mut BTreeSet::new(), cancel)).await
}

fn benchmark(verdict: VerdictReport) -> String {
    verdict.metric.split('/').next().unwrap_or_default().to_owned()
}

/// Nodes that fail what was measured so far leave the later phases that ask for it.
fn drop_failed(scan: &Scan, plan: &mut Plan, index: usize, store: &dyn Store) -> Result<()> {
    if !plan.phases.iter().skip(index + 1).any(|phase| phase.drop_failed) {
        return Ok(());
    }
    let records = store.records(&scan.run.id).context("reading back the results of a step")?;
    let report = report(&scan.run, &assess(&scan.run, &records, &scan.judging));
    let failed = report.nodes.into_iter().filter(|n| n.state == State::Fail).map(|n| n.node).collect();
    for node in plan.drop_failed(index, &failed) {
        log::warn!("{node}: failed so far and is left out of the later steps");
    }
    Ok(())
}

async fn carry(
    scan: &Scan,
    works: Vec<Work>,
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    (lost, cancel): (&mut BTreeSet<String>, &CancellationToken),
) -> Result<()> {
    let mut gathers: BTreeMap<String, Gather> =
        works.iter().map(|w| (w.node.name.clone(), Gather::new(&scan.run.id, &w.node.name))).collect();
    let (sender, mut events) = mpsc::channel(1024);
    let stop = cancel.child_token();
    let fleet = tokio::spawn(muster_fleet::run(works, scan.probe.clone(), scan.settings.clone(), sender, stop.clone()));
    let mut batch = Vec::new();
    while events.recv_many(&mut batch, 256).await > 0 {
        let mut records = Vec::new();
        for event in batch.drain(..) {
            tell(&event, watchers);
            if let EventKind::Ended(Err(_)) = &event.kind {
                lost.insert(event.node.clone());
            }
            let Some(gather) = gathers.get_mut(&event.node) else { continue };
            records.extend(record_of(event, gather, &scan.run.id));
        }
        if records.is_empty() {
            continue;
        }
        // One sync for all that arrived meanwhile: the disk sets the pace, not the number of nodes.
        if let Err(why) = tokio::task::block_in_place(|| store.append_many(&records)) {
            stop.cancel();
            drop(events);
            let _ = fleet.await;
            return Err(why).context("the scan was stopped because a result could not be kept");
        }
        for record in &records {
            watchers.iter_mut().for_each(|w| w.see(&Update::Recorded(record)));
        }
    }
    fleet.await.context("the fleet task ended early")
}

fn works_of(scan: &Scan, phase: &Phase, lost: &BTreeSet<String>) -> Vec<Work> {
    let mut works = Vec::new();
    for node in scan.nodes.iter().filter(|n| !lost.contains(&n.name) && phase.nodes.contains(&n.name)) {
        let left = |names: &[String], key: fn(&str) -> String| -> Vec<String> {
            names.iter().filter(|name| !scan.done.contains(&(node.name.clone(), key(name)))).cloned().collect()
        };
        let (collectors, benchmarks) =
            (left(&phase.collectors, collector_work), left(&phase.benchmarks, str::to_owned));
        if collectors.is_empty() && benchmarks.is_empty() {
            continue;
        }
        let request = Request::Run { collectors, benchmarks, profile: phase.profile, scratch: None };
        works.push(Work { node: node.clone(), request, limit: phase.limit });
    }
    works
}

fn work_count(work: &Work) -> usize {
    match &work.request {
        Request::Run { collectors, benchmarks, .. } => collectors.len() + benchmarks.len(),
        _ => 0,
    }
}

pub(super) fn tell(event: &Event, watchers: &mut [&mut dyn Observer]) {
    let node = event.node.as_str();
    let update = match &event.kind {
        EventKind::Link(state) => Update::Link { node, state },
        EventKind::Frame(Frame::Progress(progress)) => Update::Working { node, progress },
        EventKind::Frame(Frame::Log(line)) => Update::Said { node, line },
        EventKind::Frame(_) => return,
        EventKind::Ended(result) => Update::Ended { node, failure: result.as_ref().err() },
    };
    watchers.iter_mut().for_each(|w| w.see(&update));
}

fn record_of(event: Event, gather: &mut Gather, run: &str) -> Option<Record> {
    let at_ms = now_ms();
    match event.kind {
        EventKind::Frame(frame) => gather.take(frame, at_ms),
        EventKind::Ended(Err(failure)) => Some(link_record(run, &event.node, &failure)),
        EventKind::Ended(Ok(_)) | EventKind::Link(_) => None,
    }
}

/// How a node's link ended.
pub(super) fn link_record(run: &str, node: &str, failure: &Failure) -> Record {
    Record {
        run: run.to_owned(),
        node: node.to_owned(),
        work: LINK.to_owned(),
        outcome: Outcome::Failed(super::observe::failure_line(node, failure)),
        at_ms: now_ms(),
        elapsed_ns: 0,
        series: Vec::new(),
        facts: Vec::new(),
    }
}

/// Milliseconds since 1970 UTC.
#[must_use]
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

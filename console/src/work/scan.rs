//! Carries one plan through: works out to the fleet, records into the store, updates to the watchers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use muster_analysis::findings::Source;
use muster_analysis::{NodeVerdict, State};
use muster_fleet::{Clock, Event, EventKind, Failure, FailureKind, Node, Probe, Settings, Work};
use muster_playbook::report::NodeFindings;
use muster_playbook::{Phase, Plan, collector_work};
use muster_run::{LINK, Record, Run, RunState, visit_name};
use muster_store::Store;
use muster_wire::{Frame, IDLE, Outcome, Profile, Request};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::again;
use super::gather::Gather;
use super::network::{self, Fabric};
use super::observe::{Observer, Update};
use super::outage::Outages;
use crate::clock::now_ms;
use crate::judge::{Judging, Visits, assess, notes, report, steps_of};

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
    /// Most visits of a node, the first one included.
    pub visits: usize,
    /// After this instant no further visit starts, however few have been made.
    pub until: Option<Instant>,
}

impl Scan {
    /// How far measuring again may go after `visit`, for people; `None` where it ends.
    fn further(&self, visit: usize) -> Option<String> {
        match self.until {
            None => Some(format!("{visit} of {}", self.visits)),
            Some(until) => {
                let left = until.checked_duration_since(Instant::now())?;
                Some(format!("visit {visit}, {} s left", left.as_secs()))
            }
        }
    }
}

/// What the phases of a scan learn about nodes on the way.
#[derive(Debug, Default)]
struct Seen {
    /// Nodes whose link failed: not tried again before the end of the run.
    lost: BTreeSet<String>,
    /// Of those the ones that were reached before and may come back.
    missed: BTreeSet<String>,
    /// Nodes that were lost while they measured one another, and may come back.
    apart: BTreeSet<String>,
    /// Nodes that were reached.
    reached: BTreeSet<String>,
    /// Nodes of which it was recorded how their link ended, and which have not come back.
    told: BTreeSet<String>,
    outages: Outages,
    /// Uncertainty of the best offset of each node's clock, nanoseconds.
    clocks: BTreeMap<String, u64>,
    /// What each node was told to do.
    gathers: BTreeMap<String, Gather>,
}

impl Seen {
    /// Whether a failed node is certain to have failed: by a check, by a benchmark that broke, or by slowness that was
    /// seen twice. The profile `full` measures for so long that once is enough.
    fn convicted(findings: &NodeFindings, profile: Profile, visits: &Visits) -> bool {
        let measured = |source: &Source| matches!(source, Source::Metric(_) | Source::Metrics(_));
        let broken = findings.all().iter().any(|found| found.state == State::Fail && !measured(&found.source));
        let twice = |verdict: &NodeVerdict| {
            let name = verdict.metric.benchmark.clone();
            verdict.state == State::Fail && visits.of(&findings.node, &name) > 1
        };
        broken || profile == Profile::Full || findings.verdicts.iter().any(twice)
    }

    /// A record of `clock`, unless the node's clock is known better already.
    fn clock(&mut self, run: &str, node: &str, clock: &Clock) -> Option<Record> {
        let best = self.clocks.entry(node.to_owned()).or_insert(u64::MAX);
        if clock.uncertainty_ns >= *best {
            return None;
        }
        *best = clock.uncertainty_ns;
        Some(notes::offset(run, node, clock, now_ms()))
    }
}

impl Seen {
    /// What an event of a node's visit number `visit` comes to; a sentence where it is more than one node's matter.
    fn take(&mut self, event: Event, scan: &Scan, visit: usize, records: &mut Vec<Record>) -> Option<String> {
        let (node, at_ms, run) = (event.node, now_ms(), scan.run.id.as_str());
        let gather = self.gathers.get_mut(&node)?;
        let mut said = None;
        match event.kind {
            EventKind::Frame(frame) => {
                let record = gather.take(frame, at_ms);
                records.extend(record.map(|record| Record { work: visit_name(&record.work, visit), ..record }));
            }
            EventKind::Ended(result) => {
                let failure = result.err();
                let missing = gather.ended(failure.as_ref(), at_ms).into_iter();
                records.extend(missing.map(|record| Record { work: visit_name(&record.work, visit), ..record }));
                match failure {
                    Some(failure) => records.extend(self.link_lost(run, &node, &failure)),
                    None => {
                        self.reached.insert(node.clone());
                        self.told.remove(&node);
                    }
                }
            }
            EventKind::Interrupted(failure, ago) => {
                gather.interrupted();
                self.reached.insert(node.clone());
                self.told.remove(&node);
                let now = Instant::now();
                if failure.kind != FailureKind::Frozen {
                    self.outages.lost(&node, now.checked_sub(ago).unwrap_or(now));
                    said = self.outages.sentence(&node, &scan.nodes);
                }
            }
            EventKind::Clock(clock) => records.extend(self.clock(run, &node, &clock)),
            EventKind::Link(_) => {}
        }
        records.extend(self.gathers.get_mut(&node).and_then(|gather| gather.out_of_turn(at_ms)));
        said
    }

    /// Records how the node's link was lost, and with how many others. Nothing if that is recorded already: the first reason says
    /// what the node was doing.
    fn link_lost(&mut self, run: &str, node: &str, failure: &Failure) -> Option<Record> {
        self.lost.insert(node.to_owned());
        let cut = failure.kind == FailureKind::Cut;
        if self.reached.contains(node) && failure.passing() || cut {
            self.missed.insert(node.to_owned());
        }
        if !self.told.insert(node.to_owned()) && failure.passing() {
            return None;
        }
        let mut record = link_record(run, node, failure);
        let others = self.outages.together(node).len().saturating_sub(1);
        if let Outcome::Failed(why) = &mut record.outcome
            && others > 0
        {
            let others = if others == 1 { "another node".to_owned() } else { format!("{others} other nodes") };
            why.push_str(&format!("; lost together with {others}: probably the network or a switch"));
        }
        Some(record)
    }
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
    let mut seen = Seen::default();
    let mut plan = scan.plan.clone();
    let asked = notes::asked(&scan.run.id, &plan, &scan.nodes, now_ms());
    store.append_many(&asked).context("scan stopped: could not record what was asked")?;
    for record in &asked {
        watchers.iter_mut().for_each(|w| w.see(&Update::Recorded(record)));
    }
    for index in 0..plan.phases.len() {
        let phase = &plan.phases[index];
        if cancel.is_cancelled() {
            return Ok(RunState::Cancelled);
        }
        if let Some(method) = phase.pairs {
            let phase = phase.clone();
            let missed =
                network::phase(scan, (&phase, method), store, watchers, (index, &mut seen.lost, cancel)).await?;
            seen.apart.extend(missed);
            continue;
        }
        if !phase.collectives.is_empty() {
            let phase = phase.clone();
            let missed = network::together(scan, &phase, store, watchers, (index, &mut seen.lost, cancel)).await?;
            seen.apart.extend(missed);
            continue;
        }
        let works = works_of(scan, phase, (&scan.done, &seen), |node| !seen.lost.contains(node));
        let update =
            Update::Phase { index, step: &phase.step, nodes: works.len(), work: works.iter().map(work_count).sum() };
        watchers.iter_mut().for_each(|w| w.see(&update));
        if !works.is_empty() {
            carry(scan, (works, 1), store, watchers, (&mut seen, cancel)).await?;
        }
        part(scan, (&mut plan, index), store, watchers, (&mut seen, cancel)).await?;
    }
    if !cancel.is_cancelled() {
        ask_again(scan, &plan.phases, store, watchers, (&mut seen, cancel)).await?;
        confirm(scan, &plan.phases, store, watchers, (&mut seen, cancel)).await?;
    }
    Ok(match (cancel.is_cancelled(), seen.missed.is_empty() && seen.apart.is_empty()) {
        (true, _) => RunState::Cancelled,
        (false, true) => RunState::Finished,
        (false, false) => RunState::Incomplete,
    })
}

/// Asks nodes that were lost on the way once more for what they still owe; all steps of a node in one go.
async fn ask_again(
    scan: &Scan,
    phases: &[Phase],
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    (seen, cancel): (&mut Seen, &CancellationToken),
) -> Result<()> {
    if seen.missed.is_empty() {
        return Ok(());
    }
    let missed = std::mem::take(&mut seen.missed);
    let done: BTreeSet<(String, String)> =
        store.done(&scan.run.id).context("reading back the results")?.into_iter().collect();
    let plain = phases.iter().filter(|phase| phase.pairs.is_none() && phase.collectives.is_empty());
    let works: Vec<Work> = plain
        .flat_map(|phase| works_of(scan, phase, (&done, seen), |node| missed.contains(node)))
        .map(|work| Work { last: true, ..work })
        .collect();
    if works.is_empty() {
        return Ok(());
    }
    seen.lost.retain(|node| !missed.contains(node));
    let (index, work) = (scan.plan.phases.len(), works.iter().map(work_count).sum());
    let update = Update::Phase { index, step: "ask lost nodes again", nodes: missed.len(), work };
    watchers.iter_mut().for_each(|w| w.see(&update));
    carry(scan, (works, 1), store, watchers, (seen, cancel)).await
}

/// What a phase ends with: nodes that failed so far leave the later ones, if the phase says so. A slow result is measured
/// again first; a failed check or a benchmark that broke is not.
async fn part(
    scan: &Scan,
    (plan, index): (&mut Plan, usize),
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    (seen, cancel): (&mut Seen, &CancellationToken),
) -> Result<()> {
    let phase = &plan.phases[index];
    if !phase.drop_failed || index + 1 == plan.phases.len() || cancel.is_cancelled() {
        return Ok(());
    }
    confirm(scan, &plan.phases[..=index], store, watchers, (seen, cancel)).await?;
    let records = store.records(&scan.run.id).context("reading back the results of a step")?;
    let assessment = assess(&scan.run, &records, &scan.judging);
    let report = report(&scan.run, &assessment);
    let visits = Visits::new(&records);
    let mut failed = BTreeMap::new();
    for (node, findings) in report.nodes.into_iter().zip(&assessment.nodes) {
        if node.state == State::Fail && Seen::convicted(findings, scan.plan.profile, &visits) {
            failed.insert(node.node, node.reasons.into_iter().next().unwrap_or_default());
        }
    }
    let step = plan.phases[index].step.clone();
    for node in plan.drop_failed(index, &failed.keys().cloned().collect()) {
        let reason = &failed[&node];
        store
            .append(&notes::dropped(&scan.run.id, &node, &step, reason, now_ms()))
            .context("scan stopped: could not record which node was dropped")?;
        let update = Update::Dropped { node: &node, step: &step, reason };
        watchers.iter_mut().for_each(|w| w.see(&update));
    }
    Ok(())
}

/// Measures again what is in doubt, beside peers that are not, until it is decided or every visit is used up.
async fn confirm(
    scan: &Scan,
    phases: &[Phase],
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    (seen, cancel): (&mut Seen, &CancellationToken),
) -> Result<()> {
    for _ in 1..scan.visits {
        let records = store.records(&scan.run.id).context("reading back the results")?;
        let found = assess(&scan.run, &records, &scan.judging);
        let visits = Visits::new(&records);
        let Some(round) = again::choose(scan, phases, &found, (&visits, &seen.lost)) else { break };
        let works = round.works(scan, phases);
        if works.is_empty() || cancel.is_cancelled() {
            break;
        }
        let visit = visits.most() + 1;
        let Some(further) = scan.further(visit) else { break };
        let (index, step) = (scan.plan.phases.len() + visit - 2, format!("measure again ({further})"));
        let work = works.iter().map(work_count).sum();
        let update = Update::Phase { index, step: &step, nodes: works.len(), work };
        watchers.iter_mut().for_each(|w| w.see(&update));
        carry(scan, (works, visit), store, watchers, (seen, cancel)).await?;
    }
    Ok(())
}

/// Does `works`, which are the nodes' visit number `visit`, and keeps what comes of them.
async fn carry(
    scan: &Scan,
    (works, visit): (Vec<Work>, usize),
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    (seen, cancel): (&mut Seen, &CancellationToken),
) -> Result<()> {
    for work in &works {
        let gather = seen.gathers.entry(work.node.name.clone());
        gather.or_insert_with(|| Gather::new(&scan.run.id, &work.node.name)).expect(&work.request);
    }
    let (sender, mut events) = mpsc::channel(1024);
    let stop = cancel.child_token();
    let fleet = tokio::spawn(muster_fleet::run(works, scan.probe.clone(), scan.settings.clone(), sender, stop.clone()));
    let mut batch = Vec::new();
    while events.recv_many(&mut batch, 256).await > 0 {
        let mut records = Vec::new();
        for event in batch.drain(..) {
            tell(&event, watchers);
            if let Some(said) = seen.take(event, scan, visit, &mut records) {
                watchers.iter_mut().for_each(|w| w.see(&Update::Outage(&said)));
            }
        }
        if let Err(why) = keep(records, store, watchers) {
            stop.cancel();
            drop(events);
            let _ = fleet.await;
            return Err(why);
        }
    }
    fleet.await.context("the fleet task ended early")
}

/// Keeps records and tells who watches. One sync for all that arrived meanwhile: the disk sets the pace, not the number of nodes.
fn keep(records: Vec<Record>, store: &mut dyn Store, watchers: &mut [&mut dyn Observer]) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    tokio::task::block_in_place(|| store.append_many(&records)).context("scan stopped: could not record a result")?;
    for record in &records {
        watchers.iter_mut().for_each(|w| w.see(&Update::Recorded(record)));
    }
    Ok(())
}

/// What the nodes that are `asked` still owe of a phase when `done` is there.
fn works_of(
    scan: &Scan,
    phase: &Phase,
    (done, seen): (&BTreeSet<(String, String)>, &Seen),
    asked: impl Fn(&str) -> bool,
) -> Vec<Work> {
    let mut works = Vec::new();
    for node in scan.nodes.iter().filter(|n| asked(&n.name) && phase.nodes.contains(&n.name)) {
        let left = |names: &[String], key: fn(&str) -> String| -> Vec<String> {
            names.iter().filter(|name| !done.contains(&(node.name.clone(), key(name)))).cloned().collect()
        };
        let (mut collectors, benchmarks) =
            (left(&phase.collectors, collector_work), left(&phase.benchmarks, str::to_owned));
        if collectors.is_empty() && benchmarks.is_empty() {
            continue;
        }
        if let Some(idle) = phase.idle.filter(|_| !benchmarks.is_empty()) {
            collectors.push(format!("{IDLE}{}", idle.as_secs()));
        }
        let request = request(scan, phase, collectors, benchmarks);
        let known = seen.reached.contains(&node.name);
        works.push(Work { known, ..Work::new(node.clone(), request, phase.limit) });
    }
    works
}

pub(super) fn request(scan: &Scan, phase: &Phase, collectors: Vec<String>, benchmarks: Vec<String>) -> Request {
    let steps = steps_of(&scan.judging.terms.steps, phase.profile, &benchmarks);
    Request::Run { collectors, benchmarks, profile: phase.profile, scratch: None, steps }
}

fn work_count(work: &Work) -> usize {
    match &work.request {
        // An idle gate gives no result.
        Request::Run { collectors, benchmarks, .. } => {
            collectors.iter().filter(|name| !name.starts_with(IDLE)).count() + benchmarks.len()
        }
        _ => 0,
    }
}

pub(super) fn tell(event: &Event, watchers: &mut [&mut dyn Observer]) {
    let node = event.node.as_str();
    let update = match &event.kind {
        EventKind::Link(state) => Update::Link { node, state },
        EventKind::Frame(Frame::Progress(progress)) => Update::Working { node, progress },
        EventKind::Frame(Frame::Log(line)) => Update::Said { node, line },
        EventKind::Interrupted(failure, _) => Update::Interrupted { node, failure },
        EventKind::Frame(_) | EventKind::Clock(_) => return,
        EventKind::Ended(result) => Update::Ended { node, failure: result.as_ref().err() },
    };
    watchers.iter_mut().for_each(|w| w.see(&update));
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

/// What is kept of a node whose link failed beside the pairs: how it ended, and whether it spoke out of turn.
pub(super) fn lost_records(run: &str, node: &str, failure: &Failure) -> Vec<Record> {
    let link = link_record(run, node, failure);
    if !failure.out_of_turn() {
        return vec![link];
    }
    vec![link, notes::out_of_turn(run, node, failure.what(node).to_owned(), now_ms())]
}

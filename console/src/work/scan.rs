//! Carries one plan through: works out to the fleet, records into the store, updates to the watchers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use muster_analysis::findings::Source;
use muster_analysis::{NodeVerdict, State};
use muster_fleet::{Clock, Event, EventKind, Failure, FailureKind, Node, Probe, Settings, Work};
use muster_playbook::report::NodeFindings;
use muster_playbook::{Phase, Plan, collector_work};
use muster_run::{LINK, Record, Run, RunState, visit_name};
use muster_store::Store;
use muster_wire::{Frame, IDLE, Outcome, Profile, Request};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::again;
use super::gather::{Gather, bytes};
use super::network::{self, Fabric};
use super::observe::{Observer, Update};
use super::outage::Outages;
use super::spill::Spill;
use super::under_way::{Noted, Patience, UnderWay};
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
    /// Where values wait until their work is finished: the database's, since they will go there.
    pub folder: PathBuf,
    /// Acknowledged earlier, not measured again.
    pub done: BTreeSet<(String, String)>,
    /// Most visits of a node, the first one included.
    pub visits: usize,
    /// After this instant no further visit starts, however few have been made.
    pub until: Option<std::time::Instant>,
}

impl Scan {
    /// How far measuring again may go after `visit`, for people; `None` where it ends.
    fn further(&self, visit: usize) -> Option<String> {
        match self.until {
            None => Some(format!("{visit} of {}", self.visits)),
            Some(until) => {
                let left = until.checked_duration_since(std::time::Instant::now())?;
                Some(format!("visit {visit}, {} s left", left.as_secs()))
            }
        }
    }
}

/// Bytes of records after which they are kept without waiting for more.
const ENOUGH: usize = 1 << 20;

/// What the phases of a scan learn about nodes on the way.
#[derive(Debug)]
struct Seen {
    way: UnderWay,
    spill: Spill,
    /// Nodes that others did not wait for, and the phase that they were at.
    late: BTreeMap<String, usize>,
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
    fn new(scan: &Scan, cancel: &CancellationToken) -> Self {
        Self {
            way: UnderWay::new(cancel),
            spill: Spill::new(&scan.folder),
            late: BTreeMap::new(),
            lost: BTreeSet::new(),
            missed: BTreeSet::new(),
            apart: BTreeSet::new(),
            reached: BTreeSet::new(),
            told: BTreeSet::new(),
            outages: Outages::default(),
            clocks: BTreeMap::new(),
            gathers: BTreeMap::new(),
        }
    }

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
    /// What an event comes to; a sentence where it is more than one node's matter.
    fn take(&mut self, event: Event, noted: &Noted, scan: &Scan, records: &mut Vec<Record>) -> Option<String> {
        let (node, at_ms, run) = (event.node, now_ms(), scan.run.id.as_str());
        let (gather, visit) = (self.gathers.get_mut(&node)?, noted.visit);
        let mut said = None;
        match event.kind {
            EventKind::Frame(frame) => {
                let record = gather.take(frame, at_ms);
                records.extend(record.map(|record| Record { work: visit_name(&record.work, visit), ..record }));
            }
            EventKind::Ended(_) if noted.skipped => gather.skipped(),
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
                let now = std::time::Instant::now();
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
    let mut seen = Seen::new(scan, cancel);
    let asked = notes::asked(&scan.run.id, &scan.plan, &scan.nodes, now_ms());
    store.append_many(&asked).context("scan stopped: could not record what was asked")?;
    for record in &asked {
        watchers.iter_mut().for_each(|w| w.see(&Update::Recorded(record)));
    }
    let mut done = phases(scan, store, watchers, (&mut seen, cancel)).await;
    if done.is_ok() {
        // Where the run was cancelled while some were late.
        let left = seen.way.names();
        done = settle(scan, left, store, watchers, (&mut seen, None)).await.map(drop);
    }
    seen.way.end().await;
    done?;
    Ok(match (cancel.is_cancelled(), seen.missed.is_empty() && seen.apart.is_empty()) {
        (true, _) => RunState::Cancelled,
        (false, true) => RunState::Finished,
        (false, false) => RunState::Incomplete,
    })
}

/// Every phase in turn, and what is owed when they are over. Each node goes through the phases of a stretch at its own pace.
async fn phases(
    scan: &Scan,
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    (seen, cancel): (&mut Seen, &CancellationToken),
) -> Result<()> {
    let mut plan = scan.plan.clone();
    let mut index = 0;
    while index < plan.phases.len() {
        let stretch = plan.stretch(index);
        let (phase, last) = (plan.phases[index].clone(), stretch.end - 1);
        if phase.is_alone() {
            let meet = plan.phases.get(stretch.end).is_some_and(|next| !next.is_alone());
            pace(scan, (&plan, stretch.clone(), !meet), store, watchers, seen).await?;
            part(scan, (&mut plan, last), store, watchers, (seen, cancel)).await?;
        } else {
            // Nodes that are busy would disturb it, and could not take part.
            catch_up(scan, (&mut plan, index), store, watchers, seen).await?;
            if cancel.is_cancelled() {
                break;
            }
            let how = (index, &mut seen.lost, cancel);
            let missed = match phase.pairs {
                Some(method) => network::phase(scan, (&phase, method), store, watchers, how).await?,
                None => network::together(scan, &phase, store, watchers, how).await?,
            };
            seen.apart.extend(missed);
        }
        if cancel.is_cancelled() {
            return Ok(());
        }
        index = stretch.end;
    }
    let all = plan.phases.len();
    catch_up(scan, (&mut plan, all), store, watchers, seen).await?;
    if !cancel.is_cancelled() {
        ask_again(scan, &plan.phases, store, watchers, seen).await?;
        confirm(scan, &plan.phases, store, watchers, (seen, cancel)).await?;
    }
    Ok(())
}

/// A stretch of phases on all its nodes. Where others follow that a node does by itself (`alone`), those that are much later than the
/// others are not waited for: they go on, and do what comes after it when the others are done.
async fn pace(
    scan: &Scan,
    (plan, stretch, alone): (&Plan, Range<usize>, bool),
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    seen: &mut Seen,
) -> Result<()> {
    let index = stretch.start;
    let of = |phase| works_of(scan, phase, (&scan.done, seen), |node| !seen.lost.contains(node));
    let works: Vec<Vec<Work>> = plan.phases[stretch.clone()].iter().map(of).collect();
    let counts: Vec<usize> = works.iter().map(|works| works.iter().map(work_count).sum()).collect();
    let (works, step) = (works.concat(), plan.phases[index].step.as_str());
    let names: BTreeSet<String> = works.iter().map(|work| work.node.name.clone()).collect();
    let update = Update::Phase { index, step, nodes: names.len(), work: counts[0], further: &counts[1..] };
    watchers.iter_mut().for_each(|w| w.see(&update));
    // Nodes that share a machine are not to measure beside a late one.
    let apart = names.len() <= scan.settings.at_once;
    let patience =
        (alone && apart && stretch.end < plan.phases.len()).then(|| Patience::new(names.len(), Instant::now()));
    start(scan, works, 1, seen);
    let late = settle(scan, names, store, watchers, (seen, patience)).await?;
    seen.lost.extend(late.iter().cloned());
    seen.late.extend(late.into_iter().map(|node| (node, stretch.end - 1)));
    Ok(())
}

/// Waits for nodes that others did not wait for, takes out those that failed, and lets the others do what they owe of the first
/// `phases` of the plan.
async fn catch_up(
    scan: &Scan,
    (plan, phases): (&mut Plan, usize),
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    seen: &mut Seen,
) -> Result<()> {
    if seen.late.is_empty() {
        return Ok(());
    }
    let left = seen.late.keys().cloned().collect::<BTreeSet<_>>().intersection(&seen.way.names()).cloned().collect();
    settle(scan, left, store, watchers, (seen, None)).await?;
    let late = std::mem::take(&mut seen.late);
    let failed = convicted(scan, store)?;
    for (node, index) in &late {
        let own = failed.get(node).map(|reason| (node.clone(), reason.clone())).into_iter().collect();
        leave(scan, (plan, *index), &own, store, watchers)?;
    }
    let done = store.done(&scan.run.id).context("reading back the results")?;
    let owes = |node: &str| late.contains_key(node) && !seen.lost.contains(node);
    let plain = plan.phases[..phases].iter().filter(|phase| phase.is_alone());
    let works: Vec<Work> = plain.flat_map(|phase| works_of(scan, phase, (&done, seen), owes)).collect();
    again(scan, ("later steps on late nodes", works), store, watchers, seen).await
}

/// Further works beside the plan, called `step`.
async fn again(
    scan: &Scan,
    (step, works): (&str, Vec<Work>),
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    seen: &mut Seen,
) -> Result<()> {
    if works.is_empty() {
        return Ok(());
    }
    let names: BTreeSet<String> = works.iter().map(|work| work.node.name.clone()).collect();
    let (index, work) = (scan.plan.phases.len(), works.iter().map(work_count).sum());
    let update = Update::Phase { index, step, nodes: names.len(), work, further: &[] };
    watchers.iter_mut().for_each(|w| w.see(&update));
    start(scan, works, 1, seen);
    settle(scan, names, store, watchers, (seen, None)).await.map(drop)
}

/// Asks nodes that were lost on the way once more for what they still owe; all steps of a node in one go.
async fn ask_again(
    scan: &Scan,
    phases: &[Phase],
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    seen: &mut Seen,
) -> Result<()> {
    if seen.missed.is_empty() {
        return Ok(());
    }
    let missed = std::mem::take(&mut seen.missed);
    let done = store.done(&scan.run.id).context("reading back the results")?;
    let plain = phases.iter().filter(|phase| phase.is_alone());
    let works: Vec<Work> = plain
        .flat_map(|phase| works_of(scan, phase, (&done, seen), |node| missed.contains(node)))
        .map(|work| Work { last: true, ..work })
        .collect();
    if works.is_empty() {
        return Ok(());
    }
    seen.lost.retain(|node| !missed.contains(node));
    again(scan, ("ask lost nodes again", works), store, watchers, seen).await
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
    let failed = convicted(scan, store)?;
    leave(scan, (plan, index), &failed, store, watchers)
}

/// Nodes that are certain to have failed so far, each with the first reason.
fn convicted(scan: &Scan, store: &dyn Store) -> Result<BTreeMap<String, String>> {
    let records = store.records(&scan.run.id).context("reading back the results of a step")?;
    let assessment = assess(&scan.run, &records, &scan.judging);
    let report = report(&scan.run, &assessment);
    let visits = Visits::new(&records);
    let certain =
        report.nodes.into_iter().zip(&assessment.nodes).filter(|(node, findings)| {
            node.state == State::Fail && Seen::convicted(findings, scan.plan.profile, &visits)
        });
    Ok(certain.map(|(node, _)| (node.node, node.reasons.into_iter().next().unwrap_or_default())).collect())
}

/// Takes `failed` out of the phases after `index`, and says so.
fn leave(
    scan: &Scan,
    (plan, index): (&mut Plan, usize),
    failed: &BTreeMap<String, String>,
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
) -> Result<()> {
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
        let names: BTreeSet<String> = works.iter().map(|work| work.node.name.clone()).collect();
        let update = Update::Phase { index, step: &step, nodes: names.len(), work, further: &[] };
        watchers.iter_mut().for_each(|w| w.see(&update));
        start(scan, works, visit, seen);
        settle(scan, names, store, watchers, (seen, None)).await?;
    }
    Ok(())
}

/// Begins `works`, which are the nodes' visit number `visit`.
fn start(scan: &Scan, works: Vec<Work>, visit: usize, seen: &mut Seen) {
    for work in &works {
        let gather = seen.gathers.entry(work.node.name.clone());
        let new = || Gather::new(&scan.run.id, &work.node.name, seen.spill.clone());
        gather.or_insert_with(new).expect(&work.request);
    }
    if !works.is_empty() {
        seen.way.start(scan, works, visit);
    }
}

/// Keeps what comes until the nodes called `left` have nothing more to do, or are not worth more `patience`. Returns those that are
/// still at work.
async fn settle(
    scan: &Scan,
    mut left: BTreeSet<String>,
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    (seen, mut patience): (&mut Seen, Option<Patience>),
) -> Result<BTreeSet<String>> {
    let (all, mut batch) = (left.len(), Vec::new());
    while !left.is_empty() {
        let now = Instant::now();
        let until = patience.as_mut().and_then(|patience| patience.until(all - left.len(), now));
        seen.way.hear(&mut batch, until).await?;
        if batch.is_empty() {
            left = left.intersection(&seen.way.names()).cloned().collect();
            let Some(patience) = patience.as_mut().filter(|_| !left.is_empty()) else { break };
            if !seen.way.is_any_away(&left) {
                let said = late(&left, all, patience.seconds(Instant::now()));
                watchers.iter_mut().for_each(|w| w.see(&Update::Late { said: &said, nodes: &left }));
                return Ok(left);
            }
            patience.prolong(Instant::now());
        }
        let (mut records, mut weight) = (Vec::new(), 0);
        for event in batch.drain(..) {
            let Some(noted) = seen.way.note(&event) else { continue };
            let node = event.node.clone();
            if !matches!(event.kind, EventKind::Ended(_)) {
                tell(&event, watchers);
            }
            let before = records.len();
            if let Some(said) = seen.take(event, &noted, scan, &mut records) {
                watchers.iter_mut().for_each(|w| w.see(&Update::Outage(&said)));
            }
            weight += records[before..].iter().map(bytes).sum::<usize>();
            if weight > ENOUGH {
                keep(std::mem::take(&mut records), store, watchers)?;
                weight = 0;
            }
            if let Some(failure) = noted.over {
                left.remove(&node);
                if failure.is_none() && seen.late.contains_key(&node) {
                    seen.lost.remove(&node);
                }
                let update = Update::Ended { node: &node, failure: failure.as_ref() };
                watchers.iter_mut().for_each(|w| w.see(&update));
            }
        }
        keep(records, store, watchers)?;
    }
    Ok(BTreeSet::new())
}

/// Who is not waited for, among how many, after how long.
fn late(left: &BTreeSet<String>, all: usize, seconds: u64) -> String {
    let (names, through) = (muster_fleet::hostlist::fold(left.iter().map(String::as_str)), all - left.len());
    let are = if left.len() == 1 { "is" } else { "are" };
    format!(
        "{names} {are} not through this step after {seconds} s, {through} of {all} nodes are: these go on, and the others do the \
         later steps when they are ready"
    )
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

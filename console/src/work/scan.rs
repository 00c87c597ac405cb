//! Carries one plan through: works out to the fleet, records into the store, updates to the watchers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anyhow::{Context, Result};
use muster_analysis::findings::Source;
use muster_analysis::{NodeVerdict, State};
use muster_fleet::{EventKind, Work};
use muster_playbook::report::NodeFindings;
use muster_playbook::{Phase, Plan};
use muster_run::{Record, RunState};
use muster_store::Store;
use muster_wire::Profile;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::gather::bytes;
use super::held::Held;
use super::observe::{Observer, Update, tell};
use super::order::{Scan, owed, work_count};
use super::seen::Seen;
use super::under_way::Patience;
use super::{again, network};
use crate::clock::now_ms;
use crate::judge::{Assessment, Visits, assess, notes, report};

/// Bytes of records after which they are kept without waiting for more.
const ENOUGH: usize = 1 << 20;

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
    scan_judged(scan, store, watchers, cancel).await.map(|(state, _)| state)
}

/// The same, and what was made of all its records where that is known already.
///
/// # Errors
/// As [`scan`].
pub async fn scan_judged(
    scan: &Scan,
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    cancel: &CancellationToken,
) -> Result<(RunState, Option<Assessment>)> {
    let mut seen = Seen::new(scan, cancel);
    if !scan.done.is_empty() {
        let records = store.records(&scan.run.id).context("reading back the earlier results of this run")?;
        seen.stored(scan, &records);
    }
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
        (true, _) => (RunState::Cancelled, None),
        (false, true) => (RunState::Finished, seen.found.take()),
        (false, false) => (RunState::Incomplete, seen.found.take()),
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
    let of = |phase| owed(scan, phase, (&scan.done, &seen.reached), |node| !seen.lost.contains(node));
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
    seen.start(scan, works, 1);
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
    let works: Vec<Work> = plain.flat_map(|phase| owed(scan, phase, (&done, &seen.reached), owes)).collect();
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
    seen.start(scan, works, 1);
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
        .flat_map(|phase| owed(scan, phase, (&done, &seen.reached), |node| missed.contains(node)))
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
    let certain = report
        .nodes
        .into_iter()
        .zip(&assessment.nodes)
        .filter(|(node, findings)| node.state == State::Fail && is_certain(findings, scan.plan.profile, &visits));
    Ok(certain.map(|(node, _)| (node.node, node.reasons.into_iter().next().unwrap_or_default())).collect())
}

/// Whether a failed node is certain to have failed: by a check, by a benchmark that broke, or by slowness that was
/// seen twice. The profile `full` measures for so long that once is enough.
fn is_certain(findings: &NodeFindings, profile: Profile, visits: &Visits) -> bool {
    let measured = |source: &Source| matches!(source, Source::Metric(_) | Source::Metrics(_));
    let broken = findings.all().iter().any(|found| found.state == State::Fail && !measured(&found.source));
    let twice = |verdict: &NodeVerdict| {
        let name = verdict.metric.benchmark.clone();
        verdict.state == State::Fail && visits.of(&findings.node, &name) > 1
    };
    broken || profile == Profile::Full || findings.verdicts.iter().any(twice)
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
    if scan.visits < 2 {
        return Ok(());
    }
    let mut held = Held::of(store, &scan.run.id)?;
    for _ in 1..scan.visits {
        let records = held.renewed(store, &scan.run.id)?;
        let found = assess(&scan.run, records, &scan.judging);
        let visits = Visits::new(records);
        let Some(round) = again::choose(scan, phases, &found, (&visits, &seen.lost)) else {
            seen.found = Some(found);
            break;
        };
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
        seen.start(scan, works, visit);
        let mut all: Vec<&mut dyn Observer> = watchers.iter_mut().map(|watcher| &mut **watcher as _).collect();
        all.push(&mut held);
        settle(scan, names, store, &mut all, (seen, None)).await?;
    }
    Ok(())
}

/// Keeps what comes until the nodes called `left` have nothing more to do, or are not worth more `patience`. Returns those that are
/// still at work.
async fn settle(
    scan: &Scan,
    left: BTreeSet<String>,
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    (seen, patience): (&mut Seen, Option<Patience>),
) -> Result<BTreeSet<String>> {
    let late = hear(scan, left, store, watchers, (&mut *seen, patience)).await?;
    let mut batch = Batch::default();
    while let Some(record) = seen.waited(true) {
        batch.add(record, store, watchers)?;
    }
    batch.end(store, watchers)?;
    Ok(late)
}

/// Keeps what comes, but for works that wait until more of their peers have finished the same.
async fn hear(
    scan: &Scan,
    mut left: BTreeSet<String>,
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    (seen, mut patience): (&mut Seen, Option<Patience>),
) -> Result<BTreeSet<String>> {
    let (all, mut events) = (left.len(), Vec::new());
    while !left.is_empty() {
        let now = Instant::now();
        let until = patience.as_mut().and_then(|patience| patience.until(all - left.len(), now));
        seen.way.hear(&mut events, until).await?;
        if events.is_empty() {
            left = left.intersection(&seen.way.names()).cloned().collect();
            let Some(patience) = patience.as_mut().filter(|_| !left.is_empty()) else { break };
            if !seen.way.is_any_away(&left) {
                let said = late(&left, all, patience.seconds(Instant::now()));
                watchers.iter_mut().for_each(|w| w.see(&Update::Late { said: &said, nodes: &left }));
                return Ok(left);
            }
            patience.prolong(Instant::now());
        }
        let mut batch = Batch::default();
        for event in events.drain(..) {
            let Some(noted) = seen.way.note(&event) else { continue };
            let node = event.node.clone();
            if !matches!(event.kind, EventKind::Ended(_)) {
                tell(&event, watchers);
            }
            let mut new = Vec::new();
            if let Some(said) = seen.take(event, &noted, scan, &mut new) {
                watchers.iter_mut().for_each(|w| w.see(&Update::Outage(&said)));
            }
            // One after the other: what waited may be large.
            for record in new.into_iter().chain(std::iter::from_fn(|| seen.waited(false))) {
                batch.add(record, store, watchers)?;
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
        batch.end(store, watchers)?;
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

/// Records on their way into the store.
#[derive(Default)]
struct Batch {
    records: Vec<Record>,
    /// Of their values and facts.
    bytes: usize,
}

impl Batch {
    /// Adds `record`; stores all that is there once it is more than a megabyte.
    fn add(&mut self, record: Record, store: &mut dyn Store, watchers: &mut [&mut dyn Observer]) -> Result<()> {
        self.bytes += bytes(&record);
        self.records.push(record);
        if self.bytes > ENOUGH { std::mem::take(self).end(store, watchers) } else { Ok(()) }
    }

    /// Keeps what is left and tells who watches. One sync for all that arrived meanwhile: the disk sets the pace, not the number of
    /// nodes.
    fn end(self, store: &mut dyn Store, watchers: &mut [&mut dyn Observer]) -> Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        let kept = tokio::task::block_in_place(|| store.append_many(&self.records));
        kept.context("scan stopped: could not record a result")?;
        for record in &self.records {
            watchers.iter_mut().for_each(|w| w.see(&Update::Recorded(record)));
        }
        Ok(())
    }
}

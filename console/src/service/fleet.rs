//! What is known of every machine: what people said, which incidents are open, what its runs say, what it is built of.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Instant;

use anyhow::Result;
use muster_analysis::groups::Hardware;
use muster_analysis::records::hardware::hardware_of;
use muster_analysis::service::{Known, Machine, Marked, Service};
use muster_analysis::{Params, State};
use muster_playbook::PAIRS;
use muster_playbook::report::{self, NodeFindings, Told};
use muster_run::{Run, RunState, is_work, visit_of};
use muster_store::{Incident, Store};
use muster_wire::{Outcome, benchmark};

use super::counterpart::Counterpart;
use super::marks::{Mark, marks};
use crate::clock::now_ms;
use crate::judge::{Asked, ByNode, Judging};

/// How far a clock may be ahead of ours, milliseconds: what begins later than that is nonsense.
pub const AHEAD_MS: u64 = 86_400_000;

/// Runs that are looked into for what a machine is built of, newest first.
const RUNS: usize = 8;
/// Runs that are looked into for what is known of a machine, newest first: as many as the screen looks into.
const KNOWN: usize = 64;

/// A machine and what is known of it.
#[derive(Clone, Debug)]
pub struct Standing {
    /// What it is and where.
    pub machine: Machine,
    /// What is known.
    pub known: Known,
    /// In whose hands it is.
    pub service: Service,
    /// Since when, milliseconds since 1970 UTC, where that is known.
    pub since_ms: Option<u64>,
    /// Who put it there; empty where nobody did.
    pub who: String,
    /// Why, in words; empty where nothing is to be said.
    pub why: String,
    /// The newest run that says something of it.
    pub run: Option<String>,
    /// Who took its place, or whose place it took, as long as one of the two is in repair.
    pub counterpart: Option<Counterpart>,
}

/// What one run says of a machine.
struct Said {
    run: String,
    at_ms: u64,
    findings: NodeFindings,
    /// What gave an answer of whatever kind.
    works: BTreeSet<String>,
}

impl Said {
    fn told(&self) -> Told<'_> {
        Told { at_ms: self.at_ms, findings: &self.findings, works: &self.works }
    }

    /// What it decided on of work that always measures the same; what an import holds is told apart by its metrics alone.
    fn settled(&self) -> Vec<Asked> {
        let known = |work: &&str| benchmark(work).is_some() || work.starts_with("collect/") || *work == PAIRS;
        let all = report::settled(&self.told()).into_iter().filter(known);
        all.map(|work| (self.findings.node.clone(), work.to_owned())).collect()
    }
}

/// What is known of a machine.
#[derive(Clone)]
struct Newest {
    /// The newest run that says something of it.
    run: String,
    at_ms: u64,
    state: State,
    undecided: bool,
    why: String,
}

/// What is known of these machines, in their order; `labels` of each, from the inventory.
///
/// # Errors
/// When the store cannot be read.
pub fn standings(
    store: &dyn Store,
    params: &Params,
    nodes: &[(String, BTreeMap<String, String>)],
) -> Result<Vec<Standing>> {
    let runs = store.runs()?;
    let (mut all, _) = services((store, &runs), params, nodes, None)?;
    // Only those that replace or are replaced need it, and it is read run by run.
    let matters = |one: &Standing| matches!(one.service, Service::Defective | Service::InRepair | Service::HotBuffer);
    for one in all.iter_mut().filter(|one| matters(one) && one.machine.hardware.is_none()) {
        one.machine.hardware = hardware(store, &runs, &one.machine.name)?.models();
    }
    Ok(all)
}

/// The same without what they are built of. No run is looked into after `until`; whether none was left out for that. The newest come first, and
/// what they say of a failure stands.
///
/// # Errors
/// When the store cannot be read.
pub fn services(
    (store, runs): (&dyn Store, &[Run]),
    params: &Params,
    nodes: &[(String, BTreeMap<String, String>)],
    until: Option<Instant>,
) -> Result<(Vec<Standing>, bool)> {
    let (said, incidents) = (marks(store)?, store.incidents()?);
    let from: Vec<(&str, u64)> =
        nodes.iter().map(|(name, _)| (name.as_str(), said.get(name).map_or(0, |all| repaired_ms(all)))).collect();
    let (mut newest, mut whole) = (BTreeMap::new(), true);
    for some in from.chunks(at_once((store, runs), nodes)?) {
        let (known, all) = known(store, params, runs, (&some.iter().copied().collect(), until))?;
        newest.extend(known);
        whole &= all;
    }
    // Earlier versions took incidents that begin in the future.
    let latest_ms = now_ms().saturating_add(AHEAD_MS);
    let is_open = |one: &&Incident| one.end_ms.is_none() && one.start_ms <= latest_ms;
    let of = |(name, labels): &(String, BTreeMap<String, String>)| {
        let open = incidents.iter().filter(is_open).filter(|one| one.node == *name).min_by_key(|one| one.start_ms);
        let mut standing = standing(said.get(name).and_then(|all| all.last()), open, newest.get(name.as_str()));
        let label = |key: &str| labels.get(key).filter(|value| !value.is_empty()).cloned();
        standing.machine = Machine {
            name: name.clone(),
            hardware: label("hardware").or_else(|| label("sku")),
            leaf: label("leaf"),
            rack: label("rack"),
        };
        standing.counterpart = Counterpart::of(&said, name);
        standing
    };
    Ok((nodes.iter().map(of).collect(), whole))
}

/// How many machines are looked at together, so that what is said of them takes a hundred megabytes at most.
fn at_once((store, runs): (&dyn Store, &[Run]), nodes: &[(String, BTreeMap<String, String>)]) -> Result<usize> {
    const VERDICTS: usize = 1_000_000;
    const LEAST: usize = 16;
    let Some(newest) = runs.iter().find(|run| run.state != RunState::Running) else { return Ok(1) };
    if nodes.len() <= LEAST {
        return Ok(LEAST);
    }
    let some: Vec<&str> = newest.nodes.iter().take(LEAST).map(String::as_str).collect();
    let mut series: HashMap<String, u64> = HashMap::new();
    for one in store.summaries_of(&newest.id, &some)? {
        *series.entry(one.node).or_default() += one.series;
    }
    let of_each = series.into_values().max().and_then(|most| usize::try_from(most).ok()).unwrap_or(1);
    Ok((VERDICTS / of_each.max(1)).max(LEAST))
}

fn standing(mark: Option<&Mark>, open: Option<&Incident>, newest: Option<&Newest>) -> Standing {
    let known = Known {
        marked: mark.map(|mark| mark.state),
        incident: open.is_some(),
        newest: newest.map(|newest| newest.state),
        undecided: newest.is_some_and(|newest| newest.undecided),
    };
    let service = known.service();
    let of_mark = || mark.map(|mark| (mark.at_ms, mark.who.clone(), mark.why.clone()));
    let of_run = || newest.map(|newest| (newest.at_ms, String::new(), newest.why.clone()));
    let told = match service {
        Service::InRepair | Service::HotBuffer => of_mark(),
        Service::Defective => open.map(|one| (one.start_ms, String::new(), one.reason.clone())).or_else(of_run),
        Service::Suspect => of_run(),
        Service::InService => of_mark().filter(|_| known.marked == Some(Marked::InService)),
    };
    let (since_ms, who, why) = told.map_or_else(Default::default, |(at_ms, who, why)| (Some(at_ms), who, why));
    let run = newest.map(|newest| newest.run.clone());
    Standing { machine: Machine::default(), known, service, since_ms, who, why, run, counterpart: None }
}

/// What is known of machines over all runs that hold their newest answer to anything, each from the time given on. A run that goes on has
/// not measured everybody, and says nothing yet.
fn known(
    store: &dyn Store,
    params: &Params,
    runs: &[Run],
    (from, until): (&BTreeMap<&str, u64>, Option<Instant>),
) -> Result<(BTreeMap<String, Newest>, bool)> {
    let mut whole = true;
    let mut said: BTreeMap<String, Vec<Said>> = BTreeMap::new();
    let mut settled: HashSet<Asked> = HashSet::new();
    let counts = |run: &Run, node: &str| from.get(node).is_some_and(|from| *from <= run.started_ms);
    let ours = |run: &&Run| run.state != RunState::Running && run.nodes.iter().any(|node| counts(run, node));
    for run in runs.iter().filter(ours).take(KNOWN) {
        let own: Vec<&String> = run.nodes.iter().filter(|node| counts(run, node)).collect();
        // Its plan alone may tell that it adds nothing.
        let is_known = |node: &&String| {
            let settled = |work: &String| settled.contains(&((*node).clone(), work.clone()));
            said.contains_key(*node) && !run.plan.is_empty() && run.plan.iter().all(settled)
        };
        if own.iter().all(is_known) {
            continue;
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            whole = false;
            break;
        }
        let names: Vec<&str> = own.into_iter().map(String::as_str).collect();
        let mut asked: BTreeMap<&str, (bool, BTreeSet<String>)> =
            names.iter().map(|node| (*node, <(bool, BTreeSet<String>)>::default())).collect();
        for one in store.summaries_of(&run.id, &names)?.into_iter().filter(|one| is_work(&one.work)) {
            let Some((adds, works)) = asked.get_mut(one.node.as_str()) else { continue };
            let of = (one.node, visit_of(&one.work).0.to_owned());
            if !matches!(one.outcome, Outcome::NotRun(_)) {
                *adds |= !settled.contains(&of);
                works.insert(of.1);
            }
        }
        // Who was lost has no results, and that is said of it where nothing newer is known.
        asked.retain(|node, (adds, works)| *adds || (works.is_empty() && !said.contains_key(*node)));
        if asked.is_empty() {
            continue;
        }
        let judging = Judging::of(store, run, params.clone())?;
        let at_ms = run.ended_ms.unwrap_or(run.started_ms);
        ByNode::of(store, run, &judging, |node| asked.contains_key(node))?.each(&mut |findings| {
            let works = asked.get(findings.node.as_str()).map(|(_, works)| works.clone()).unwrap_or_default();
            let new = Said { run: run.id.clone(), at_ms, findings: findings.clone(), works };
            settled.extend(new.settled());
            said.entry(findings.node.clone()).or_default().push(new);
            Ok(())
        })?;
    }
    let merged = said.into_iter().filter_map(|(node, all)| merged(&node, &all).map(|known| (node, known)));
    Ok((merged.collect(), whole))
}

/// What runs say of a machine together, the newest first; `None` where none says anything.
fn merged(node: &str, all: &[Said]) -> Option<Newest> {
    let says = |state: State| !matches!(state, State::NotRun | State::NotApplicable);
    let told: Vec<Told<'_>> = all.iter().map(Said::told).collect();
    let found = report::known(node, &told).found;
    let decided = found.state();
    let newest = all.iter().find(|one| says(one.findings.state().state))?;
    let first = all.iter().find(|one| one.findings.state().state == decided.state).unwrap_or(newest);
    says(decided.state).then(|| Newest {
        run: newest.run.clone(),
        at_ms: first.at_ms,
        state: decided.state,
        undecided: decided.undecided,
        why: found.reasons(&found.all(), &decided).into_iter().next().unwrap_or_default(),
    })
}

/// When a machine went into the last repair that it came back from: what was found before counts no longer.
fn repaired_ms(marks: &[Mark]) -> u64 {
    let back = marks.iter().rposition(|mark| mark.state == Marked::InService).unwrap_or(0);
    marks[..back].iter().rfind(|mark| mark.state == Marked::InRepair).map_or(0, |mark| mark.at_ms)
}

/// What a machine is built of: of each part what the newest look tells, since a broken part may tell nothing.
fn hardware(store: &dyn Store, runs: &[Run], node: &str) -> Result<Hardware> {
    let mut known = Hardware::default();
    let of_node = runs.iter().filter(|run| run.nodes.iter().any(|name| name == node));
    for run in of_node.take(RUNS) {
        let records: Vec<_> = store.records_of(&run.id, node)?.into_iter().filter(|one| is_work(&one.work)).collect();
        known = known.or(hardware_of(node, &records));
        if known.cpu.is_some() && known.gpu.is_some() {
            break;
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use muster_store::{Db, Options};

    use super::*;
    use crate::risk::incidents::OWN;

    #[test]
    fn an_incident_that_begins_in_the_future_makes_nobody_defective() {
        let dir = tempfile::tempdir().unwrap();
        let mut db = Db::open(dir.path(), &Options::default()).unwrap();
        let incident = |node: &str, start_ms| Incident {
            node: node.to_owned(),
            start_ms,
            end_ms: None,
            category: "gpu".to_owned(),
            reason: "Xid 79".to_owned(),
            source: OWN.to_owned(),
            who: "kim".to_owned(),
            found_by: None,
        };
        let now = now_ms();
        db.record_incidents(&[incident("n1", now), incident("n2", now + 2 * AHEAD_MS)]).unwrap();
        let nodes: Vec<_> = ["n1", "n2"].map(|name| (name.to_owned(), BTreeMap::new())).into();
        let all = standings(&db, &Params::default(), &nodes).unwrap();
        assert_eq!(all.iter().map(|one| one.service).collect::<Vec<_>>(), [Service::Defective, Service::InService]);
    }
}

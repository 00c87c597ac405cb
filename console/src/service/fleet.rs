//! What is known of every machine: what people said, which incidents are open, what its newest run says, what it is built of.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use muster_analysis::groups::Hardware;
use muster_analysis::records::hardware::hardware_of;
use muster_analysis::service::{Known, Machine, Marked, Service};
use muster_analysis::{Params, State};
use muster_run::{Run, RunState, is_work};
use muster_store::{Incident, Store};

use super::marks::{Mark, marks};
use crate::judge::{ByNode, Judging, each_report};

/// Runs that are looked into for what a machine is built of, newest first.
const RUNS: usize = 8;

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
}

/// What the newest run that says something of a machine says of it.
#[derive(Clone)]
struct Newest {
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
    let (said, incidents) = (marks(store)?, store.incidents()?);
    let runs = store.runs()?;
    let newest = newest(store, params, &runs, nodes.iter().map(|(name, _)| name.as_str()).collect())?;
    let of = |(name, labels): &(String, BTreeMap<String, String>)| {
        let open =
            incidents.iter().filter(|one| one.node == *name && one.end_ms.is_none()).min_by_key(|one| one.start_ms);
        let mut standing = standing(said.get(name).and_then(|all| all.last()), open, newest.get(name.as_str()));
        let label = |key: &str| labels.get(key).filter(|value| !value.is_empty()).cloned();
        standing.machine = Machine {
            name: name.clone(),
            hardware: label("hardware").or_else(|| label("sku")),
            leaf: label("leaf"),
            rack: label("rack"),
        };
        standing
    };
    let mut all: Vec<Standing> = nodes.iter().map(of).collect();
    // Only those that replace or are replaced need it, and it is read run by run.
    let matters = |one: &Standing| matches!(one.service, Service::Defective | Service::InRepair | Service::HotBuffer);
    for one in all.iter_mut().filter(|one| matters(one) && one.machine.hardware.is_none()) {
        one.machine.hardware = hardware(store, &runs, &one.machine.name)?.models();
    }
    Ok(all)
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
    Standing { machine: Machine::default(), known, service, since_ms, who, why, run }
}

/// What the newest run says of each of `names` that says anything. A run that goes on has not measured everybody, and says nothing yet.
fn newest(
    store: &dyn Store,
    params: &Params,
    runs: &[Run],
    mut names: BTreeSet<&str>,
) -> Result<BTreeMap<String, Newest>> {
    let mut found: BTreeMap<String, Newest> = BTreeMap::new();
    for run in runs {
        if names.is_empty() {
            break;
        }
        let goes_on = run.state == RunState::Running;
        if goes_on || !run.nodes.iter().any(|node| names.contains(node.as_str())) {
            continue;
        }
        let judging = Judging::of(store, run, params.clone())?;
        let said = ByNode::of(store, run, &judging, |node| names.contains(node))?;
        each_report(&said, &mut |_, report| {
            if !matches!(report.state, State::NotRun | State::NotApplicable) {
                let newest = Newest {
                    run: run.id.clone(),
                    at_ms: run.ended_ms.unwrap_or(run.started_ms),
                    state: report.state,
                    undecided: report.undecided,
                    why: report.reasons.first().cloned().unwrap_or_default(),
                };
                found.insert(report.node, newest);
            }
            Ok(())
        })?;
        names.retain(|name| !found.contains_key(*name));
    }
    Ok(found)
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

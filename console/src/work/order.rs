//! What is a scan to carry through, and what do nodes still owe of it?

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use muster_fleet::{Node, Probe, Settings, Work};
use muster_playbook::{Phase, Plan, collector_work};
use muster_run::Run;
use muster_wire::{IDLE, Request};

use super::network::Fabric;
use crate::judge::{Judging, steps_of};

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
    pub until: Option<Instant>,
}

impl Scan {
    /// How far measuring again may go after `visit`, for people; `None` where it ends.
    pub(super) fn further(&self, visit: usize) -> Option<String> {
        match self.until {
            None => Some(format!("{visit} of {}", self.visits)),
            Some(until) => {
                let left = until.checked_duration_since(Instant::now())?;
                Some(format!("visit {visit}, {} s left", left.as_secs()))
            }
        }
    }
}

/// What the nodes that are `asked` still owe of a phase when `done` is there; those of `reached` answered before.
pub(super) fn owed(
    scan: &Scan,
    phase: &Phase,
    (done, reached): (&BTreeSet<(String, String)>, &BTreeSet<String>),
    asked: impl Fn(&str) -> bool,
) -> Vec<Work> {
    let mut works = Vec::new();
    let members: HashSet<&str> = phase.nodes.iter().map(String::as_str).collect();
    for node in scan.nodes.iter().filter(|n| asked(&n.name) && members.contains(n.name.as_str())) {
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
        let known = reached.contains(&node.name);
        works.push(Work { known, ..Work::new(node.clone(), request, phase.limit) });
    }
    works
}

/// An order of these collectors and benchmarks, with the steps that the run was begun with.
pub(super) fn request(scan: &Scan, phase: &Phase, collectors: Vec<String>, benchmarks: Vec<String>) -> Request {
    let steps = steps_of(&scan.judging.terms.steps, phase.profile, &benchmarks);
    Request::Run { collectors, benchmarks, profile: phase.profile, scratch: None, steps }
}

/// Results that a work is to give.
pub(super) fn work_count(work: &Work) -> usize {
    match &work.request {
        // An idle gate gives no result.
        Request::Run { collectors, benchmarks, .. } => {
            collectors.iter().filter(|name| !name.starts_with(IDLE)).count() + benchmarks.len()
        }
        _ => 0,
    }
}

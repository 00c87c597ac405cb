//! What runs a playbook on some of the nodes and keeps it as a run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use muster_fleet::{Node, Settings};
use muster_playbook::report::RunReport;
use muster_playbook::{Playbook, Train};
use muster_run::{Record, RunState};
use muster_store::{Db, Store};
use muster_triage::halving::Nodes;
use muster_wire::Between;
use tokio_util::sync::CancellationToken;

use super::Order;
use crate::config::Config;
use crate::exit::{Code, INTERRUPTED, IO, Problem};
use crate::session::Heard;
use crate::{session, work};

/// The playbook that has the step which trains.
const TRAINS: &str = "cbd-multi";

/// Nodes, and what it takes to run something on them.
pub(super) struct Rig<'a> {
    pub config: &'a Config,
    pub store: &'a mut Db,
    /// Those that are still tested.
    pub nodes: Vec<Node>,
    pub settings: Arc<Settings>,
    pub order: &'a Order,
    /// Is told what goes on.
    pub say: &'a dyn Fn(&str),
    /// Ends it.
    pub cancel: &'a CancellationToken,
    /// Ids of the runs so far.
    pub runs: Vec<String>,
}

impl Rig<'_> {
    /// Their names.
    pub fn names(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.name.clone()).collect()
    }

    /// Where each node is, from the top of the fabric down to its leaf; empty where nothing is known of it.
    ///
    /// # Errors
    /// When the topology does not know a node.
    pub fn places(&self) -> Result<Vec<Vec<String>>, Problem> {
        let names = self.names();
        let topology = self.fabric(Vec::new()).topology(&self.nodes, &names).code(IO)?;
        let place = |name: &String| {
            let leaf = topology.leaf(topology.find(name)?);
            let above = topology.above(leaf).into_iter().rev().map(str::to_owned);
            Some(above.chain(topology.leaves().get(leaf as usize).cloned()).collect())
        };
        Ok(names.iter().map(|name| place(name).unwrap_or_default()).collect())
    }

    /// Runs `playbook` on all nodes and judges it.
    ///
    /// # Errors
    /// When the store fails or somebody interrupts it.
    pub async fn all(&mut self, playbook: Playbook) -> Result<RunReport, Problem> {
        let (nodes, fabric) = (self.nodes.clone(), self.fabric(Vec::new()));
        let job = session::Job { fabric, ..session::Job::new(playbook, nodes, self.settings.clone()) };
        self.run(job, self.order.heard).await
    }

    /// The reference job on several sets of nodes at the same time; also its records.
    ///
    /// # Errors
    /// As [`Rig::all`].
    pub async fn train(&mut self, sets: &[Nodes]) -> Result<(RunReport, Vec<Record>), Problem> {
        let mut playbook = session::playbook(TRAINS)?;
        "offline-reference".clone_into(&mut playbook.name);
        playbook.profile = self.order.profile;
        playbook.steps.retain(|step| step.train.is_some());
        let train = Train {
            model: self.order.model.clone(),
            ranks_per_node: self.order.ranks_per_node,
            length: None,
            between: Between::Auto,
            timeout: self.order.timeout_s.map(Duration::from_secs),
        };
        playbook.steps.iter_mut().for_each(|step| step.train = Some(train.clone()));
        let of = |set: &Nodes| set.iter().map(|node| self.nodes[*node].name.clone()).collect::<BTreeSet<String>>();
        let teams: Vec<BTreeSet<String>> = sets.iter().map(of).collect();
        let nodes = sets.iter().flatten().map(|node| self.nodes[*node].clone()).collect();
        let fabric = self.fabric(teams);
        // A second look at a node would be another trial, which only the search may ask for.
        let job = session::Job { fabric, visits: 1, ..session::Job::new(playbook, nodes, self.settings.clone()) };
        // What it is on and what came of it is said; its progress would be lost between so many.
        let heard = if self.order.heard == Heard::Nothing { Heard::Nothing } else { Heard::Problems };
        let report = self.run(job, heard).await?;
        let records = self.store.records(&report.run.id).code(IO)?;
        Ok((report, records))
    }

    fn fabric(&self, teams: Vec<BTreeSet<String>>) -> work::Fabric {
        work::Fabric { topology: self.order.topology.clone(), teams, ..work::Fabric::default() }
    }

    async fn run(&mut self, job: session::Job, heard: Heard) -> Result<RunReport, Problem> {
        let stopped = |what: &str| Problem { code: INTERRUPTED, error: anyhow!("interrupted{what}") };
        if self.cancel.is_cancelled() {
            return Err(stopped(""));
        }
        let job = session::Job { fresh: true, ..job };
        let done = session::carried(&job, self.store, self.config, (heard, self.cancel)).await?;
        self.runs.push(done.report.run.id.clone());
        if done.state == RunState::Cancelled {
            return Err(stopped(&format!("; what was measured is kept in run {}", done.report.run.id)));
        }
        Ok(done.report)
    }
}

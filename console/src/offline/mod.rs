//! The nodes of a job that nobody could diagnose from what it left behind, tested by themselves: for the command line and the screen
//! alike.

mod rig;
mod search;
mod steps;

use std::sync::Arc;

use muster_analysis::network::Topology;
use muster_fleet::hostlist::fold;
use muster_fleet::{Node, Settings};
use muster_store::Db;
use muster_triage::offline::{OFFLINE_SCHEMA, Offline, concluded};
use muster_wire::Profile;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::exit::Problem;
use crate::session::Heard;
use rig::Rig;
use steps::Course;

/// What is to be tested.
#[derive(Clone, Debug)]
pub struct Order {
    /// Length of the reference job and of the pair tests.
    pub profile: Profile,
    /// What the reference job trains; by the profile where nobody chose.
    pub model: Option<String>,
    /// Processes of the reference job on each node.
    pub ranks_per_node: u16,
    /// Longest that one operation of the reference job may take, seconds; by the profile where nobody chose.
    pub timeout_s: Option<u64>,
    /// Which leaf each node is attached to; by labels of the inventory where nobody said.
    pub topology: Option<Topology>,
    /// Whether to go straight to the reference job.
    pub skip_self_tests: bool,
    /// Whether to go on with the others where self-tests fail nodes.
    pub go_on: bool,
    /// What standard error hears of its runs.
    pub heard: Heard,
}

impl Default for Order {
    fn default() -> Self {
        Self {
            profile: Profile::Smoke,
            model: None,
            ranks_per_node: 1,
            timeout_s: None,
            topology: None,
            skip_self_tests: false,
            go_on: false,
            heard: Heard::Nothing,
        }
    }
}

/// Tests `nodes` as ordered until something is named; `say` is told what goes on, in a line each. Every run is kept in `store`.
///
/// # Errors
/// When the store fails, the topology does not know a node, or it is cancelled.
pub async fn diagnosed(
    order: &Order,
    (nodes, settings): (Vec<Node>, Arc<Settings>),
    (store, config): (&mut Db, &Config),
    (say, cancel): (&dyn Fn(&str), &CancellationToken),
) -> Result<Offline, Problem> {
    let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    let rig = Rig { config, store, nodes, settings, order, say, cancel, runs: Vec::new() };
    Ok(report(names, steps::all(rig).await?))
}

fn report(nodes: Vec<String>, course: Course) -> Offline {
    let Course { culprits, open, steps, trials, runs } = course;
    let (verdict, sentence, action) = concluded(&culprits, &open, &nodes, &folded);
    Offline {
        schema: OFFLINE_SCHEMA.into(),
        version: 1,
        verdict,
        sentence,
        action,
        nodes,
        culprits,
        open,
        steps,
        trials,
        runs,
    }
}

/// Names as people write many: `n[001-004]`.
pub fn folded(names: &[&str]) -> String {
    fold(names.iter().copied())
}

//! `muster virtual-nodes`: the servers of `muster demo --virtual`, in a process of their own so that what the console's side costs can be
//! told from what they cost.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use clap::Args;
use muster_fleet::demo::{VirtualOptions, serve_virtual};
use muster_wire::Request;

use crate::exit::{Code, Ended, IO, PASS, Problem};
use crate::session;
use crate::work;

/// Options.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  muster virtual-nodes --nodes 100 --slow 2 --seed 7 --severity 2 --pace 1 /tmp/virtual < /dev/zero"
)]
pub struct Options {
    /// How many nodes.
    #[arg(long)]
    pub nodes: usize,
    /// How many of them are slowed.
    #[arg(long)]
    pub slow: usize,
    /// Seed of what nodes differ by, and of the choice of the slowed ones.
    #[arg(long)]
    pub seed: u64,
    /// How many times as long everything takes on a slowed node.
    #[arg(long)]
    pub severity: f64,
    /// How many times as fast as recorded the nodes work.
    #[arg(long)]
    pub pace: f64,
    /// Existing directory for the nodes' keys and addresses.
    pub dir: PathBuf,
}

impl Options {
    /// This program, to be these nodes; lacks the directory.
    ///
    /// # Errors
    /// When this program's own file is not known.
    pub fn command(of: &VirtualOptions) -> Result<Command, Problem> {
        let mut command = Command::new(std::env::current_exe().context("this program's own file").code(IO)?);
        command.arg("virtual-nodes").args(["--nodes", &of.nodes.to_string(), "--slow", &of.slow.to_string()]);
        command.args(["--seed", &of.seed.to_string(), "--severity", &of.severity.to_string()]);
        command.args(["--pace", &of.pace.to_string()]);
        Ok(command)
    }
}

/// Serves until standard input ends.
pub fn run(options: &Options) -> Ended {
    let Options { nodes, slow, seed, severity, pace, dir } = options;
    let of = VirtualOptions { nodes: *nodes, slow: *slow, seed: *seed, severity: *severity, pace: *pace };
    serve_virtual(&of, dir, work::embedded_bytes(), &recorded()?).code(IO)?;
    Ok(PASS)
}

/// Everything that the playbook of the demo asks of a node.
fn recorded() -> Result<Request, Problem> {
    let playbook = session::playbook("demo")?;
    let plan = muster_playbook::plan(&playbook, &[]);
    let all = |of: fn(&muster_playbook::Phase) -> &Vec<String>| plan.phases.iter().flat_map(of).cloned().collect();
    let (collectors, benchmarks) = (all(|phase| &phase.collectors), all(|phase| &phase.benchmarks));
    Ok(Request::Run { collectors, benchmarks, profile: playbook.profile, scratch: None, steps: Default::default() })
}

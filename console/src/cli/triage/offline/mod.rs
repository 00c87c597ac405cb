//! `muster triage offline`: the nodes of a job that nobody could diagnose from what it left behind, tested by themselves.

mod tell;

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use muster_triage::offline::Answer;
use muster_wire::{Profile, RANKS_PER_NODE, TRAIN_MODELS};
use tokio_util::sync::CancellationToken;

use crate::cli::pairs::topology;
use crate::config::Config;
use crate::exit::{Ended, FAIL, PASS, Problem, UNDECIDED, USAGE};
use crate::offline::{Order, diagnosed};
use crate::options::Pick;
use crate::session::Heard;
use crate::signals::Signals;
use crate::{database, out, session};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster triage offline --job 4711
  muster triage offline -w 'n[001-016]' --topology /etc/slurm/topology.conf
  muster triage offline -w 'n[001-016]' -x n005 --profile quick
  muster triage offline -w @rack7 --skip-self-tests --json

For a job that fails for no reason that muster triage can name, once it has left its nodes: nothing else should run on them meanwhile.
  1. self-tests     the playbook cbd-light on all nodes at the same time
  2. reference-job  a training over all nodes that must end with the same weights on each (train-ddp)
  3. halving        where that fails, on halves cut between switches, on their halves, and across, until it is known which node or
                    which way between nodes it takes to fail
  4. pairs          where nothing was named yet, pairs of nodes chosen by bisection, several message sizes
It ends with the step that names something. Every sample is kept: muster runs lists the runs.

Exit codes: 0 nothing found, 2 a node or a way is named, 3 undecided; 64 usage, 74 a file or the database, 130 interrupted")]
pub struct Options {
    /// Which nodes.
    #[command(flatten)]
    pub pick: Pick,
    /// Length of the reference job and of the pair tests: smoke (5 s), quick (60 s), standard or full.
    #[arg(long, default_value = "smoke")]
    pub profile: Profile,
    /// What the reference job trains [default: gpt2-nano, from standard on gpt2-small].
    #[arg(long, value_name = "MODEL", value_parser = clap::builder::PossibleValuesParser::new(TRAIN_MODELS))]
    pub model: Option<String>,
    /// Processes of the reference job on each node.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(RANKS_PER_NODE)))]
    pub ranks_per_node: u16,
    /// Longest that one operation of the reference job may take before it counts as hanging [default: 20 s, with longer profiles more].
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub timeout: Option<u64>,
    /// Which leaf each node is attached to: CSV, Slurm's topology.conf or ibnetdiscover's output [default: labels of the inventory].
    #[arg(long, value_name = "FILE")]
    pub topology: Option<PathBuf>,
    /// Go straight to the reference job.
    #[arg(long)]
    pub skip_self_tests: bool,
    /// Where self-tests fail nodes, go on with the others instead of ending there.
    #[arg(long, conflicts_with = "skip_self_tests")]
    pub go_on: bool,
    /// No progress on standard error.
    #[arg(short, long)]
    pub quiet: bool,
    /// JSON on standard output (assets/schemas/muster.triage-offline.json).
    #[arg(long)]
    pub json: bool,
}

/// Tests, searches, tells.
pub(super) async fn run(options: &Options, config: &Config) -> Ended {
    let nodes = session::nodes_for_work(config, &options.pick)?;
    if nodes.len() < 2 {
        return Err(Problem { code: USAGE, error: anyhow!("a reference job needs at least two nodes") });
    }
    let order = order(options)?;
    let settings = session::settings_for(config, &nodes).await?;
    let mut store = database::write(config)?;
    let (cancel, signals) = (CancellationToken::new(), Signals::default());
    let listening = signals.listen(cancel.clone());
    let say = |what: &str| {
        if !options.quiet {
            out::note(what);
        }
    };
    let told = diagnosed(&order, (nodes, settings), (&mut store, config), (&say, &cancel)).await;
    listening.abort();
    database::damaged(&store);
    let report = told.map_err(|problem| Problem { code: signals.code().unwrap_or(problem.code), ..problem })?;
    if options.json {
        out::json(&report)?;
    } else {
        tell::report(&report)?;
    }
    Ok(match report.verdict {
        Answer::Named => FAIL,
        Answer::NothingFound => PASS,
        Answer::Undecided => UNDECIDED,
    })
}

fn order(options: &Options) -> Result<Order, Problem> {
    Ok(Order {
        profile: options.profile,
        model: options.model.clone(),
        ranks_per_node: options.ranks_per_node,
        timeout_s: options.timeout,
        topology: options.topology.as_deref().map(topology).transpose()?,
        skip_self_tests: options.skip_self_tests,
        go_on: options.go_on,
        heard: if options.quiet { Heard::Problems } else { Heard::Progress },
    })
}

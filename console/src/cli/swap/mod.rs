//! `muster swap`: which defective nodes are replaced by which spares, and what becomes of them until they are back.

mod document;
mod history;
mod list;
mod mark;
mod states;

use std::collections::BTreeSet;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use muster_store::Store;

use crate::config::Config;
use crate::exit::{Code, Ended, IO, Problem, USAGE};
use crate::options::{Common, Pick};
use crate::service::{Standing, standings};
use crate::session;

/// Options of `muster swap`.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  muster swap                                     who is defective, and which spare replaces it
  muster swap --format slurm                      the commands for Slurm, printed and not run
  muster swap spare -w 'n[101-104]'               keep four nodes as the hot buffer
  muster swap repair -w n007 --reason 'RMA 4711'  n007 goes into repair
  muster run build-out -w n007 && muster swap return -w n007
  muster swap states                              where every node stands
  muster swap history -w n007                     what failed on it before, by serial number

A node is defective while an incident of it is open or one of its newest results fails it. A spare must be of the same hardware (label hardware
or sku, else the models that its last runs saw) and have nothing failed, warned of or undecided; of several, one on the same leaf and in the same rack
is taken.
Exit codes: 0 nobody is defective, 1 all who are can be replaced, 3 somebody cannot."
)]
pub struct Options {
    /// What else to do.
    #[command(subcommand)]
    pub action: Option<Action>,
    /// Which nodes are replaced; all that are defective when left out.
    #[command(flatten)]
    pub pick: Pick,
    /// Form of the list.
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Form::Text)]
    pub format: Form,
    /// JSON on standard output (assets/schemas/muster.swap.json).
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// What else to do.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Show where every node stands: in service, suspect, defective, in repair, hot buffer.
    #[command(after_help = "Examples:\n  muster swap states\n  muster swap states -w 'n[001-016]' --json")]
    States(Shown),
    /// Put nodes into repair.
    #[command(after_help = "Example:\n  muster swap repair -w n007 --reason 'RMA 4711'")]
    Repair(Marking),
    /// Keep nodes free as spares.
    #[command(after_help = "Example:\n  muster swap spare -w 'n[101-104]' --reason 'hot buffer of hall 7'")]
    Spare(Marking),
    /// Give nodes back to service; out of repair only after a validation that passes, by the criteria of the run that failed them as well.
    #[command(after_help = "Example:
  muster run build-out -w n007 && muster swap return -w n007

The validation is the newest finished run that began after the node went into repair. It must pass the node, hold everything that the run
held which found it defective, at the same profile, and pass by that run's criteria as well. Incidents that muster opened end with it.
Exit codes: 0 given back, 2 it still fails, 3 not validated or not decided.")]
    Return(Back),
    /// Show which parts failed on these nodes, and how often each of them failed anywhere.
    #[command(after_help = "Examples:\n  muster swap history\n  muster swap history -w n007 --json")]
    History(Shown),
}

/// Options of what only shows.
#[derive(Args, Debug)]
pub struct Shown {
    /// Which nodes; all when left out.
    #[command(flatten)]
    pub pick: Pick,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Options of what puts nodes into other hands.
#[derive(Args, Debug)]
pub struct Marking {
    /// Which nodes.
    #[command(flatten)]
    pub pick: Pick,
    /// Why, in words.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub reason: String,
}

/// Options of `return`.
#[derive(Args, Debug)]
pub struct Back {
    /// Which nodes, and why.
    #[command(flatten)]
    pub marking: Marking,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Form of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// For reading.
    Text,
    /// A table for a ticket.
    Markdown,
    /// Commands for Slurm, to be looked at and run by hand.
    Slurm,
}

/// Does it.
pub fn run(options: &Options, config: &Config, common: &Common) -> Ended {
    match &options.action {
        None => list::run(options, config),
        Some(Action::States(shown)) => states::run(shown, config),
        Some(Action::Repair(marking)) => mark::repair(marking, config, common),
        Some(Action::Spare(marking)) => mark::spare(marking, config, common),
        Some(Action::Return(back)) => mark::back(back, config, common),
        Some(Action::History(shown)) => history::run(shown, config),
    }
}

/// What is known of the nodes that are picked.
fn known(store: &dyn Store, config: &Config, pick: &Pick) -> Result<Vec<Standing>, Problem> {
    let nodes: Vec<_> = session::nodes(config, pick)?.into_iter().map(|node| (node.name, node.labels)).collect();
    standings(store, &session::params(config), &nodes).code(IO)
}

/// The names that are picked; `None` where all are meant.
fn picked(config: &Config, pick: &Pick) -> Result<Option<BTreeSet<String>>, Problem> {
    if !pick.names() {
        return Ok(None);
    }
    Ok(Some(session::nodes(config, pick)?.into_iter().map(|node| node.name).collect()))
}

fn usage(why: &str) -> Problem {
    Problem { code: USAGE, error: anyhow!("{}", why.to_owned()) }
}

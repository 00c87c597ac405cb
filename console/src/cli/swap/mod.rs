//! `muster swap`: which defective nodes are replaced by which spares, and what becomes of them until they are back.

mod document;
mod history;
mod list;
mod mark;
mod states;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::anyhow;
use clap::{Args, Subcommand};
use muster_fleet::{Inventory, Transport};
use muster_store::Store;

use crate::config::Config;
use crate::exit::{Code, Ended, IO, Problem, USAGE};
use crate::options::{Common, Pick};
use crate::service::{Standing, marks, standings};
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
  muster swap replace -w n007                     n007 goes into repair, its spare into service
  muster swap repair -w n007 --reason 'RMA 4711'  n007 goes into repair, and nobody takes its place
  muster run build-out -w n007 && muster swap return -w n007
  muster swap states                              where every node stands
  muster swap history -w n007                     what failed on it before, by serial number

A node is defective while an incident of it is open or one of its newest results fails it. A spare must be of the same hardware (label hardware
or sku, else the models that its last runs saw) and have nothing failed, warned of or undecided; of several, one on the same leaf and in the same rack
is taken. Without an inventory all nodes are those of which the database knows a result, a mark or an incident; their racks and leaves are not known then.
Exit codes: 0 nobody is defective, 1 all who are can be replaced, 3 somebody cannot."
)]
pub struct Options {
    /// What else to do.
    #[command(subcommand)]
    pub action: Option<Action>,
    /// Which nodes are replaced; all that are defective when left out. What -x leaves out replaces nobody either.
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
    /// Put nodes into repair and spares into service in their place.
    #[command(after_help = "Examples:
  muster swap replace -w n007 --reason 'RMA 4711'  by the spare that muster swap lists for it
  muster swap replace -w n007 --by n102            by this one

Each of the two then names the other in muster swap states and muster swap history. The spare must pass what muster swap return asks of it.
With --by the node need not be defective, nor the spare in the hot buffer or of the same hardware: this also records a swap that was already
made, and of a node that is in repair. muster runs no Slurm command, and muster swap --format slurm has none for a node in repair: copy them first.
Exit codes: 0 all are replaced, 3 somebody is not.")]
    Replace(Replace),
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
    /// Show which parts failed on these nodes, how often each of them failed anywhere, and who was put where.
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

/// Options of `replace`.
#[derive(Args, Debug)]
pub struct Replace {
    /// Which nodes, and why.
    #[command(flatten)]
    pub marking: Marking,
    /// Node that takes the place of the one that -w names [default: the spare that `muster swap` lists].
    #[arg(long, value_name = "NODE")]
    pub by: Option<String>,
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
        Some(Action::Replace(options)) => mark::replace(options, config, common),
        Some(Action::Spare(marking)) => mark::spare(marking, config, common),
        Some(Action::Return(back)) => mark::back(back, config, common),
        Some(Action::History(shown)) => history::run(shown, config),
    }
}

/// What is known of the nodes that are picked; without an inventory, of those that the database knows.
fn known(store: &dyn Store, config: &Config, pick: &Pick) -> Result<Vec<Standing>, Problem> {
    let nodes: Vec<_> = if pick.names() || has_inventory(config) {
        session::nodes(config, pick)?.into_iter().map(|node| (node.name, node.labels)).collect()
    } else {
        let left_out = left_out(config, pick)?;
        let seen = seen(store).code(IO)?.into_iter().filter(|name| !left_out.contains(name));
        seen.map(|name| (name, BTreeMap::new())).collect()
    };
    if nodes.is_empty() {
        let file = config.inventory.value.display();
        let why =
            format!("no node is known: there is no inventory {file}, and nothing was measured yet; name nodes with -w");
        return Err(Problem { code: USAGE, error: anyhow!(why) });
    }
    standings(store, &session::params(config), &nodes).code(IO)
}

fn has_inventory(config: &Config) -> bool {
    let slurm = config.slurm.value.is_some() || config.transport.value == Transport::Slurm;
    slurm || config.inventory.value.exists()
}

/// Every node that has a result, a mark or an incident in the database.
fn seen(store: &dyn Store) -> anyhow::Result<BTreeSet<String>> {
    let mut names: BTreeSet<String> = store.nodes()?.into_iter().map(|node| node.name).collect();
    names.extend(marks(store)?.into_keys());
    names.extend(store.incidents()?.into_iter().map(|incident| incident.node));
    Ok(names)
}

/// The nodes that `-x` names; hosts where no inventory knows its groups.
fn left_out(config: &Config, pick: &Pick) -> Result<BTreeSet<String>, Problem> {
    if pick.exclude.is_empty() {
        return Ok(BTreeSet::new());
    }
    let nodes = if has_inventory(config) {
        session::nodes(config, &Pick { include: pick.exclude.clone(), ..Pick::default() })?
    } else {
        Inventory::from_names(&pick.exclude.join(",")).code(USAGE)?.nodes().to_vec()
    };
    Ok(nodes.into_iter().map(|node| node.name).collect())
}

/// Whether a node is picked: one of those named, else any but those left out.
fn picked(config: &Config, pick: &Pick) -> Result<impl Fn(&str) -> bool + use<>, Problem> {
    let named: Option<BTreeSet<String>> = if pick.names() {
        Some(session::nodes(config, pick)?.into_iter().map(|node| node.name).collect())
    } else {
        None
    };
    let left_out = if named.is_none() { left_out(config, pick)? } else { BTreeSet::new() };
    Ok(move |node: &str| named.as_ref().map_or(!left_out.contains(node), |names| names.contains(node)))
}

fn usage(why: &str) -> Problem {
    Problem { code: USAGE, error: anyhow!("{}", why.to_owned()) }
}

#[cfg(test)]
mod tests {
    use muster_store::{Db, Incident, Options as Opened};

    use super::*;
    use crate::config::{Raw, resolve};

    #[test]
    fn without_an_inventory_all_nodes_are_those_that_the_database_knows() {
        let dir = tempfile::tempdir().unwrap();
        let raw = Raw { inventory: Some(dir.path().join("none.toml")), ..Raw::default() };
        let config = resolve(raw, Raw::default(), std::path::Path::new("none")).unwrap();
        let mut store = Db::open(dir.path().join("db"), &Opened::default()).unwrap();
        let names = |store: &Db, exclude: &[&str]| {
            let exclude = exclude.iter().map(|list| (*list).to_owned()).collect();
            let pick = Pick { exclude, ..Pick::default() };
            let all = known(store, &config, &pick).map_err(|problem| (problem.code, problem.error.to_string()))?;
            Ok::<_, (u8, String)>(all.into_iter().map(|one| one.machine.name).collect::<Vec<_>>())
        };
        let (code, why) = names(&store, &[]).unwrap_err();
        assert!(code == USAGE && why.contains("none.toml") && why.contains("name nodes with -w"), "{why}");
        let incident = |node: &str| Incident {
            node: node.to_owned(),
            start_ms: 5,
            end_ms: None,
            category: "gpu".to_owned(),
            reason: String::new(),
            source: "operator".to_owned(),
            who: "ann".to_owned(),
            found_by: None,
        };
        store.record_incidents(&[incident("n2"), incident("n1")]).unwrap();
        assert_eq!(names(&store, &[]).unwrap(), ["n1", "n2"]);
        assert_eq!(names(&store, &["n[1,7]"]).unwrap(), ["n2"]);
        // Who is left out is not replaced, and nothing that failed on it is shown.
        let pick = Pick { exclude: vec!["n[1,7]".to_owned()], ..Pick::default() };
        let meant = picked(&config, &pick).map_err(|problem| problem.error).unwrap();
        assert!(meant("n2") && !meant("n1"));
        let options = Options { action: None, pick, format: Form::Text, json: false };
        let listed = list::of(&store, &options, &config).map_err(|problem| problem.error).unwrap();
        assert_eq!(listed.swaps.iter().map(|row| row.node.as_str()).collect::<Vec<_>>(), ["n2"]);
    }

    #[test]
    fn with_an_inventory_who_is_left_out_by_name_or_group_is_not_picked() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("inventory.toml");
        let nodes = "[[nodes]]\nnames = 'n[1-3]'\n[[nodes]]\nname = 's1'\ngroups = ['spares']\n";
        std::fs::write(&file, nodes).unwrap();
        let raw = Raw { inventory: Some(file), ..Raw::default() };
        let config = resolve(raw, Raw::default(), std::path::Path::new("none")).unwrap();
        let pick = Pick { exclude: vec!["n1,@spares".to_owned()], ..Pick::default() };
        let meant = picked(&config, &pick).map_err(|problem| problem.error).unwrap();
        assert_eq!(["n1", "n2", "n9", "s1"].map(meant), [false, true, true, false]);
    }
}

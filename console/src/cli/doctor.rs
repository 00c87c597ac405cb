//! `muster doctor`: check this machine's own setup before blaming the fleet.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use muster_fleet::slurm::{Said, ask, listed};
use muster_fleet::{Build, Inventory, Node, Transport};
use muster_wire::clean;
use serde::Serialize;

use crate::config::Config;
use crate::exit::{CONFIG, Ended, PASS};
use crate::{database, out, work};

/// Most bytes of the line in which Slurm says its version.
const VERSION_BYTES: u64 = 128;

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  muster doctor\n  muster -i hall7.toml doctor --json")]
pub struct Options {
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

enum Finding {
    Ok(String),
    Advice(String),
    Wrong(String),
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    /// `ok`, `advice` or `wrong`.
    state: &'static str,
    said: String,
}

impl Row {
    fn of((name, finding): (&'static str, Finding)) -> Self {
        let (state, said) = match finding {
            Finding::Ok(said) => ("ok", said),
            Finding::Advice(said) => ("advice", said),
            Finding::Wrong(said) => ("wrong", said),
        };
        Self { name, state, said }
    }
}

/// Prints one line per check; exit code 78 when one is wrong.
pub fn run(options: &Options, config: &Config) -> Ended {
    let checks: [(&str, Finding); 7] = [
        ("inventory", inventory(config)),
        ("database", database(config)),
        ("ssh agent", agent()),
        ("ssh keys", keys(config)),
        ("slurm", slurm(config)),
        ("open files", open_files(config)),
        ("probe", probe()),
    ];
    let checks = checks.map(Row::of);
    let code = if checks.iter().any(|row| row.state == "wrong") { CONFIG } else { PASS };
    if options.json {
        out::list("muster.doctor", "checks", &checks)?;
        return Ok(code);
    }
    for Row { name, state, said } in &checks {
        out::line(&format!("{name:<11} {state:<7} {said}"))?;
    }
    Ok(code)
}

fn inventory(config: &Config) -> Finding {
    let file = &config.inventory.value;
    if !file.exists() {
        return Finding::Advice(format!("{} does not exist; `muster demo` needs none", file.display()));
    }
    match Inventory::load(file) {
        Ok(inventory) => match missing(inventory.nodes()) {
            Some(why) => Finding::Wrong(format!("{}: {why}", file.display())),
            None => {
                Finding::Ok(format!("{}: {}", file.display(), out::counted(inventory.nodes().len(), "node", "nodes")))
            }
        },
        Err(why) => Finding::Wrong(why.to_string()),
    }
}

fn database(config: &Config) -> Finding {
    let dir = &config.db.value;
    if !dir.exists() {
        return Finding::Ok(format!("{} will be made by the first run", dir.display()));
    }
    match database::read(config) {
        Ok(store) => {
            let runs = out::counted(store.runs().map_or(0, |runs| runs.len()), "run", "runs");
            Finding::Ok(format!("{}: {runs}", dir.display()))
        }
        Err(problem) => Finding::Wrong(format!("{:#}", problem.error)),
    }
}

fn agent() -> Finding {
    match std::env::var_os("SSH_AUTH_SOCK") {
        Some(socket) if Path::new(&socket).exists() => Finding::Ok(format!("{}", Path::new(&socket).display())),
        Some(socket) => Finding::Advice(format!("SSH_AUTH_SOCK is {}, which is gone", Path::new(&socket).display())),
        None => Finding::Advice("none; encrypted keys cannot be used without one".into()),
    }
}

/// The keys that `nodes` name, as the inventory writes them, each once.
fn named(nodes: &[Node]) -> BTreeSet<&Path> {
    nodes.iter().filter_map(|node| node.identity.as_deref()).collect()
}

/// Which keys of the inventory are no files.
fn missing(nodes: &[Node]) -> Option<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let place = |key: &Path| match (key.strip_prefix("~"), &home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => key.to_owned(),
    };
    let gone: Vec<String> =
        named(nodes).into_iter().filter(|key| !place(key).exists()).map(|key| key.display().to_string()).collect();
    match gone.as_slice() {
        [] => None,
        [one] => Some(format!("it names the key {one}, which does not exist")),
        some => Some(format!("it names the keys {}, which do not exist", some.join(", "))),
    }
}

fn keys(config: &Config) -> Finding {
    let Some(home) = std::env::var_os("HOME") else { return Finding::Wrong("HOME is not set".into()) };
    let inventory = Inventory::load(&config.inventory.value).unwrap_or_default();
    let named: Vec<String> = named(inventory.nodes()).into_iter().map(|key| key.display().to_string()).collect();
    let names = ["id_ed25519", "id_ecdsa", "id_rsa"];
    let found: Vec<_> = names.into_iter().filter(|n| Path::new(&home).join(".ssh").join(n).exists()).collect();
    if found.is_empty() && !named.is_empty() {
        return Finding::Ok(format!("no default key in ~/.ssh; the inventory names {}", named.join(", ")));
    }
    if found.is_empty() {
        return Finding::Advice("no default key in ~/.ssh; the agent or the inventory must name one".into());
    }
    Finding::Ok(found.join(", "))
}

/// Whether the scheduler can be asked here; wrong only where probes are to be started by it.
fn slurm(config: &Config) -> Finding {
    let wanted = config.transport.value == Transport::Slurm || config.slurm.value.is_some();
    let trouble = |why: String| if wanted { Finding::Wrong(why) } else { Finding::Advice(why) };
    let version = match ask("scontrol", &["--version"], VERSION_BYTES) {
        Said::Absent if wanted => return trouble("scontrol is not on the PATH of this machine".to_owned()),
        Said::Absent => return Finding::Ok("not on this machine; nodes are reached over SSH".to_owned()),
        Said::Failed(words) => return trouble(format!("its programs are here and do not work: {words}")),
        Said::Text(text) => clean(text.trim(), VERSION_BYTES as usize),
    };
    match listed() {
        Ok(nodes) => {
            let gone = nodes.iter().filter(|node| node.out()).count();
            Finding::Ok(format!("{version}: {}, {gone} out of service", out::counted(nodes.len(), "node", "nodes")))
        }
        Err(why) => trouble(format!("{version}: {why}")),
    }
}

fn open_files(config: &Config) -> Finding {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let limit = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .and_then(|line| line.split_whitespace().nth(3))
        .and_then(|word| word.parse::<usize>().ok());
    // A node takes a socket; a few more are for the database and the terminal.
    let needed = config.fan_out.value + 64;
    match limit {
        Some(limit) if limit < needed => Finding::Wrong(format!("limit {limit}, {needed} needed: ulimit -n {needed}")),
        Some(limit) => Finding::Ok(format!("limit {limit}, {needed} needed")),
        None => Finding::Ok("unlimited".into()),
    }
}

fn probe() -> Finding {
    let probe = work::embedded();
    let one = |build: &Build| {
        let (machine, megabytes) = (build.machine().unwrap_or("any machine"), build.size() as f64 / 1e6);
        format!("{machine} {megabytes:.1} MB, sha256 {}", &build.sha256()[..16])
    };
    Finding::Ok(probe.builds().map(one).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_the_inventory_names_are_files_or_told() {
        let dir = tempfile::tempdir().unwrap();
        let key = dir.path().join("key");
        std::fs::write(&key, "").unwrap();
        let node = |identity: Option<PathBuf>| Node { identity, ..Node::default() };
        assert_eq!(missing(&[node(None), node(Some(key.clone()))]), None);
        let why = missing(&[node(Some("/nokey".into())), node(Some(key)), node(Some("/nokey".into()))]);
        assert_eq!(why.as_deref(), Some("it names the key /nokey, which does not exist"));
    }
}

//! `muster nodes`: nodes of the inventory and when they were last seen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::Args;
use muster_fleet::sshconfig::{self, Given};
use muster_fleet::{Node, Phase, Settings};
use muster_playbook::report::rfc3339;
use muster_store::{Store, StoreError};
use muster_tui::stale::Stale;
use muster_wire::Outcome;
use serde::Serialize;

use crate::clock::now_ms;
use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS};
use crate::options::Pick;
use crate::{database, out, session};
use muster_run::{Summary, is_work};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  muster nodes\n  muster nodes -w @canary --json")]
pub struct Options {
    /// Which.
    #[command(flatten)]
    pub pick: Pick,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Row {
    node: String,
    host: String,
    /// Of the inventory, else of the SSH configuration, else 22.
    port: u16,
    groups: Vec<String>,
    labels: BTreeMap<String, String>,
    last_seen: Option<String>,
    /// When its newest result came; it may have been seen later without giving one.
    last_result: Option<String>,
    /// Whether that is older than `stale_after`.
    stale: bool,
    runs: u64,
    #[serde(skip)]
    said: String,
}

/// Runs that are looked into for a node without a result, newest first.
const RUNS: usize = 64;

/// Lists nodes.
pub fn run(options: &Options, config: &Config) -> Ended {
    let nodes = session::in_partition(session::nodes(config, &options.pick)?, config)?;
    let names: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let (seen, results) = match database::read(config) {
        Ok(store) => {
            let seen = store.nodes().code(IO)?.into_iter().map(|n| (n.name.clone(), n)).collect();
            (seen, results(&*store, names).code(IO)?)
        }
        Err(_) => (BTreeMap::new(), BTreeMap::new()),
    };
    let (old, ports) = (Stale::new(config.stale_after_ms(), now_ms()), Ports::of(config));
    let rows: Vec<Row> = nodes
        .into_iter()
        .map(|node| {
            let seen = seen.get(&node.name);
            let Last { answer, result } = results.get(&node.name).copied().unwrap_or_default();
            Row {
                last_seen: answer.map(rfc3339),
                last_result: result.map(rfc3339),
                stale: old.is(result),
                said: old.words(result).map_or_else(String::new, |words| format!(", {words}")),
                runs: seen.map_or(0, |s| s.runs),
                port: ports.port(&node),
                node: node.name,
                host: node.host,
                groups: node.groups,
                labels: node.labels,
            }
        })
        .collect();
    if options.json {
        out::list("muster.nodes", "nodes", &rows)?;
        return Ok(PASS);
    }
    let cells = |row: &Row| {
        let labels: Vec<String> = row.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let when = |at: &Option<String>| at.clone().unwrap_or_else(|| "never".into());
        let (seen, result) = (when(&row.last_seen), when(&row.last_result) + &row.said);
        let address = format!("{}:{}", row.host, row.port);
        vec![row.node.clone(), address, row.groups.join(","), labels.join(","), seen, result]
    };
    let rows: Vec<_> = rows.iter().map(cells).collect();
    out::line(&out::table(&["node", "address", "groups", "labels", "last seen", "last result"], &rows))?;
    Ok(PASS)
}

/// The SSH configuration, as far as it decides ports.
struct Ports(Option<sshconfig::Config>);

impl Ports {
    fn of(config: &Config) -> Self {
        // As with OpenSSH, the machine's file counts only where no other than the usual one was named.
        let usual =
            || Settings::default().ssh_config.into_iter().chain([PathBuf::from("/etc/ssh/ssh_config")]).collect();
        let files: Vec<PathBuf> = config.ssh_config.value.clone().map_or_else(usual, |file| vec![file]);
        Self(sshconfig::Config::load(&files).ok())
    }

    fn port(&self, node: &Node) -> u16 {
        let given = Given { user: node.user.as_deref(), port: (node.port != 0).then_some(node.port) };
        let told = || self.0.as_ref().and_then(|config| config.resolve(&node.host, given).port);
        given.port.or_else(told).unwrap_or(22)
    }
}

/// When a node last told something, milliseconds since 1970 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Last {
    /// When the probe on it last answered.
    answer: Option<u64>,
    /// When its newest result came.
    result: Option<u64>,
}

/// Whether a record shows that the probe, or the login to the node, answered: a node that was only tried was not seen.
fn answered(one: &Summary) -> bool {
    match &one.outcome {
        Outcome::NotRun(_) => false,
        // Begins with the node and what was being done when the link failed.
        Outcome::Failed(why) => match why.strip_prefix(&one.node).and_then(|why| why.strip_prefix(": ")) {
            Some(why) => {
                let (phase, _) = why.split_once(": ").unwrap_or((why, ""));
                let early = [Phase::Resolve, Phase::Jump, Phase::Connect, Phase::HostKey, Phase::Login, Phase::Start];
                !early.iter().any(|early| early.name() == phase)
            }
            None => is_work(&one.work),
        },
        _ => is_work(&one.work),
    }
}

/// When each of `names` last told something.
fn results(store: &dyn Store, mut names: BTreeSet<&str>) -> Result<BTreeMap<String, Last>, StoreError> {
    let mut found: BTreeMap<String, Last> = BTreeMap::new();
    for run in store.runs()?.into_iter().take(RUNS) {
        if names.is_empty() {
            break;
        }
        let told = |outcome: &Outcome| !matches!(outcome, Outcome::NotRun(_));
        for one in store.summaries(&run.id)?.into_iter().filter(|one| names.contains(one.node.as_str())) {
            let (answers, tells) = (answered(&one), is_work(&one.work) && told(&one.outcome));
            let last = found.entry(one.node).or_default();
            // None is less than any time.
            last.answer = last.answer.max(answers.then_some(one.at_ms));
            last.result = last.result.max(tells.then_some(one.at_ms));
        }
        names.retain(|name| found.get(*name).is_none_or(|last| last.result.is_none()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_run::LINK;
    use muster_run::{Record, Run, RunState};
    use muster_store::{Db, Options};
    use muster_wire::Profile;

    #[test]
    fn a_port_is_the_inventorys_then_the_ssh_configurations_then_the_usual_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        std::fs::write(&file, "Host web\n Port 2200\n").unwrap();
        let ports = Ports(sshconfig::Config::load(&[file]).ok());
        let port = |host: &str, port| ports.port(&Node { host: host.to_owned(), port, ..Node::default() });
        assert_eq!((port("web", 2222), port("web", 0), port("db", 0)), (2222, 2200, 22));
        assert_eq!(Ports(None).port(&Node::default()), 22);
    }

    #[test]
    fn the_newest_result_of_a_node_is_found_behind_runs_that_only_saw_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Db::open(dir.path(), &Options::default()).unwrap();
        let failed = || Outcome::Failed("n1: connect: no route to host".to_owned());
        for (at_ms, id, work, outcome) in [
            (1_000, "r1", "disk", Outcome::Done),
            (2_000, "r2", LINK, failed()),
            (3_000, "r3", "disk", Outcome::NotRun("lost".to_owned())),
        ] {
            let (nodes, plan) = (vec!["n1".to_owned()], vec!["disk".to_owned()]);
            let (playbook, profile, state) = ("cbd".to_owned(), Profile::Smoke, RunState::Running);
            let run =
                Run { id: id.to_owned(), playbook, profile, started_ms: at_ms, ended_ms: None, nodes, plan, state };
            store.begin(&run).unwrap();
            let record = Record {
                run: id.to_owned(),
                node: "n1".to_owned(),
                work: work.to_owned(),
                outcome,
                at_ms,
                elapsed_ns: 1,
                series: Vec::new(),
                facts: Vec::new(),
            };
            store.append_many(&[record]).unwrap();
        }
        assert_eq!(store.nodes().unwrap()[0].last_ms, 3_000, "it was seen since");
        let found = results(&store, BTreeSet::from(["n1", "n2"])).unwrap();
        let last = Last { answer: Some(1_000), result: Some(1_000) };
        assert_eq!(found, BTreeMap::from([("n1".to_owned(), last)]));
    }

    #[test]
    fn a_node_that_was_never_reached_was_never_seen() {
        let seen = |work: &str, outcome: Outcome| {
            let (node, work) = ("n1".to_owned(), work.to_owned());
            answered(&Summary { node, work, outcome, at_ms: 1, elapsed_ns: 1, series: 0, values: 0, facts: 0 })
        };
        let failed = |why: &str| Outcome::Failed(why.to_owned());
        for why in [
            "n1: connect: 10.0.0.1:22 refused the connection",
            "n1: start: the node is not, or no longer, in the Slurm job; it said 'srun: error'",
            "n1: resolve: no address",
        ] {
            assert!(!seen(LINK, failed(why)) && !seen("collective", failed(why)), "{why}");
        }
        assert!(!seen("disk", Outcome::NotRun("lost".to_owned())) && !seen("console/dropped", Outcome::Done));
        assert!(seen(LINK, failed("n1: run: no frame for 15 s during net-loopback")));
        assert!(seen("disk", Outcome::Done) && seen("disk", failed("no space left")));
    }
}

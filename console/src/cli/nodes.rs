//! `muster nodes`: nodes of the inventory and when they were last seen.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
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
use muster_run::is_work;

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
    let nodes = session::nodes(config, &options.pick)?;
    let names: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let (seen, results) = match database::read(config) {
        Ok(store) => {
            let seen = store.nodes().code(IO)?.into_iter().map(|n| (n.name.clone(), n)).collect();
            (seen, results(&*store, names).code(IO)?)
        }
        Err(_) => (BTreeMap::new(), BTreeMap::new()),
    };
    let old = Stale::new(config.stale_after_ms(), now_ms());
    let rows: Vec<Row> = nodes
        .into_iter()
        .map(|node| {
            let (seen, result) = (seen.get(&node.name), results.get(&node.name).copied());
            Row {
                last_seen: seen.map(|s| rfc3339(s.last_ms)),
                last_result: result.map(rfc3339),
                stale: old.is(result),
                said: old.words(result).map_or_else(String::new, |words| format!(", {words}")),
                runs: seen.map_or(0, |s| s.runs),
                node: node.name,
                host: node.host,
                port: node.port,
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

/// When the newest result of each of `names` came.
fn results(store: &dyn Store, mut names: BTreeSet<&str>) -> Result<BTreeMap<String, u64>, StoreError> {
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for run in store.runs()?.into_iter().take(RUNS) {
        if names.is_empty() {
            break;
        }
        let told = |outcome: &Outcome| !matches!(outcome, Outcome::NotRun(_));
        for one in store.summaries(&run.id)?.into_iter().filter(|one| is_work(&one.work) && told(&one.outcome)) {
            if names.contains(one.node.as_str()) {
                let newest = found.entry(one.node).or_default();
                *newest = one.at_ms.max(*newest);
            }
        }
        names.retain(|name| !found.contains_key(*name));
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
    fn the_newest_result_of_a_node_is_found_behind_runs_that_only_saw_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Db::open(dir.path(), &Options::default()).unwrap();
        let failed = || Outcome::Failed("no route to host".to_owned());
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
        assert_eq!(found, BTreeMap::from([("n1".to_owned(), 1_000)]));
    }
}

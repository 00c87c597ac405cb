//! `muster nodes`: nodes of the inventory and when they were last seen.

use std::collections::BTreeMap;

use clap::Args;
use muster_playbook::report::rfc3339;
use serde::Serialize;

use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS};
use crate::options::Pick;
use crate::{database, out, session};

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
    runs: u64,
}

/// Lists nodes.
pub fn run(options: &Options, config: &Config) -> Ended {
    let nodes = session::nodes(config, &options.pick)?;
    let seen: BTreeMap<String, _> = match database::read(config) {
        Ok(store) => store.nodes().code(IO)?.into_iter().map(|n| (n.name.clone(), n)).collect(),
        Err(_) => BTreeMap::new(),
    };
    let rows: Vec<Row> = nodes
        .into_iter()
        .map(|node| {
            let seen = seen.get(&node.name);
            Row {
                last_seen: seen.map(|s| rfc3339(s.last_ms)),
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
        let last = row.last_seen.clone().unwrap_or_else(|| "never".into());
        vec![row.node.clone(), format!("{}:{}", row.host, row.port), row.groups.join(","), labels.join(","), last]
    };
    let rows: Vec<_> = rows.iter().map(cells).collect();
    out::line(&out::table(&["node", "address", "groups", "labels", "last seen"], &rows))?;
    Ok(PASS)
}

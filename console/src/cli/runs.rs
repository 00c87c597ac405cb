//! `muster runs`: what was measured, newest first.

use std::collections::BTreeSet;

use clap::Args;
use muster_fleet::hostlist;
use muster_playbook::report::rfc3339;
use muster_run::Run;

use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS, Problem};
use crate::options::Pick;
use crate::{database, out};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster runs --limit 5
  muster runs -w node007                 those in which node007 took part
  muster runs --json | jq -r '.runs[0].id'")]
pub struct Options {
    /// Only runs in which one of these nodes took part.
    #[command(flatten)]
    pub pick: Pick,
    /// At most this many.
    #[arg(long, default_value_t = 20)]
    pub limit: usize,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Lists runs.
pub fn run(options: &Options, config: &Config) -> Ended {
    let store = database::read(config)?;
    let all = store.runs().code(IO)?;
    let empty = all.is_empty();
    let runs: Vec<Run> = picked(all, &options.pick, config)?.into_iter().take(options.limit).collect();
    if options.json {
        out::list("muster.runs", "runs", &runs)?;
        return Ok(PASS);
    }
    if runs.is_empty() {
        out::line(if empty {
            "no runs yet; `muster run cbd-light` makes one"
        } else {
            "none of these nodes took part in a run"
        })?;
        return Ok(PASS);
    }
    let rows: Vec<Vec<String>> = runs
        .iter()
        .map(|run| {
            let ended = run.ended_ms.map_or("-".to_owned(), rfc3339);
            let nodes = hostlist::fold(run.nodes.iter().map(String::as_str));
            let state = run.state.name().to_owned();
            vec![run.id.clone(), run.playbook.clone(), state, rfc3339(run.started_ms), ended, nodes]
        })
        .collect();
    out::line(&out::table(&["run", "playbook", "state", "started", "ended", "nodes"], &rows))?;
    Ok(PASS)
}

/// Those in which a node that is meant took part. Names and groups may be of any run or of the inventory.
fn picked(mut runs: Vec<Run>, pick: &Pick, config: &Config) -> Result<Vec<Run>, Problem> {
    if pick.given() {
        let known: Vec<&str> = runs.iter().flat_map(|run| run.nodes.iter().map(String::as_str)).collect();
        let picked: BTreeSet<String> = pick.of_names(known, "any run", config)?.into_iter().collect();
        runs.retain(|run| run.nodes.iter().any(|node| picked.contains(node)));
    }
    Ok(runs)
}

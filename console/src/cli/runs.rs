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
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Lists runs.
pub fn run(options: &Options, config: &Config) -> Ended {
    let store = database::read(config)?;
    let all = store.runs().code(IO)?;
    let stored = all.len();
    let mut runs = picked(all, &options.pick, config)?;
    let meant = runs.len();
    runs.truncate(options.limit);
    if options.json {
        out::list("muster.runs", "runs", &runs)?;
        return Ok(PASS);
    }
    if runs.is_empty() {
        out::line(none(stored, meant))?;
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

/// Why no run is listed, of those that are stored and those that are meant.
const fn none(stored: usize, meant: usize) -> &'static str {
    match (stored, meant) {
        (0, _) => "no runs yet; `muster run cbd-light` makes one",
        (_, 0) => "none of these nodes took part in a run",
        _ => "--limit 0 lists no run; leave it out to see the newest 20",
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_says_which_of_three_reasons_it_has() {
        assert!(none(0, 0).starts_with("no runs yet"));
        assert!(none(3, 0).starts_with("none of these nodes"));
        assert!(none(3, 3).starts_with("--limit 0"));
    }
}

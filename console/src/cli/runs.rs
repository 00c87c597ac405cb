//! `muster runs`: what was measured, newest first.

use clap::Args;
use muster_fleet::hostlist;
use muster_playbook::report::rfc3339;

use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS};
use crate::{out, session};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  muster runs --limit 5")]
pub struct Options {
    /// At most this many.
    #[arg(long, default_value_t = 20)]
    pub limit: usize,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Lists runs.
pub fn run(options: &Options, config: &Config) -> Ended {
    let store = session::read_store(config)?;
    let runs: Vec<_> = store.runs().code(IO)?.into_iter().take(options.limit).collect();
    if options.json {
        out::json(&runs)?;
        return Ok(PASS);
    }
    if runs.is_empty() {
        out::line("no runs yet; `muster run cbd-light` makes one")?;
        return Ok(PASS);
    }
    let rows: Vec<Vec<String>> = runs
        .iter()
        .map(|run| {
            let ended = run.ended_ms.map_or("-".to_owned(), rfc3339);
            let nodes = hostlist::fold(run.nodes.iter().map(String::as_str));
            let state = format!("{:?}", run.state).to_lowercase();
            vec![run.id.clone(), run.playbook.clone(), state, rfc3339(run.started_ms), ended, nodes]
        })
        .collect();
    out::line(&out::table(&["run", "playbook", "state", "started", "ended", "nodes"], &rows))?;
    Ok(PASS)
}

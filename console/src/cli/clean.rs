//! `muster clean`: remove probes from nodes.

use std::io::IsTerminal;

use clap::Args;
use muster_fleet::hostlist;

use crate::config::Config;
use crate::exit::{Ended, PASS, Problem, UNDECIDED, USAGE};
use crate::options::{Common, Pick};
use crate::{out, session};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  muster clean -w 'node[001-128]' --yes")]
pub struct Options {
    /// Which.
    #[command(flatten)]
    pub pick: Pick,
}

/// Shows the list, asks, removes.
pub async fn run(options: &Options, config: &Config, common: &Common) -> Ended {
    let refuse = |why: &str| Problem { code: USAGE, error: anyhow::anyhow!("{why}") };
    if common.read_only {
        return Err(refuse("--read-only forbids removing probes"));
    }
    let nodes = session::nodes_for_work(config, &options.pick)?;
    let names = hostlist::fold(nodes.iter().map(|n| n.name.as_str()));
    if !common.yes {
        if !std::io::stdin().is_terminal() {
            return Err(refuse("removing probes asks first; give --yes in scripts"));
        }
        let question = format!("remove muster's probes from {}: {names}?", out::counted(nodes.len(), "node", "nodes"));
        if !out::confirmed(&question) {
            return Ok(PASS);
        }
    }
    let mut worst = PASS;
    let settings = session::settings_for(config, &nodes).await?;
    for (node, result) in muster_fleet::clean(&nodes, settings).await {
        match result {
            Ok(cleaned) => {
                let removed = if cleaned.removed.is_empty() { "nothing".into() } else { cleaned.removed.join(", ") };
                out::line(&format!("{node}: removed {removed}"))?;
                for why in cleaned.kept {
                    out::note(format_args!("{node}: kept {why}"));
                    worst = UNDECIDED;
                }
            }
            Err(failure) => {
                out::note(failure.message);
                worst = UNDECIDED;
            }
        }
    }
    Ok(worst)
}

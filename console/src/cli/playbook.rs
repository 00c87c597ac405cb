//! `muster playbook`: list, show or check playbooks.

use std::path::PathBuf;

use clap::Subcommand;
use muster_fleet::{Build, Transport};
use muster_playbook::{Playbook, PlaybookError, builtin, plan};
use muster_wire::{Profile, Unit};
use serde::Serialize;

use crate::config::{Config, Source};
use crate::exit::{CONFIG, Code, Ended, IO, PASS};
use crate::options::Pick;
use crate::{out, session, work};

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// The playbooks that come with muster.
    #[command(after_help = "Examples:\n  muster playbook list\n  muster playbook list --json")]
    List {
        /// JSON on standard output.
        #[arg(long)]
        json: bool,
    },
    /// The plan of a playbook: steps, work, limits.
    #[command(after_help = "Examples:\n  muster playbook show cbd\n  muster playbook show ./ours.toml -w @rack7")]
    Show {
        /// Name, or a file.
        playbook: String,
        /// For these nodes; the inventory when there is one.
        #[command(flatten)]
        pick: Pick,
    },
    /// Parse playbook files and say what is wrong with them.
    #[command(after_help = "Example:\n  muster playbook check ours/*.toml")]
    Check {
        /// Files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// Does it.
pub fn run(action: &Action, config: &Config) -> Ended {
    match action {
        Action::List { json } => list(*json),
        Action::Show { playbook, pick } => {
            let playbook = session::playbook(playbook)?;
            // Nobody has to have an inventory to read a playbook.
            let none = config.inventory.source == Source::Default && !config.inventory.value.exists();
            let nodes: Option<Vec<String>> = match session::nodes_for_work(config, pick) {
                Ok(nodes) => Some(nodes.into_iter().map(|n| n.name).collect()),
                Err(problem) if !pick.names() && (none || problem.code == CONFIG) => None,
                Err(problem) => return Err(problem),
            };
            let names = nodes.clone().unwrap_or_else(|| vec!["any-node".to_owned()]);
            out::line(plan(&playbook, &names).to_string().trim_end())?;
            if let Some(nodes) = nodes {
                out::line(&format!("\n{}", delivery(nodes.len(), config)))?;
            }
            Ok(PASS)
        }
        Action::Check { files } => check(files),
    }
}

/// How the probe gets to so many nodes, and how long that takes at least.
pub fn delivery(nodes: usize, config: &Config) -> String {
    let probe = work::embedded();
    let (transport, slurm) = session::ways(config);
    let once = Unit::Bytes.show(probe.main().size() as f64);
    let all = Unit::Bytes.show(probe.builds().map(Build::size).sum::<usize>() as f64);
    match (transport, slurm.shared) {
        (Transport::Slurm, Some(folder)) => format!("probe: {all} once, into {folder}, which all nodes share"),
        (Transport::Slurm, None) => {
            format!("probe: {once} once to Slurm's sbcast, which passes it on to all nodes, unless they all have it")
        }
        _ => over_ssh(nodes, probe.main().sent_size(), config.fan_out.value),
    }
}

/// A node that has the probe of an earlier run is sent nothing.
fn over_ssh(nodes: usize, sent: usize, at_once: usize) -> String {
    let all = (nodes * sent) as f64;
    let (each, sum) = (Unit::Bytes.show(sent as f64), Unit::Bytes.show(all));
    let at = |bits: f64| Unit::Seconds.show(all * 8.0 / bits);
    format!(
        "probe: {each} to each of {} that lack it, over SSH, {at_once} at a time; {sum} in all, at least {} at 1 Gbit/s or {} at 10",
        out::counted(nodes, "node", "nodes"),
        at(1e9),
        at(1e10)
    )
}

#[derive(Serialize)]
struct Row {
    name: String,
    profile: Profile,
    title: String,
}

fn list(json: bool) -> Ended {
    let row = |(name, text): &(&str, &str)| {
        let Playbook { name, profile, title, .. } = Playbook::parse(text, name)?;
        Ok(Row { name, profile, title })
    };
    let playbooks: Vec<Row> = builtin().iter().map(row).collect::<Result<_, PlaybookError>>().code(CONFIG)?;
    if json {
        out::list("muster.playbooks", "playbooks", &playbooks)?;
        return Ok(PASS);
    }
    let cells = |Row { name, profile, title }: Row| vec![name, profile.to_string(), title];
    let rows: Vec<_> = playbooks.into_iter().map(cells).collect();
    out::line(&out::table(&["playbook", "profile", "what it does"], &rows))?;
    Ok(PASS)
}

fn check(files: &[PathBuf]) -> Ended {
    let mut worst = PASS;
    for file in files {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|why| anyhow::anyhow!("{name}: {why}")).code(IO)?;
        match Playbook::parse(&text, &name) {
            Ok(playbook) => {
                out::line(&format!("{name}: ok, {}", out::counted(playbook.steps.len(), "step", "steps")))?;
            }
            Err(why) => {
                out::note(why);
                worst = CONFIG;
            }
        }
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_is_said_with_what_it_sends_and_how_long_a_link_takes() {
        assert_eq!(
            over_ssh(1_000, 2_500_000, 64),
            "probe: 2.50 MB to each of 1000 nodes that lack it, over SSH, 64 at a time; 2.50 GB in all, at least 20.0 s at \
             1 Gbit/s or 2.00 s at 10"
        );
    }
}

//! `muster playbook`: list, show or check playbooks.

use std::path::PathBuf;

use clap::Subcommand;
use muster_playbook::{Playbook, builtin, plan};

use super::Pick;
use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, PASS};
use crate::{out, session};

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// The playbooks that come with muster.
    List,
    /// The plan of a playbook: phases, work, limits.
    Show {
        /// Name, or a file.
        playbook: String,
        /// For these nodes; the inventory when there is one.
        #[command(flatten)]
        pick: Pick,
    },
    /// Parse playbook files and say what is wrong with them.
    Check {
        /// Files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// Does it.
pub fn run(action: &Action, config: &Config) -> Ended {
    match action {
        Action::List => list(),
        Action::Show { playbook, pick } => {
            let playbook = session::playbook(playbook)?;
            let nodes = match session::nodes(config, pick) {
                Ok(nodes) => nodes.into_iter().map(|n| n.name).collect(),
                Err(problem) if pick.include.is_empty() && problem.code == CONFIG => vec!["any-node".to_owned()],
                Err(problem) => return Err(problem),
            };
            out::line(plan(&playbook, &nodes).to_string().trim_end())?;
            Ok(PASS)
        }
        Action::Check { files } => check(files),
    }
}

fn list() -> Ended {
    let mut rows = Vec::new();
    for (name, text) in builtin() {
        let playbook = Playbook::parse(text, name).code(CONFIG)?;
        rows.push(vec![playbook.name, playbook.profile.to_string(), playbook.title]);
    }
    out::line(&out::table(&["playbook", "profile", "what it does"], &rows))?;
    Ok(PASS)
}

fn check(files: &[PathBuf]) -> Ended {
    let mut worst = PASS;
    for file in files {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|why| anyhow::anyhow!("{name}: {why}")).code(CONFIG)?;
        match Playbook::parse(&text, &name) {
            Ok(playbook) => out::line(&format!("{name}: ok, {} steps", playbook.steps.len()))?,
            Err(why) => {
                eprintln!("{why}");
                worst = CONFIG;
            }
        }
    }
    Ok(worst)
}

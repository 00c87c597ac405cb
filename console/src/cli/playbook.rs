//! `muster playbook`: list, show or check playbooks.

use std::path::PathBuf;

use clap::Subcommand;
use muster_playbook::{Playbook, PlaybookError, builtin, plan};
use muster_wire::Profile;
use serde::Serialize;

use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, IO, PASS};
use crate::options::Pick;
use crate::{out, session};

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
    /// The plan of a playbook: phases, work, limits.
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
            let nodes = match session::nodes(config, pick) {
                Ok(nodes) => nodes.into_iter().map(|n| n.name).collect(),
                Err(problem) if !pick.names() && problem.code == CONFIG => vec!["any-node".to_owned()],
                Err(problem) => return Err(problem),
            };
            out::line(plan(&playbook, &nodes).to_string().trim_end())?;
            Ok(PASS)
        }
        Action::Check { files } => check(files),
    }
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
                eprintln!("{why}");
                worst = CONFIG;
            }
        }
    }
    Ok(worst)
}

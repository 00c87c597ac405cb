//! `muster run`: a playbook without a screen.

use clap::{Args, ValueEnum};
use muster_playbook::report::FailOn;

use super::Pick;
use crate::config::Config;
use crate::exit::{Ended, PASS};
use crate::{engine, out, session};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Playbook name, or a file.
    pub playbook: String,
    /// Which nodes.
    #[command(flatten)]
    pub pick: Pick,
    /// What the run says.
    #[command(flatten)]
    pub say: Say,
    /// Start anew instead of taking up an unfinished run.
    #[arg(long)]
    pub new: bool,
    /// Show the plan and do nothing.
    #[arg(long)]
    pub dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  muster run cbd -w 'node[001-128]'
  muster run cbd-light -w @canary --json --fail-on warn
  muster run build-out --dry-run";

/// What a run says, and which findings are failures.
#[derive(Args, Clone, Debug)]
pub struct Say {
    /// One JSON document on standard output.
    #[arg(long)]
    pub json: bool,
    /// No progress on standard error.
    #[arg(short, long)]
    pub quiet: bool,
    /// The mildest finding that exits non-zero.
    #[arg(long, value_enum, default_value_t = Line::Warn)]
    pub fail_on: Line,
}

/// The mildest finding that exits non-zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Line {
    /// Warnings, failures and undecided nodes.
    Warn,
    /// Failures only.
    Fail,
    /// Failures and undecided nodes.
    Unknown,
}

impl From<Line> for FailOn {
    fn from(line: Line) -> Self {
        match line {
            Line::Warn => Self::Warn,
            Line::Fail => Self::Fail,
            Line::Unknown => Self::Unknown,
        }
    }
}

/// Runs it.
pub async fn run(options: &Options, config: &Config) -> Ended {
    let playbook = session::playbook(&options.playbook)?;
    let nodes = session::nodes(config, &options.pick)?;
    if options.dry_run {
        let names: Vec<String> = nodes.into_iter().map(|n| n.name).collect();
        out::line(muster_playbook::plan(&playbook, &names).to_string().trim_end())?;
        return Ok(PASS);
    }
    let mut store = session::write_store(config)?;
    let settings = session::settings(config)?;
    let job = session::Job {
        playbook,
        nodes,
        settings,
        probe: engine::embedded(),
        fabric: engine::Fabric::default(),
        fresh: options.new,
    };
    let done = session::headless(job, &mut store, config, &options.say).await?;
    session::finish(&done, &options.say)
}

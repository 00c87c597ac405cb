//! `muster export`: a run for a ticket.

use clap::{Args, ValueEnum};
use muster_playbook::report;

use crate::config::Config;
use crate::exit::{Ended, PASS};
use crate::{out, session};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  muster export --json > run.json\n  muster export --format markdown")]
pub struct Options {
    /// Run id; the newest when left out.
    pub run: Option<String>,
    /// Form of the output.
    #[arg(long, value_enum, default_value_t = Format::Json)]
    pub format: Format,
    /// The same as `--format json`.
    #[arg(long)]
    pub json: bool,
}

/// Form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The `muster.run` document.
    Json,
    /// A summary to paste into a ticket.
    Markdown,
    /// One row per verdict.
    Csv,
}

/// Prints the run.
pub fn run(options: &Options, config: &Config) -> Ended {
    let store = session::read_store(config)?;
    let report = session::report_of(&*store, options.run.as_deref(), config)?;
    match options.format {
        Format::Markdown if !options.json => out::line(report::markdown(&report).trim_end())?,
        Format::Csv if !options.json => out::line(report::csv(&report).trim_end())?,
        _ => out::json(&report)?,
    }
    Ok(PASS)
}

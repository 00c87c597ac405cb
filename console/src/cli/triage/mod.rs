//! `muster triage`: why a job failed, hangs or is slow, and what to do now.

mod bundle;
mod tell;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use muster_analysis::triage::rules::Rules;
use muster_analysis::triage::{Category, SURE, diagnose};

use crate::cli::watch::long;
use crate::config::Config;
use crate::exit::{Code, Ended, FAIL, IO, PASS, Problem, UNDECIDED, USAGE};
use crate::options::Pick;
use crate::out;
use crate::patience::Patience;

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster triage --from job-4711/
  muster triage --from job-4711.tar.gz --json > verdict.json
  muster triage --from job-4711/ --since 2h -w 'n[001-064]'

A bundle is a folder, or a tar (also .gz) of one, with any of: job.json (who runs where), logs/rank_N.log, dmesg/NODE.log, \
ras/pollK.json or .txt (two polls at least 10 s apart), fr/* (flight-recorder dumps), inspector/*.jsonl. What is missing is said, and \
why it matters. docs/TRIAGE.md tells the procedure, the categories and what makes each source exist.

Exit codes: 0 nothing is wrong with machines or program, 2 a suspect with a confidence of at least 0.8, 3 undecided")]
pub struct Options {
    /// The bundle: a folder, or a tar or tar.gz of one.
    #[arg(long, value_name = "DIR|FILE")]
    pub from: PathBuf,
    /// Only lines from this long before the newest one, such as 2h or 30m [default: all].
    #[arg(long, value_name = "TIME", value_parser = long)]
    pub since: Option<Duration>,
    /// Only logs of these nodes.
    #[command(flatten)]
    pub pick: Pick,
    /// JSON on standard output (assets/schemas/muster.triage.json).
    #[arg(long)]
    pub json: bool,
}

/// Reads the bundle, diagnoses, tells.
pub fn run(options: &Options, config: &Config) -> Ended {
    let rules = Rules::built_in().code(IO)?;
    let waiting = Patience::new("reading the bundle");
    let mut case = bundle::read(&options.from, &rules)?;
    drop(waiting);
    if case.is_empty() {
        let error = anyhow!("{}: no part of a bundle in it; see muster triage --help", options.from.display());
        return Err(Problem { code: USAGE, error });
    }
    case.since_s = options.since.map(|since| since.as_secs_f64());
    if options.pick.given() {
        let nodes = case.nodes();
        let chosen = options.pick.of_names(nodes.iter().map(String::as_str), "the bundle", config)?;
        case.only_logs_of(&chosen);
    }
    let report = diagnose(&case, &rules);
    if options.json {
        out::json(&report)?
    } else {
        tell::report(&report)?
    }
    let sure = report.suspects.iter().any(|suspect| suspect.confidence >= SURE);
    Ok(match report.category {
        Category::None => PASS,
        Category::Undecided => UNDECIDED,
        _ if sure => FAIL,
        _ => UNDECIDED,
    })
}

//! `muster triage`: why a job failed, hangs or is slow, and what to do now.

mod account;
mod show;
mod tell;
mod ticket;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use muster_analysis::triage::case::Case;
use muster_analysis::triage::overview::overview;
use muster_analysis::triage::rules::Rules;
use muster_analysis::triage::{Category, SURE};

use crate::cases::{Marks, marks_of};
use crate::cli::watch::long;
use crate::config::Config;
use crate::exit::{Code, Ended, FAIL, IO, PASS, Problem, UNDECIDED, USAGE};
use crate::options::{Common, Pick};
use crate::out;
use crate::patience::Patience;
use crate::redact::Redact;
use crate::work::bundle;

/// Options.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  muster triage --from job-4711/
  muster triage --from job-4711.tar.gz --json > verdict.json
  muster triage --from job-4711/ --since 2h -w 'n[001-064]'
  muster triage --from job-4711/ --show                  the same on the screen, with time line and ranks
  muster triage --from job-4711/ --ticket ticket.md      names, addresses and serial numbers replaced
  muster triage account --from job-4711/                 where the job's time went

A bundle is a folder, or a tar (also .gz) of one, with any of: job.json (who runs where), logs/rank_N.log, dmesg/NODE.log, \
ras/pollK.json or .txt (two polls at least 10 s apart), fr/* (flight-recorder dumps), inspector/*.jsonl. What is missing is said, and \
why it matters. Suspects that a person marked as wrong on the screen are kept in a file beside the bundle (job-4711.triage.json) and \
passed over. docs/TRIAGE.md tells the procedure, the categories and what makes each source exist.

Exit codes: 0 nothing is wrong with machines or program, 2 a suspect with a confidence of at least 0.8, 3 undecided"
)]
pub struct Options {
    /// The bundle: a folder, or a tar or tar.gz of one.
    #[arg(long, value_name = "DIR|FILE")]
    pub from: Option<PathBuf>,
    /// Only lines from this long before the newest one, such as 2h or 30m [default: all].
    #[arg(long, value_name = "TIME", value_parser = long)]
    pub since: Option<Duration>,
    /// Only logs of these nodes.
    #[command(flatten)]
    pub pick: Pick,
    /// JSON on standard output (assets/schemas/muster.triage.json).
    #[arg(long)]
    pub json: bool,
    /// Open the console on it: verdict, suspects, time line, ranks by communicators, evidence, steps.
    #[arg(long, conflicts_with_all = ["json", "ticket"])]
    pub show: bool,
    /// Write the verdict into this file for a ticket: Markdown (.md), JSON (.json) or a row a suspect (.csv).
    #[arg(long, value_name = "FILE")]
    pub ticket: Option<PathBuf>,
    /// What to replace by pseudonyms in the ticket [default: names,addresses,serials].
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',', requires = "ticket")]
    pub redact: Vec<Redact>,
    /// Something else than a verdict.
    #[command(subcommand)]
    pub other: Option<Other>,
}

/// What else can be said of a job.
#[derive(Debug, Subcommand)]
pub enum Other {
    /// Say where a job's time went: slow steps, pauses, restarts, steps done again.
    Account(account::Options),
}

/// Reads the bundle, diagnoses, tells.
pub async fn run(options: &Options, config: &Config, common: &Common) -> Ended {
    if let Some(Other::Account(options)) = &options.other {
        return account::run(options);
    }
    let Some(from) = &options.from else {
        let error = anyhow!("say what to look at: --from DIR, or a tar of one");
        return Err(Problem { code: USAGE, error });
    };
    if options.show {
        return show::run(from, options, config, common).await;
    }
    if let Some(file) = &options.ticket {
        ticket::check(file)?;
    }
    let rules = Rules::built_in().code(IO)?;
    let waiting = Patience::new("reading the bundle");
    let mut case = bundle::read(from, &rules, &|_, _| true)?;
    drop(waiting);
    prepare(&mut case, options.since, &options.pick, config)?;
    let marks = Marks::read(&marks_of(from)).unwrap_or_else(|why| {
        eprintln!("marks of this case are not used: {why:#}");
        Marks::default()
    });
    let overview = overview(&case, &rules, &marks.wrong);
    let report = &overview.report;
    if options.json {
        out::json(report)?;
    } else if options.ticket.is_none() {
        tell::report(report)?;
    }
    if let Some(file) = &options.ticket {
        ticket::write(file, report, &overview.nodes, &options.redact)?;
        eprintln!("written to {}", file.display());
    }
    let sure = report.suspects.iter().any(|suspect| suspect.confidence >= SURE);
    Ok(match report.category {
        Category::None => PASS,
        Category::Undecided => UNDECIDED,
        _ if sure => FAIL,
        _ => UNDECIDED,
    })
}

/// Leaves out what is not to be looked at.
///
/// # Errors
/// When nodes are named that the case does not have.
fn prepare(case: &mut Case, since: Option<Duration>, pick: &Pick, config: &Config) -> Result<(), Problem> {
    case.since_s = since.map(|since| since.as_secs_f64());
    if pick.given() {
        let nodes = case.nodes();
        let chosen = pick.of_names(nodes.iter().map(String::as_str), "the bundle", config)?;
        case.only_logs_of(&chosen);
    }
    Ok(())
}

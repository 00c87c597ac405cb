//! `muster triage`: why a job failed, hangs or is slow, and what to do now.

mod account;
pub(crate) mod live;
mod offline;
mod show;
mod tell;
mod ticket;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use muster_logs::Category;
use muster_logs::Rules;
use muster_triage::SURE;
use muster_triage::case::Case;
use muster_triage::marks::Marks;
use muster_triage::overview::{Overview, overview};

use crate::cases::{self, marks_of};
use crate::cli::watch::long;
use crate::config::Config;
use crate::exit::{Code, Ended, FAIL, IO, PASS, Problem, UNDECIDED};
use crate::options::{Common, Pick};
use crate::out;
use crate::patience::Patience;
use crate::redact::Redact;
use crate::work::bundle;

pub(crate) use show::played;

/// Options.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  muster triage --job 4711
  muster triage -w 'n[001-064]' --match train.py --save job-4711/
  muster triage -w @gpu --logs '/scratch/4711/rank_*.log' --dumps /scratch/4711
  muster triage --from job-4711/
  muster triage --from job-4711.tar.gz --json > verdict.json
  muster triage --from job-4711/ --show                  the same on the screen, with time line and ranks
  muster triage --from job-4711/ --ticket ticket.md      names, addresses and serial numbers replaced
  muster triage account --from job-4711/                 where the job's time went
  muster triage offline --job 4711                       its nodes tested without it, once it has left them

Without --from, the nodes are asked, read-only: processes of the job (those of the Slurm job, those whose command line holds --match, \
or all that have a rank), their output, the kernel log, NCCL's RAS twice at least 10 s apart on at most 8 nodes, flight-recorder dumps, \
Inspector's files, and what health checks need. RAS is not asked of a job younger than a minute, and not at all with --no-ras. --ask-for-dumps makes the processes \
write dumps first. Nodes that do not answer are evidence. --save keeps it all as a bundle.

A bundle is a folder, or a tar (also .gz) of one, with any of: job.json (who runs where), logs/rank_N.log, dmesg/NODE.log, \
ras/pollK.json or .txt (two polls at least 10 s apart), fr/* (flight-recorder dumps), inspector/*.jsonl, processes/NODE.json, facts/NODE.json (for health checks), watch.json (of muster watch --json). What is missing \
is said, and why it matters. Suspects that a person marked as wrong on the screen are kept in a file beside the bundle \
(job-4711.triage.json) and passed over. docs/TRIAGE.md tells the procedure, the categories and what makes each source exist.

Exit codes: 0 nothing is wrong with machines or program, 2 a suspect with a confidence of at least 0.8, 3 undecided; 64 usage, \
74 a file or folder, 130 interrupted"
)]
pub struct Options {
    /// A bundle to read instead of asking nodes: a folder, or a tar or tar.gz of one.
    #[arg(long, value_name = "DIR|FILE")]
    pub from: Option<PathBuf>,
    /// How far back: of a bundle, only lines from this long before the newest one [default: all]; of nodes, kernel lines of the last so
    /// long [default: 1h].
    #[arg(long, value_name = "TIME", value_parser = long)]
    pub since: Option<Duration>,
    /// Which nodes are asked; of a bundle, whose logs are read.
    #[command(flatten)]
    pub pick: Pick,
    /// Processes whose command line holds this text, instead of those that have a rank.
    #[arg(long = "match", value_name = "TEXT", conflicts_with = "from")]
    pub pattern: Option<String>,
    /// Logs of ranks, beside those that processes have open; * in any name of the path, as /job/logs/*/attempt_*/*/stderr.log.
    #[arg(long, value_name = "PATTERN", conflicts_with = "from", value_parser = pattern)]
    pub logs: Option<String>,
    /// Folder of flight-recorder dumps on the nodes, beside those that the processes name.
    #[arg(long, value_name = "DIR", conflicts_with = "from", value_parser = folder)]
    pub dumps: Option<String>,
    /// What muster watch --json said of these nodes while the job ran: its alerts are evidence. A bundle has it as watch.json.
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub alerts: Option<PathBuf>,
    /// Do not ask NCCL's RAS.
    #[arg(long, conflicts_with = "from")]
    pub no_ras: bool,
    /// Ask the processes for flight-recorder dumps first: by PyTorch's pipe where the job has one, by SIGUSR1 for muster's train-ddp.
    #[arg(long, conflicts_with = "from")]
    pub ask_for_dumps: bool,
    /// Keep what was collected as a bundle in this folder, which must be empty or not be there. Without it nothing is kept, nor are
    /// marks that are made with --show.
    #[arg(long, value_name = "DIR", conflicts_with = "from")]
    pub save: Option<PathBuf>,
    /// JSON on standard output (assets/schemas/muster.triage.json).
    #[arg(long)]
    pub json: bool,
    /// Open the console on it: verdict, suspects, time line, ranks by communicators, evidence, steps.
    #[arg(long, conflicts_with_all = ["json", "ticket"])]
    pub show: bool,
    /// Write the verdict into this file for a ticket: Markdown (.md), a page for a browser (.html), JSON (.json) or a row a suspect (.csv).
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
    /// Test the nodes of a job without the job: each by itself, all with a reference job, halves of them, pairs.
    Offline(offline::Options),
}

/// Reads the bundle or asks the nodes, diagnoses, tells.
pub async fn run(options: &Options, config: &Config, common: &Common) -> Ended {
    match &options.other {
        Some(Other::Account(options)) => return account::run(options),
        Some(Other::Offline(options)) => return offline::run(options, config).await,
        None => {}
    }
    if options.show {
        return show::run(options, config, common).await;
    }
    if let Some(file) = &options.ticket {
        ticket::check(file)?;
    }
    let rules = Rules::built_in().code(IO)?;
    let (case, marks) = match &options.from {
        Some(from) => (read(from, options, &rules, config)?, marks(from)),
        None => match live::collect(options, &rules, config).await? {
            live::Got::Case(case) => (*case, Marks::default()),
            live::Got::Ended(code) => return Ok(code),
        },
    };
    let overview = overview(&case, &rules, &marks.wrong);
    let report = &overview.report;
    if options.json {
        out::json(report)?;
    } else if options.ticket.is_none() {
        tell::report(report)?;
    }
    if let Some(file) = &options.ticket {
        let name = options.from.as_deref().map_or_else(|| "live".to_owned(), cases::name_of);
        ticket::write(file, (&name, &overview), &options.redact)?;
        out::note(format_args!("written to {}", file.display()));
    }
    let sure = report.suspects.iter().any(|suspect| suspect.confidence >= SURE);
    Ok(match report.category {
        Category::None => PASS,
        Category::Undecided => UNDECIDED,
        _ if sure => FAIL,
        _ => UNDECIDED,
    })
}

/// What triage says of a bundle as a whole.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn of_bundle(from: &Path) -> Result<Overview, Problem> {
    let rules = Rules::built_in().code(IO)?;
    let waiting = Patience::new("reading the bundle");
    let mut case = bundle::read(from, &rules, &|_, _| true)?;
    cases::take_tested(&mut case, from);
    let overview = overview(&case, &rules, &marks(from).wrong);
    drop(waiting);
    Ok(overview)
}

fn read(from: &Path, options: &Options, rules: &Rules, config: &Config) -> Result<Case, Problem> {
    let waiting = Patience::new("reading the bundle");
    let mut case = bundle::read(from, rules, &|_, _| true)?;
    drop(waiting);
    cases::take_tested(&mut case, from);
    prepare(&mut case, options.since, &options.pick, config)?;
    Ok(case)
}

/// What a person said of the case.
fn marks(from: &Path) -> Marks {
    cases::read(&marks_of(from)).unwrap_or_else(|why| {
        out::note(format_args!("marks of this case are not used: {why:#}"));
        Marks::default()
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

/// A path from the root, in which names may hold `*`: what a relative one means on a node, nobody can say.
fn pattern(text: &str) -> Result<String, String> {
    let sound = text.starts_with('/') && text.len() < 1_024 && !text.split('/').any(|part| part == "..");
    if sound { Ok(text.to_owned()) } else { Err(format!("'{text}' is no path from the root")) }
}

/// The same of one folder.
fn folder(text: &str) -> Result<String, String> {
    if text.contains('*') {
        return Err(format!("'{text}' is a pattern, and one folder is meant"));
    }
    pattern(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_a_path_from_the_root_with_stars_anywhere_and_dumps_one_folder() {
        for right in ["/scratch/47/rank_*.log", "/job/logs/*/attempt_*/*/stderr.log"] {
            assert_eq!(pattern(right), Ok(right.to_owned()));
            assert!(folder(right).is_err(), "{right}");
        }
        assert_eq!(folder("/scratch/47"), Ok("/scratch/47".to_owned()));
        for wrong in ["rank_*.log", "/a/../etc/x"] {
            assert!(pattern(wrong).is_err() && folder(wrong).is_err(), "{wrong}");
        }
    }
}

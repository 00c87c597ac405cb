//! A job that runs, or just ended: its nodes are asked, and what they tell is read as a bundle is.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, anyhow};
use muster_fleet::{Node, Settings};
use muster_logs::Rules;
use muster_triage::case::Case;
use muster_triage::health::COLLECTORS;
use muster_wire::JobOrder;
use tokio_util::sync::CancellationToken;

use super::Options;
use crate::app::Asking;
use crate::config::Config;
use crate::exit::{Code, IO, Problem, USAGE};
use crate::signals::Signals;
use crate::work::bundle;
use crate::work::job::{self, Progress, VIEWS};
use crate::{out, service, session, slurm, work};

/// Window of the kernel's log, seconds.
const SINCE_S: u32 = 3_600;
/// Time between the polls of RAS, milliseconds: two polls that lie 10 s apart prove a standstill.
const PAUSE_MS: u32 = 10_500;
/// Bytes of the end of a log.
const FILE: u32 = 1 << 20;
/// Bytes of all nodes together, and of one at most and at least.
const ALL: u64 = 512 << 20;
const MOST: u64 = 24 << 20;
const LEAST: u64 = 2 << 20;

/// What came of asking.
pub(crate) enum Got {
    /// Everything that was told.
    Case(Box<Case>),
    /// Somebody ended it, with this exit code.
    Ended(u8),
}

/// Asks the nodes; with --save, keeps the answers.
///
/// # Errors
/// When they are not known, nobody has anything to tell, or what was told cannot be kept.
pub(super) async fn collect(options: &Options, rules: &Rules, config: &Config) -> Result<Got, Problem> {
    let (nodes, settings, order) = asked(options, config).await?;
    let alerts = alerts(options)?;
    let of = (options.pick.job.as_deref(), options.save.as_deref(), alerts);
    let got = ask((&nodes, settings), &order, of, rules).await?;
    if let Got::Case(_) = got {
        say_kept(options);
    }
    Ok(got)
}

/// What a watch alerted of, from the file given.
///
/// # Errors
/// When it cannot be read.
pub(super) fn alerts(options: &Options) -> Result<Option<Vec<u8>>, Problem> {
    let read = |file: &PathBuf| std::fs::read(file).with_context(|| file.display().to_string()).code(IO);
    options.alerts.as_ref().map(read).transpose()
}

/// Says where the answers are kept, if they are.
pub(super) fn say_kept(options: &Options) {
    if let Some(dir) = &options.save {
        let (name, word) = (dir.display(), service::argument(&dir.display().to_string()));
        out::note(format_args!("kept as {name}; read it again with: muster triage --from {word}"));
    }
}

/// How the nodes are to be asked whose answers are `kept` and shown.
///
/// # Errors
/// When they are not known.
pub(super) async fn asking(options: &Options, config: &Config, kept: PathBuf) -> Result<Asking, Problem> {
    let (nodes, settings, order) = asked(options, config).await?;
    Ok(Asking::new((nodes, settings), order, (options.pick.job.clone(), kept)))
}

async fn asked(options: &Options, config: &Config) -> Result<(Vec<Node>, Arc<Settings>, JobOrder), Problem> {
    let nodes = session::nodes_for_work(config, &options.pick)?;
    let settings = session::settings_for(config, &nodes).await?;
    let order = order(options, nodes.len())?;
    Ok((nodes, settings, order))
}

/// Asks these nodes of the `job`, and keeps what they tell in the folder `save`, with what a watch of them alerted of.
///
/// # Errors
/// When nobody has anything to tell, or what was told cannot be kept.
pub(crate) async fn ask(
    (nodes, settings): (&[Node], Arc<Settings>),
    order: &JobOrder,
    (job, save, alerts): (Option<&str>, Option<&Path>, Option<Vec<u8>>),
    rules: &Rules,
) -> Result<Got, Problem> {
    if let Some(dir) = save {
        job::make_room(dir).code(IO)?;
    }
    let (cancel, signals) = (CancellationToken::new(), Signals::default());
    let listening = signals.listen(cancel.clone());
    let begun = Instant::now();
    let ras = match (order.ras, nodes.len() > VIEWS) {
        (false, _) => "NCCL RAS is not asked".to_owned(),
        (true, true) => format!("NCCL RAS is asked twice, 10 s apart, on {VIEWS} of them"),
        (true, false) => "NCCL RAS is asked twice, 10 s apart".to_owned(),
    };
    out::note(format_args!("asking {}; {ras}", out::counted(nodes.len(), "node", "nodes")));
    let (mut done, all) = (0, nodes.len());
    let mut say = |progress: Progress<'_>| match progress {
        Progress::Done => {
            done += 1;
            if done == all || done % 16 == 0 {
                out::note(format_args!(
                    "{done} of {all} nodes told everything after {:.0} s",
                    begun.elapsed().as_secs_f64()
                ));
            }
        }
        Progress::Lost(node, why) => out::note(format_args!("{node}: {why}")),
    };
    let (told, at_ms) = job::collect(nodes, order, (work::embedded(), settings, cancel), &mut say).await;
    listening.abort();
    if let Some(code) = signals.code() {
        return Ok(Got::Ended(code));
    }
    let nobody = told.iter().all(|told| told.files.is_empty());
    let mut files = job::bundle(told, job, at_ms);
    files.extend(alerts.map(|alerts| (job::ALERTS.to_owned(), alerts)));
    if let Some(dir) = save {
        job::keep(dir, &files).code(IO)?;
    }
    if nobody {
        return Err(Problem { code: IO, error: anyhow!("no node told anything") });
    }
    Ok(Got::Case(Box::new(bundle::held(&files, rules))))
}

fn order(options: &Options, nodes: usize) -> Result<JobOrder, Problem> {
    let job = options.pick.job.as_deref().and_then(slurm::known_to_processes);
    if options.pattern.as_ref().is_some_and(String::is_empty) {
        return Err(Problem { code: USAGE, error: anyhow!("--match needs a text") });
    }
    let usual = usual_order(nodes);
    let since_s = options.since.map_or(usual.since_s, |since| u32::try_from(since.as_secs()).unwrap_or(u32::MAX));
    Ok(JobOrder {
        job: job.filter(|_| options.pattern.is_none()),
        pattern: options.pattern.clone(),
        since_s,
        logs: options.logs.clone(),
        dumps: options.dumps.clone(),
        ras: !options.no_ras,
        ask_for_dumps: options.ask_for_dumps,
        ..usual
    })
}

/// What so many nodes are asked where nothing else is said: of all processes that have a rank.
pub(crate) fn usual_order(nodes: usize) -> JobOrder {
    JobOrder {
        since_s: SINCE_S,
        ras: true,
        pause_ms: PAUSE_MS,
        file_bytes: FILE,
        all_bytes: u32::try_from((ALL / nodes.max(1) as u64).clamp(LEAST, MOST)).unwrap_or(u32::MAX),
        collectors: COLLECTORS.map(str::to_owned).to_vec(),
        ..JobOrder::default()
    }
}

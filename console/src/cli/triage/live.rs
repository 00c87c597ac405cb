//! A job that runs, or just ended: its nodes are asked, and what they tell is read as a bundle is.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, anyhow};
use muster_analysis::triage::case::Case;
use muster_analysis::triage::rules::Rules;
use muster_fleet::{Node, Settings};
use muster_wire::JobOrder;
use tokio_util::sync::CancellationToken;

use super::Options;
use crate::config::Config;
use crate::exit::{Code, IO, Problem, USAGE};
use crate::signals::Signals;
use crate::work::bundle;
use crate::work::job::{self, Progress, VIEWS};
use crate::{out, session, slurm, work};

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

/// Asks the nodes.
///
/// # Errors
/// When they are not known, nobody has anything to tell, or what was told cannot be kept.
pub(super) async fn collect(options: &Options, rules: &Rules, config: &Config) -> Result<Got, Problem> {
    collect_to(options.save.as_deref(), options, rules, config).await
}

/// Asks the nodes and keeps what they tell in a folder.
///
/// # Errors
/// As [`collect`].
pub(super) async fn collect_to(
    save: Option<&Path>,
    options: &Options,
    rules: &Rules,
    config: &Config,
) -> Result<Got, Problem> {
    let nodes = session::nodes(config, &options.pick)?;
    let settings = session::settings_for(config, &nodes).await?;
    let order = order(options, nodes.len())?;
    let got = ask((&nodes, settings), &order, (options.pick.job.as_deref(), save), rules).await?;
    if let (Some(dir), Got::Case(_)) = (&options.save, &got) {
        eprintln!("kept as {}; read it again with: muster triage --from {}", dir.display(), dir.display());
    }
    Ok(got)
}

/// Asks these nodes of the `job`, and keeps what they tell in the folder `save`.
///
/// # Errors
/// When nobody has anything to tell, or what was told cannot be kept.
pub(crate) async fn ask(
    (nodes, settings): (&[Node], Arc<Settings>),
    order: &JobOrder,
    (job, save): (Option<&str>, Option<&Path>),
    rules: &Rules,
) -> Result<Got, Problem> {
    if let Some(dir) = save {
        make_room(dir).code(IO)?;
    }
    let (cancel, signals) = (CancellationToken::new(), Signals::default());
    let listening = signals.listen(cancel.clone());
    let begun = Instant::now();
    let ras = match (order.ras, nodes.len() > VIEWS) {
        (false, _) => "NCCL RAS is not asked".to_owned(),
        (true, true) => format!("NCCL RAS is asked twice, 10 s apart, on {VIEWS} of them"),
        (true, false) => "NCCL RAS is asked twice, 10 s apart".to_owned(),
    };
    eprintln!("asking {}; {ras}", out::counted(nodes.len(), "node", "nodes"));
    let (mut done, all) = (0, nodes.len());
    let mut say = |progress: Progress<'_>| match progress {
        Progress::Done => {
            done += 1;
            if done == all || done % 16 == 0 {
                eprintln!("{done} of {all} nodes told everything after {:.0} s", begun.elapsed().as_secs_f64());
            }
        }
        Progress::Lost(node, why) => eprintln!("{node}: {why}"),
    };
    let (told, at_ms) = job::collect(nodes, order, (work::embedded(), settings, cancel), &mut say).await;
    listening.abort();
    if let Some(code) = signals.code() {
        return Ok(Got::Ended(code));
    }
    let nobody = told.iter().all(|told| told.files.is_empty());
    let files = job::bundle(told, job, at_ms);
    if let Some(dir) = save {
        keep(dir, &files).code(IO)?;
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
        ..JobOrder::default()
    }
}

/// The folder, empty, for its owner only.
fn make_room(dir: &Path) -> anyhow::Result<()> {
    let name = || dir.display().to_string();
    let is_empty = match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return folder(dir).with_context(name),
        Err(why) => return Err(why).with_context(name),
    };
    if is_empty { Ok(()) } else { Err(anyhow!("{}: not empty; a bundle is not mixed with other files", name())) }
}

fn folder(dir: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Writes the files of a bundle, for their owner only.
fn keep(dir: &Path, files: &[(String, Vec<u8>)]) -> anyhow::Result<()> {
    for (path, bytes) in files {
        let file = dir.join(path);
        let name = || file.display().to_string();
        if let Some(parent) = file.parent() {
            folder(parent).with_context(name)?;
        }
        let opened = OpenOptions::new().write(true).create_new(true).mode(out::PRIVATE).open(&file);
        opened.and_then(|mut file| file.write_all(bytes)).with_context(name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_bundle_is_kept_for_its_owner_only_and_never_mixed_with_other_files() {
        let dir = tempfile::tempdir().unwrap();
        let into = dir.path().join("a/job");
        make_room(&into).unwrap();
        keep(&into, &[("logs/rank_0.log".to_owned(), b"x".to_vec())]).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&into), mode(&into.join("logs")), mode(&into.join("logs/rank_0.log"))), (0o700, 0o700, 0o600));
        assert!(make_room(&into).unwrap_err().to_string().contains("not empty"));
    }
}

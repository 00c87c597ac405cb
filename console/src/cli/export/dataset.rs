//! All runs since a time as a data set for a warehouse: a folder of Parquet files, one for each table and run.
//!
//! `samples/date=2026-11-25/<run>.parquet` and `verdicts/date=2026-11-25/<run>.parquet`, by the day on which the run began. A file is
//! replaced as a whole or not at all, and holds its run and nothing else: exporting again what is there already changes no row.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use muster_playbook::report::rfc3339;
use muster_run::{Run, RunState};
use muster_store::Store;

use super::verdicts::Verdicts;
use super::{BUFFER, Format, Options, each_node, parquet};
use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS, USAGE};
use crate::{database, judge, out, session};

/// Writes every run that ended at `since` or later, milliseconds since 1970 UTC.
pub(super) fn run(since: u64, options: &Options, config: &Config) -> Ended {
    let (Some(Format::Parquet), Some(folder)) = (options.format, &options.output) else {
        return Err(anyhow!("--since needs --format parquet and --output FOLDER, where the data set goes")).code(USAGE);
    };
    let store = database::read(config)?;
    let set = Set { store: &*store, folder, config, strict: options.strict };
    let (mut runs, mut rows) = (0, (0, 0));
    for run in store.runs().code(IO)?.iter().rev().filter(|run| run.state != RunState::Running) {
        let at_ms = ended(&*store, run).code(IO)?;
        if at_ms >= since {
            let (samples, verdicts) = set.add(run, at_ms).with_context(|| format!("run {}", run.id)).code(IO)?;
            runs += 1;
            rows = (rows.0 + samples, rows.1 + verdicts);
        }
    }
    let runs = out::counted(runs, "run", "runs");
    out::line(&format!("{runs}: {} rows of samples and {} of verdicts in {}", rows.0, rows.1, folder.display()))?;
    Ok(PASS)
}

/// When a run ended, or was last heard of.
fn ended(store: &dyn Store, run: &Run) -> Result<u64> {
    if let Some(ended) = run.ended_ms {
        return Ok(ended);
    }
    let known = store.overview(&run.id)?;
    Ok(known.nodes.iter().map(|node| node.last_ms).max().unwrap_or(run.started_ms))
}

/// A data set that runs are added to.
struct Set<'s> {
    store: &'s dyn Store,
    folder: &'s Path,
    config: &'s Config,
    strict: bool,
}

impl Set<'_> {
    /// Writes the files of a run; how many rows of samples and of verdicts they have.
    fn add(&self, run: &Run, at_ms: u64) -> Result<(u64, u64)> {
        let (mut samples, mut verdicts) = (0, 0);
        self.file("samples", run, |file| {
            let mut rows = parquet::Samples::to(file)?;
            each_node(self.store, run, &mut |records| rows.add(&records))?;
            samples = rows.finish()?;
            Ok(())
        })?;
        self.file("verdicts", run, |file| {
            let all = |_: &str| true;
            let said = session::nodes_of(self.store, run, self.config, all).map_err(|problem| problem.error)?;
            let mut rows = Verdicts::to(file)?;
            judge::each_report(&said, &mut |said, node| rows.add((run, at_ms), said, &node))?;
            verdicts = rows.finish()?;
            Ok(())
        })?;
        Ok((samples, verdicts))
    }

    fn file(&self, table: &str, run: &Run, fill: impl FnOnce(&mut BufWriter<&mut File>) -> Result<()>) -> Result<()> {
        let day = rfc3339(run.started_ms);
        let folder = self.folder.join(table).join(format!("date={}", day.split('T').next().unwrap_or(&day)));
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .with_context(|| folder.display().to_string())?;
        out::replace_by(&folder.join(format!("{}.parquet", run.id)), out::PRIVATE, |new| {
            let mut new = BufWriter::with_capacity(BUFFER, new);
            fill(&mut new)?;
            new.flush()?;
            database::sound(self.store, self.strict).map_err(|problem| problem.error)
        })
    }
}

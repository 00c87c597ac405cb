//! How is a run carried through without a screen, and ended?

use std::time::Duration;

use muster_playbook::report::RunReport;
use muster_run::{Run, RunState};
use muster_store::{Db, Store};
use tokio_util::sync::CancellationToken;

use super::job::{Job, begin};
use super::judged::{ended, keep_end, params, weighed};
use crate::config::Config;
use crate::exit::{Code, IO, Problem};
use crate::judge::Judging;
use crate::options::Say;
use crate::signals::Signals;
use crate::work::Observer;
use crate::{database, judge, out, work};

/// What standard error hears of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// How far it is, and which nodes are lost.
    Progress,
    /// Which nodes are lost.
    Problems,
    /// Nothing: a screen has the terminal.
    Nothing,
}

/// A run that ended.
#[derive(Debug)]
pub struct Done {
    /// Verdicts.
    pub report: RunReport,
    /// How it ended.
    pub state: RunState,
    /// Exit code of the signal that cancelled it.
    pub signal: Option<u8>,
    /// From the last that a node said until every verdict stood.
    pub verdict: Duration,
}

/// Runs a job with progress on standard error and judges it. The first signal cancels, the second quits.
///
/// # Errors
/// When the store fails.
pub async fn headless(job: Job, store: &mut Db, config: &Config, say: &Say) -> Result<Done, Problem> {
    let cancel = CancellationToken::new();
    let signals = Signals::default();
    let listening = signals.listen(cancel.clone());
    let heard = if say.quiet { Heard::Problems } else { Heard::Progress };
    let done = carried(&job, store, config, (heard, &cancel)).await;
    listening.abort();
    let done = done?;
    if done.state == RunState::Incomplete {
        out::note(format_args!(
            "run {} is incomplete: some nodes were lost on the way; the same command asks them again",
            done.report.run.id
        ));
    }
    database::damaged(store);
    Ok(Done { signal: signals.code(), ..done })
}

/// Runs a job and judges it, until somebody cancels it.
///
/// # Errors
/// When the store fails.
pub async fn carried(
    job: &Job,
    store: &mut Db,
    config: &Config,
    (heard, cancel): (Heard, &CancellationToken),
) -> Result<Done, Problem> {
    judge::prepare();
    let (run, scan) = begin(job, store, config)?;
    if !scan.done.is_empty() && heard != Heard::Nothing {
        let recorded = out::counted(scan.done.len(), "result", "results");
        out::note(format_args!("resuming run {}: {recorded} already recorded (--new starts a new run)", run.id));
    }
    let durations = work::Durations::known(store, &run);
    let course = work::Course::new(&scan.plan, &durations, scan.settings.at_once, &scan.done);
    let mut progress = work::Progress::new(heard != Heard::Progress, course, cancel.clone());
    let mut all: [&mut dyn Observer; 1] = [&mut progress];
    let watchers = if heard == Heard::Nothing { &mut [] } else { all.as_mut_slice() };
    let (state, found) = work::scan_judged(&scan, store, watchers, cancel).await.code(IO)?;
    let (run, judging, found) = judged(store, &run.id, (state, found), config)?;
    let report = weighed(store, &run, judge::report(&run, &found), config)?;
    let verdict = progress.silence();
    keep_end(store, &run, &report)?;
    judge::keep_assessment(store, &run, &judging, &found);
    Ok(Done { report, state, signal: None, verdict })
}

/// A run as it ends, and what is said of it: what was `found`, where that is known already.
fn judged(
    store: &Db,
    id: &str,
    (state, found): (RunState, Option<judge::Assessment>),
    config: &Config,
) -> Result<(Run, Judging, judge::Assessment), Problem> {
    let run = ended(store, id, state)?;
    let judging = Judging::of(store, &run, params(config)).code(IO)?;
    let found = match found {
        Some(found) => found,
        None => judge::assess(&run, &store.records(&run.id).code(IO)?, &judging),
    };
    Ok((run, judging, found))
}

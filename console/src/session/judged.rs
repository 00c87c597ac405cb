//! What does a stored run say, and what is kept of it when it ends?

use anyhow::anyhow;
use muster_fleet::inventory::nearest;
use muster_playbook::report::RunReport;
use muster_run::{Run, RunState};
use muster_store::{Db, Store};

use crate::config::Config;
use crate::exit::{Code, IO, Problem, USAGE};
use crate::judge::Judging;
use crate::{clock, judge, risk, service};

/// A run as it ends now.
///
/// # Errors
/// When there is no such run or it cannot be read.
pub fn ended(store: &dyn Store, id: &str, state: RunState) -> Result<Run, Problem> {
    Ok(Run { state, ended_ms: Some(clock::now_ms()), ..run_of(store, Some(id))? })
}

/// Ends a judged run, and tells the incident log what a finished one found.
///
/// # Errors
/// When the store fails.
pub fn keep_end(store: &mut Db, run: &Run, report: &RunReport) -> Result<(), Problem> {
    let id = run.id.as_str();
    if matches!(run.state, RunState::Finished | RunState::Incomplete) {
        // Told before the end: a console that is killed in between resumes the run and tells it once more.
        let (known, works) = (store.incidents().code(IO)?, store.summaries(id).code(IO)?);
        store.record_incidents(&risk::incidents::incidents_of(run, report, &works, &known)).code(IO)?;
        risk::keep_validations(store, report, &works).code(IO)?;
        judge::keep_cards(store, run).code(IO)?;
        service::keep_failures(store, run, report).code(IO)?;
    }
    store.end(id, run.state, run.ended_ms.unwrap_or(run.started_ms)).code(IO)
}

/// Judges a run from its samples; the newest when `id` is left out.
///
/// # Errors
/// When there is no such run or it cannot be read.
pub fn report_of(store: &dyn Store, id: Option<&str>, config: &Config) -> Result<RunReport, Problem> {
    let run = &run_of(store, id)?;
    let report = judge::report_of_nodes(run, &nodes_of(store, run, config, |_| true)?).code(IO)?;
    weighed(store, run, report, config)
}

/// What is said of the nodes of `run` that are `picked`, one by one.
///
/// # Errors
/// When the run cannot be read.
pub fn nodes_of(
    store: &dyn Store,
    run: &Run,
    config: &Config,
    picked: impl Fn(&str) -> bool,
) -> Result<judge::ByNode, Problem> {
    let judging = Judging::of(store, run, params(config)).code(IO)?;
    judge::ByNode::of(store, run, &judging, picked).code(IO)
}

/// The report of a run with its alarms weighed against earlier runs.
///
/// # Errors
/// When the store cannot be read.
pub fn weighed(store: &dyn Store, run: &Run, mut report: RunReport, config: &Config) -> Result<RunReport, Problem> {
    // What is usual only ever takes an alarm back, and asking for it means judging earlier runs.
    if !report.alarms.is_empty() {
        report.weigh(&judge::usual(store, run, &params(config)).code(IO)?);
    }
    Ok(report)
}

/// The run called `id`, or the newest.
///
/// # Errors
/// When there is no such run or it cannot be read.
pub fn run_of(store: &dyn Store, id: Option<&str>) -> Result<Run, Problem> {
    let run = match id {
        Some(id) => store.run(id).code(IO)?,
        None => store.runs().code(IO)?.into_iter().next(),
    };
    if let Some(run) = run {
        return Ok(run);
    }
    let what = match id {
        Some(id) => match near(id, &store.runs().code(IO)?) {
            near if near.is_empty() => format!("there is no run '{id}'; see `muster runs`"),
            near => format!("there is no run '{id}': did you mean {near}, or another of `muster runs`?"),
        },
        None => "there is no run yet".to_owned(),
    };
    Err(Problem { code: USAGE, error: anyhow!(what) })
}

/// `A or B`: the newest runs with `id` in their name, else the one that is most like it; empty where none is.
fn near(id: &str, runs: &[Run]) -> String {
    const NAMED: usize = 3;
    let part = id.to_lowercase();
    let within = runs.iter().filter(|run| !part.is_empty() && run.id.to_lowercase().contains(&part)).take(NAMED);
    let mut names: Vec<String> = within.map(|run| run.id.clone()).collect();
    if names.is_empty() {
        names.extend(nearest(id, runs.iter().map(|run| run.id.as_str())));
    }
    names.join(" or ")
}

/// Limits of the verdicts.
#[must_use]
pub fn params(config: &Config) -> muster_analysis::Params {
    muster_analysis::Params { alpha: config.alpha.value, tau: config.tau.value, ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_store::Options;
    use muster_wire::Profile;

    fn said(store: &Db, id: Option<&str>) -> String {
        let problem = run_of(store, id).unwrap_err();
        assert_eq!(problem.code, USAGE);
        problem.error.to_string()
    }

    #[test]
    fn a_run_that_is_not_there_is_64_and_those_that_were_probably_meant_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Db::open(dir.path(), &Options::default()).unwrap();
        assert_eq!(said(&store, None), "there is no run yet");
        assert_eq!(said(&store, Some("x")), "there is no run 'x'; see `muster runs`");
        for (at, id) in
            (1..).zip(["20261120T080000Z-cbd-00aa", "20261121T143000Z-cbd-1f2e", "20261121T150000Z-demo-7c01"])
        {
            let run = Run {
                id: id.to_owned(),
                playbook: "cbd".to_owned(),
                profile: Profile::Smoke,
                started_ms: at,
                ended_ms: None,
                nodes: vec!["n1".to_owned()],
                plan: Vec::new(),
                state: RunState::Running,
            };
            store.begin(&run).unwrap();
        }
        let meant = |id: &str, names: &str| {
            assert_eq!(
                said(&store, Some(id)),
                format!("there is no run '{id}': did you mean {names}, or another of `muster runs`?")
            );
        };
        meant("1F2E", "20261121T143000Z-cbd-1f2e");
        meant("cbd", "20261121T143000Z-cbd-1f2e or 20261120T080000Z-cbd-00aa");
        meant("20261121T143000Z-cdb-1f2e", "20261121T143000Z-cbd-1f2e");
        assert_eq!(said(&store, Some("nosuchrun")), "there is no run 'nosuchrun'; see `muster runs`");
        assert_eq!(run_of(&store, Some("20261120T080000Z-cbd-00aa")).unwrap().started_ms, 1);
    }
}

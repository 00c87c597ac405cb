//! `muster results`: values and verdicts of a run, recomputed from its samples.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use muster_analysis::State;
use muster_playbook::report::{CheckReport, NodeFindings, NodeReport, RunReport, Summary};
use muster_run::{Run, visit_of};
use muster_store::Store;
use muster_tui::stale::Stale;
use muster_wire::Outcome;

use crate::clock::now_ms;
use crate::config::Config;
use crate::exit::{Code, Ended, IO, Problem};
use crate::options::{Line, Pick};
use crate::patience::Patience;
use crate::{database, out, session};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster results
  muster results 20261121T143000Z-cbd-1f2e --node node007 --json
  muster results -w @rack7 --fail-on fail

Exit codes, over the nodes shown: 0 all passed, 1 warnings, 2 at least one failed,
3 could not decide.")]
pub struct Options {
    /// Run id; the newest when left out.
    pub run: Option<String>,
    /// Only this node.
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,
    /// Only these nodes of the run.
    #[command(flatten)]
    pub pick: Pick,
    /// Print every metric of every node, however many.
    #[arg(long)]
    pub all: bool,
    /// Show check results instead of metrics.
    #[arg(long)]
    pub checks: bool,
    /// Print the whole report as JSON.
    #[arg(long)]
    pub json: bool,
    /// Mildest finding that gives a non-zero exit code.
    #[arg(long, value_enum, default_value_t = Line::Warn)]
    pub fail_on: Line,
    /// Exit 74 if any part of the database is unreadable, instead of leaving it out.
    #[arg(long)]
    pub strict: bool,
}

/// Rows past which those that pass are left out, unless they are asked for.
const MANY: u64 = 10_000;

/// Prints a report; the exit code is by its verdicts.
pub fn run(options: &Options, config: &Config) -> Ended {
    let store = database::read(config)?;
    let run = session::run_of(&*store, options.run.as_deref())?;
    let mut pick = options.pick.clone();
    pick.include.extend(options.node.clone());
    let picked = if pick.given() { Some(pick.of_run(&run, config)?) } else { None };
    let picked: Option<BTreeSet<&str>> = picked.as_ref().map(|names| names.iter().map(String::as_str).collect());
    let is_picked = |node: &str| picked.as_ref().is_none_or(|names| names.contains(node));
    if !options.json {
        return rows(&*store, &run, config, (options, is_picked));
    }
    let waiting = Patience::new(format!("judging {}", run.id));
    let mut report = session::report_of(&*store, Some(&run.id), config)?;
    drop(waiting);
    database::sound(&*store, options.strict)?;
    if picked.is_some() {
        report.nodes.retain(|node| is_picked(&node.node));
        report.summary = Summary::of(report.nodes.iter().map(|node| (node.state, node.undecided)));
        // Pairs speak of links between nodes, of which one may not be shown.
        report.network = report.network.filter(|_| report.nodes.len() == run.nodes.len());
    }
    out::json(&report)?;
    Ok(session::exit_code(&report, options.fail_on))
}

/// Prints what is asked of the picked nodes, line by line.
fn rows(
    store: &dyn Store,
    run: &Run,
    config: &Config,
    (options, is_picked): (&Options, impl Fn(&str) -> bool),
) -> Ended {
    let summaries = store.summaries(&run.id).code(IO)?;
    let series: u64 = summaries.iter().filter(|one| is_picked(&one.node)).map(|one| one.series).sum();
    let whole = options.all || series <= MANY;
    let mut count = 0;
    let prune = |node: &mut NodeFindings| {
        count += node.verdicts.len();
        node.verdicts.retain(|verdict| !options.checks && (whole || verdict.state != State::Pass));
    };
    let waiting = Patience::new(format!("judging {}", run.id));
    let mut report = session::rows_of(store, run, config, (is_picked, prune))?;
    drop(waiting);
    report.network = report.network.filter(|_| report.nodes.len() == run.nodes.len());
    database::sound(store, options.strict)?;
    let age = Age::of(summaries, config);
    if options.checks {
        answers(&report, &age)?
    } else {
        metrics(&report, count, &age)?
    }
    Ok(session::exit_code(&report, options.fail_on))
}

/// When the results of a run came, and which of them are stale.
struct Age {
    stale: Stale,
    /// The newest of each node and work.
    of: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Age {
    fn of(summaries: Vec<muster_run::Summary>, config: &Config) -> Self {
        let mut of: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for one in summaries.into_iter().filter(|one| !matches!(one.outcome, Outcome::NotRun(_))) {
            let newest = of.entry(one.node).or_default().entry(visit_of(&one.work).0.to_owned()).or_default();
            *newest = one.at_ms.max(*newest);
        }
        Self { stale: Stale::new(config.stale_after_ms(), now_ms()), of }
    }

    /// `pass`, or `pass, stale (41 d)`: as the screen says it of what `work` gave on `node`, or of whatever is newest there.
    fn state(&self, (node, work): (&str, Option<&str>), state: State) -> String {
        let own = self.of.get(node).filter(|_| state != State::NotRun);
        let at = own.and_then(|own| work.and_then(|work| own.get(work)).or_else(|| own.values().max()).copied());
        let word = session::word(&state);
        self.stale.words(at).map_or_else(|| word.clone(), |stale| format!("{word}, {stale}"))
    }
}

/// `count` is how many there are with those that are left out.
fn metrics(report: &RunReport, count: usize, age: &Age) -> Result<(), Problem> {
    let mut rows = Vec::new();
    for node in &report.nodes {
        for verdict in &node.verdicts {
            let value = match (verdict.value, verdict.of.unit) {
                (Some(value), Some(unit)) => unit.show(value),
                _ => "-".to_owned(),
            };
            rows.push(vec![
                node.node.clone(),
                verdict.of.metric.clone(),
                value,
                verdict.similarity.map_or("-".into(), |s| format!("{s:.3}")),
                age.state((&node.node, verdict.of.metric.split('/').next()), verdict.state),
            ]);
        }
    }
    out::line(&out::table(&["node", "metric", "median", "similarity", "state"], &rows))?;
    if rows.len() < count {
        eprintln!(
            "{} metrics that pass are left out; --node shows those of a node, --all shows all",
            count - rows.len()
        );
    }
    Ok(())
}

fn answers(report: &RunReport, age: &Age) -> Result<(), Problem> {
    let of_node = |node: &NodeReport| {
        let row = |check: &CheckReport| {
            let state = age.state((&node.node, None), check.state);
            vec![node.node.clone(), check.id.clone(), state, check.said.clone()]
        };
        node.checks.iter().map(row).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = report.nodes.iter().flat_map(of_node).collect();
    out::line(&out::table(&["node", "check", "state", "evidence"], &rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_told_with_its_age_in_the_words_of_the_screen() {
        const DAY: u64 = 86_400_000;
        let works = BTreeMap::from([("disk".to_owned(), 59 * DAY), ("cpu-gemm".to_owned(), 99 * DAY)]);
        let age = Age { stale: Stale::new(30 * DAY, 100 * DAY), of: BTreeMap::from([("n1".to_owned(), works)]) };
        assert_eq!(age.state(("n1", Some("disk")), State::Fail), "fail, stale (41 d)");
        assert_eq!(age.state(("n1", Some("cpu-gemm")), State::Pass), "pass");
        assert_eq!(age.state(("n1", Some("disk")), State::NotRun), "not_run", "it has no result that could be old");
        assert_eq!(age.state(("n1", None), State::Pass), "pass", "the newest counts");
        assert_eq!(age.state(("n2", Some("disk")), State::Unknown), "unknown");
    }
}

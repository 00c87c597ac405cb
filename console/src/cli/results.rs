//! `muster results`: values and verdicts of a run, recomputed from its samples.

use std::collections::BTreeSet;

use clap::Args;
use muster_analysis::State;
use muster_playbook::report::{CheckReport, NodeReport, RunReport, Summary};

use crate::config::Config;
use crate::exit::{Ended, Problem};
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
const MANY: usize = 10_000;

/// Prints a report; the exit code is by its verdicts.
pub fn run(options: &Options, config: &Config) -> Ended {
    let store = database::read(config)?;
    let run = session::run_of(&*store, options.run.as_deref())?;
    let mut pick = options.pick.clone();
    pick.include.extend(options.node.clone());
    let picked = if pick.given() { Some(pick.of_run(&run, config)?) } else { None };
    let waiting = Patience::new(format!("judging {}", run.id));
    let mut report = session::report_of(&*store, Some(&run.id), config)?;
    drop(waiting);
    database::sound(&*store, options.strict)?;
    if let Some(picked) = picked {
        let picked: BTreeSet<&str> = picked.iter().map(String::as_str).collect();
        report.nodes.retain(|node| picked.contains(node.node.as_str()));
        report.summary = Summary::of(report.nodes.iter().map(|node| (node.state, node.undecided)));
        // Pairs speak of links between nodes, of which one may not be shown.
        report.network = report.network.filter(|_| picked.len() == run.nodes.len());
    }
    if options.json {
        out::json(&report)?;
    } else if options.checks {
        answers(&report)?;
    } else {
        metrics(&report, options.all)?;
    }
    Ok(session::exit_code(&report, options.fail_on))
}

fn metrics(report: &RunReport, all: bool) -> Result<(), Problem> {
    let count: usize = report.nodes.iter().map(|node| node.verdicts.len()).sum();
    let whole = all || count <= MANY;
    let mut rows = Vec::new();
    for node in &report.nodes {
        for verdict in node.verdicts.iter().filter(|verdict| whole || verdict.state != State::Pass) {
            let value = match (verdict.value, verdict.of.unit) {
                (Some(value), Some(unit)) => unit.show(value),
                _ => "-".to_owned(),
            };
            rows.push(vec![
                node.node.clone(),
                verdict.of.metric.clone(),
                value,
                verdict.similarity.map_or("-".into(), |s| format!("{s:.3}")),
                session::word(&verdict.state),
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

fn answers(report: &RunReport) -> Result<(), Problem> {
    let of_node = |node: &NodeReport| {
        let row = |check: &CheckReport| {
            vec![node.node.clone(), check.id.clone(), session::word(&check.state), check.said.clone()]
        };
        node.checks.iter().map(row).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = report.nodes.iter().flat_map(of_node).collect();
    out::line(&out::table(&["node", "check", "state", "evidence"], &rows))
}

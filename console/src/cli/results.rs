//! `muster results`: values and verdicts of a run, recomputed from its samples.

use clap::Args;
use muster_analysis::State;
use muster_playbook::report::{CheckReport, NodeReport, RunReport};

use crate::config::Config;
use crate::exit::{Ended, PASS};
use crate::{out, session};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  muster results\n  muster results 20261121T143000Z-cbd-1f2e --node node007 --json")]
pub struct Options {
    /// Run id; the newest when left out.
    pub run: Option<String>,
    /// Only this node.
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,
    /// Every metric of every node, also where they are many thousands.
    #[arg(long)]
    pub all: bool,
    /// Answers of the checks instead of metrics.
    #[arg(long)]
    pub checks: bool,
    /// The whole report as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Rows past which those that pass are left out, unless they are asked for.
const MANY: usize = 10_000;

/// Prints a report; always exits 0, since looking is not judging.
pub fn run(options: &Options, config: &Config) -> Ended {
    let store = session::read_store(config)?;
    let mut report = session::report_of(&*store, options.run.as_deref(), config)?;
    if let Some(node) = &options.node {
        report.nodes.retain(|n| &n.node == node);
    }
    if options.json {
        out::json(&report)?;
        return Ok(PASS);
    }
    if options.checks {
        return answers(&report);
    }
    let all: usize = report.nodes.iter().map(|node| node.verdicts.len()).sum();
    let whole = options.all || all <= MANY;
    let mut rows = Vec::new();
    for node in &report.nodes {
        for verdict in node.verdicts.iter().filter(|verdict| whole || verdict.state != State::Pass) {
            let value = match (verdict.value, verdict.unit) {
                (Some(value), Some(unit)) => unit.show(value),
                _ => "-".to_owned(),
            };
            rows.push(vec![
                node.node.clone(),
                verdict.metric.clone(),
                value,
                verdict.similarity.map_or("-".into(), |s| format!("{s:.3}")),
                session::word(&verdict.state),
            ]);
        }
    }
    out::line(&out::table(&["node", "metric", "median", "similarity", "state"], &rows))?;
    if rows.len() < all {
        eprintln!("{} metrics that pass are left out; --node shows those of a node, --all shows all", all - rows.len());
    }
    Ok(PASS)
}

fn answers(report: &RunReport) -> Ended {
    let of_node = |node: &NodeReport| {
        let row = |check: &CheckReport| {
            vec![node.node.clone(), check.id.clone(), session::word(&check.state), check.said.clone()]
        };
        node.checks.iter().map(row).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = report.nodes.iter().flat_map(of_node).collect();
    out::line(&out::table(&["node", "check", "state", "evidence"], &rows))?;
    Ok(PASS)
}

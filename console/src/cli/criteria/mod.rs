//! `muster criteria`: learn what is normal, keep it in versions, and see what it says.

use clap::Subcommand;
use muster_analysis::Cluster;
use muster_playbook::report::{CriteriaReport, CriterionReport};

use crate::config::Config;
use crate::exit::{Ended, PASS};
use crate::{out, session};

mod compare;
mod diff;
mod drift;
mod exchange;
mod judge;
mod learn;
mod versions;
mod what_if;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Learn criteria from a run or from files.
    Learn(learn::Learn),
    /// List saved versions and which are frozen.
    List(versions::List),
    /// Show one version with its evidence, or the newest of every metric.
    Show(versions::Show),
    /// Compare two criteria versions.
    Diff(diff::Diff),
    /// Freeze versions: judge later runs by them.
    Freeze(versions::Freeze),
    /// Unfreeze: compare each run with its own fleet again.
    Thaw(versions::Thaw),
    /// Write versions to a file.
    Export(exchange::Export),
    /// Import versions from a file, or criteria from a SuperBench baseline.
    Import(exchange::Import),
    /// Compare nodes with their own past, and the fleet with what is frozen.
    Drift(drift::Drift),
    /// Show which nodes flip when alpha changes.
    WhatIf(what_if::WhatIf),
    /// Compare the decision and Algorithm 2 with IQR, k-means and LOF.
    Compare(compare::Compare),
    /// Judge a SuperBench file by SuperBench's rules.
    Judge(judge::Judge),
}

/// Does it.
pub fn run(action: &Action, config: &Config) -> Ended {
    match action {
        Action::Learn(options) => learn::run(options, config),
        Action::List(options) => versions::list(options, config),
        Action::Show(options) => versions::show(options, config),
        Action::Diff(options) => diff::run(options, config),
        Action::Freeze(options) => versions::freeze(options, config),
        Action::Thaw(options) => versions::thaw(options, config),
        Action::Export(options) => exchange::export(options, config),
        Action::Import(options) => exchange::import(options, config),
        Action::Drift(options) => drift::run(options, config),
        Action::WhatIf(options) => what_if::run(options, config),
        Action::Compare(options) => compare::run(options, config),
        Action::Judge(options) => judge::run(options),
    }
}

/// Prints criteria as the `muster.criteria` document or as a table.
fn print(report: &CriteriaReport, json: bool) -> Ended {
    if json {
        out::json(report)?;
        return Ok(PASS);
    }
    let header = ["metric", "group", "status", "n", "healthy", "repeatability", "outside"];
    out::line(&out::table(&header, &report.criteria.iter().map(row).collect::<Vec<_>>()))?;
    for line in report.criteria.iter().filter_map(clusters) {
        out::line(&line)?;
    }
    Ok(PASS)
}

/// `cpu-stream/triad: two clusters, 14 nodes (median 2.1e11) and 2 nodes (median 1.7e11)`.
fn clusters(c: &CriterionReport) -> Option<String> {
    let [large, small] = c.clusters.as_slice() else { return None };
    let each = |c: &Cluster| format!("{} nodes (median {:.4e})", c.nodes, c.median);
    Some(format!("{}: two clusters, {} and {}", c.metric, each(large), each(small)))
}

fn row(c: &CriterionReport) -> Vec<String> {
    let one = |node: &str, similarity: Option<f64>| similarity.map_or(node.to_owned(), |s| format!("{node} ({s:.3})"));
    let outside: Vec<String> = c.defects.iter().map(|d| one(&d.node, d.similarity)).collect();
    vec![
        c.metric.clone(),
        c.group.clone(),
        session::word(&c.status),
        c.n.to_string(),
        c.healthy.to_string(),
        c.repeatability.map_or("-".into(), |r| format!("{r:.4}")),
        outside.join(", "),
    ]
}

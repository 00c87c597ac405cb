//! `muster criteria what-if`: which nodes flip when alpha moves.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use muster_analysis::Learned;
use muster_analysis::what_if::{Standing, flags, flips};
use serde::Serialize;

use super::learn::{Found, Source};
use crate::config::Config;
use crate::exit::{Code, Ended, PASS, USAGE};
use crate::{input, out};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster criteria what-if --to 0.97                      the newest run, from the alpha in force to 0.97
  muster criteria what-if --alpha 0.90 --to 0.99 --from results-summary.jsonl --json

A value is flagged at a similarity of alpha or less. The criteria stay what they are: only the threshold moves. \
`criteria learn --alpha` learns them anew.")]
pub struct WhatIf {
    /// Alpha to move to; --alpha is where it starts.
    #[arg(long, value_name = "SHARE")]
    pub to: f64,
    /// Files of any format that `muster import` reads.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub from: Vec<PathBuf>,
    /// Run id; the newest when left out.
    #[arg(long, conflicts_with = "from")]
    pub run: Option<String>,
    /// How the files are read.
    #[command(flatten)]
    pub reading: input::Reading,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// The published document.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    version: u32,
    /// Alpha before and after.
    alpha: [f64; 2],
    /// Nodes flagged in at least one metric, before and after.
    nodes: [usize; 2],
    /// Cells flagged, before and after.
    flagged: [usize; 2],
    flips: Vec<Flipped>,
}

/// One node and metric that is judged otherwise.
#[derive(Serialize)]
struct Flipped {
    node: String,
    metric: String,
    /// At or below the alpha moved to.
    flagged: bool,
    /// One-sided similarity: where exactly it flips.
    similarity: f64,
}

/// Learns once, moves alpha, prints.
pub fn run(options: &WhatIf, config: &Config) -> Ended {
    let (from, to) = (config.alpha.value, options.to);
    if !(to > 0.0 && to < 1.0) {
        return Err(anyhow::anyhow!("--to is {to}; it lies between 0 and 1")).code(USAGE);
    }
    let source = Source {
        from: &options.from,
        run: options.run.as_deref(),
        reading: &options.reading,
        labels: Vec::new(),
        below: from.max(to),
    };
    let found = source.learn(config)?;
    let standings: Vec<Standing> = found.iter().map(|f| Standing::of(&f.learned)).collect();
    let flips = flips(&standings, from, to).into_iter().map(|flip| {
        let Found { learned, shown, .. } = &found[flip.metric];
        let verdict = &learned.verdicts[flip.row];
        let metric = shown.clone().unwrap_or_else(|| verdict.metric.to_string());
        let similarity = verdict.similarity.unwrap_or(0.0);
        Flipped { node: verdict.node.to_string(), metric, flagged: flip.flagged, similarity }
    });
    let at = [from, to].map(|alpha| counts(found.iter().map(|f| &f.learned), &standings, alpha));
    let report = Report {
        schema: "muster.what-if",
        version: 1,
        alpha: [from, to],
        nodes: at.map(|(nodes, _)| nodes),
        flagged: at.map(|(_, cells)| cells),
        flips: flips.collect(),
    };
    if options.json {
        out::json(&report)?;
        return Ok(PASS);
    }
    out::line(&format!(
        "alpha {from} to {to}: {} to {} flagged values on {} to {} nodes",
        report.flagged[0], report.flagged[1], report.nodes[0], report.nodes[1]
    ))?;
    let mut by_node: BTreeMap<(&str, bool), Vec<String>> = BTreeMap::new();
    for flip in &report.flips {
        let cell = format!("{} ({:.3})", flip.metric, flip.similarity);
        by_node.entry((&flip.node, flip.flagged)).or_default().push(cell);
    }
    for ((node, flagged), cells) in by_node {
        let names: Vec<&str> = cells.iter().map(String::as_str).collect();
        out::line(&format!("{node} {}: {}", if flagged { "is flagged" } else { "is let go" }, input::some(&names)))?;
    }
    Ok(PASS)
}

/// Nodes and cells flagged at `alpha`.
fn counts<'a>(learned: impl Iterator<Item = &'a Learned>, standings: &[Standing], alpha: f64) -> (usize, usize) {
    let mut nodes = std::collections::BTreeSet::new();
    for (learned, standing) in learned.zip(standings) {
        nodes.extend(standing.below(alpha).iter().map(|(_, row)| &*learned.verdicts[*row as usize].node));
    }
    (nodes.len(), flags(standings, alpha).by_metric.iter().map(|n| *n as usize).sum())
}

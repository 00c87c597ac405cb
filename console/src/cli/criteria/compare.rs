//! `muster criteria compare`: what other methods would have said.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use muster_analysis::alternatives::{Comparison, Fleet, Method, Scenario, compare, score};
use muster_analysis::{Params, Sample};
use serde::Serialize;

use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, PASS, USAGE};
use crate::{input, out, session};

/// Names the restarts of k-means and the scenarios, so that two calls agree.
const SEED: u64 = 1;

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster criteria compare --scenario all
  muster criteria compare --scenario resnet --seed 7 --json
  muster criteria compare --from samples.csv --lower-is-better '*latency*'

The margin ratio is the distance of the nearest flagged node over that of the farthest healthy one, by each method's own \
split. The decision is what a node's state is made of, here of one metric alone: it flags whom it would fail. Scenarios are made and their defects known, so they also have a precision and a recall.")]
pub struct Compare {
    /// Files of any format that `muster import` reads.
    #[arg(long, value_name = "FILE", num_args = 1.., required_unless_present = "scenario")]
    pub from: Vec<PathBuf>,
    /// A made fleet whose truth is known: resnet, densenet, vgg, bert, gpt2, or all.
    #[arg(long, value_name = "NAME", conflicts_with = "from")]
    pub scenario: Option<String>,
    /// Which made fleet.
    #[arg(long, default_value_t = SEED)]
    pub seed: u64,
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
    fleets: Vec<Compared>,
}

/// One metric, or one scenario.
#[derive(Serialize)]
struct Compared {
    name: String,
    nodes: usize,
    /// Nodes that are defective; null where nobody knows.
    defective: Option<Vec<String>>,
    methods: Vec<Line>,
    disagreements: Vec<Disagreement>,
}

/// What one method said.
#[derive(Serialize)]
struct Line {
    method: &'static str,
    flagged: Vec<String>,
    /// Null without a flagged node, and where every healthy node equals the centre.
    margin: Option<f64>,
    /// Null where the truth is not known, or nothing was flagged.
    precision: Option<f64>,
    recall: Option<f64>,
    /// Why it could not be asked.
    refused: Option<String>,
}

/// A node on which methods differ.
#[derive(Serialize)]
struct Disagreement {
    node: String,
    flagged_by: Vec<&'static str>,
    passed_by: Vec<&'static str>,
}

/// Compares and prints.
pub fn run(options: &Compare, config: &Config) -> Ended {
    let params = session::params(config);
    let fleets = match &options.scenario {
        Some(name) => scenarios(name, options.seed, &params)?,
        None => measured(options, &params)?,
    };
    let report = Report { schema: "muster.comparison", version: 1, fleets };
    if options.json {
        out::json(&report)?;
        return Ok(PASS);
    }
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.2}"));
    let mut rows = Vec::new();
    for fleet in &report.fleets {
        for line in &fleet.methods {
            let names: Vec<&str> = line.flagged.iter().map(String::as_str).collect();
            let said = line.refused.clone().unwrap_or_else(|| muster_fleet::hostlist::fold(names.iter().copied()));
            rows.push(vec![
                fleet.name.clone(),
                line.method.to_owned(),
                number(line.margin),
                line.flagged.len().to_string(),
                number(line.precision),
                number(line.recall),
                said,
            ]);
        }
    }
    let header = ["fleet", "method", "margin", "flagged", "precision", "recall", "nodes"];
    out::line(&out::table(&header, &rows))?;
    for fleet in &report.fleets {
        for d in &fleet.disagreements {
            out::line(&format!(
                "{}: {} flagged by {}, not by {}",
                fleet.name,
                d.node,
                d.flagged_by.join(", "),
                d.passed_by.join(", ")
            ))?;
        }
    }
    Ok(PASS)
}

fn scenarios(name: &str, seed: u64, params: &Params) -> Result<Vec<Compared>, crate::exit::Problem> {
    let chosen: Vec<Scenario> = Scenario::ALL.into_iter().filter(|s| name == "all" || s.name() == name).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = Scenario::ALL.iter().map(|s| s.name()).collect();
        return Err(anyhow!("no scenario '{name}': {} or all", known.join(", "))).code(USAGE);
    }
    let mut found = Vec::new();
    for scenario in chosen {
        let made = scenario.fleet(seed).code(CONFIG)?;
        let names: Vec<String> = (0..made.fleet.samples().len()).map(|i| format!("n{i:03}")).collect();
        let said = compare(&made.fleet, params, SEED);
        found.push(shaped(scenario.name().to_owned(), &names, &said, Some(&made.defects)));
    }
    Ok(found)
}

fn measured(options: &Compare, params: &Params) -> Result<Vec<Compared>, crate::exit::Problem> {
    let all = input::fleet(&options.from, &options.reading).code(CONFIG)?;
    all.notes.iter().for_each(out::note);
    let mut found = Vec::new();
    for metric in &all.metrics {
        // Failed runs are no part of a comparison of methods.
        let whole: Vec<usize> = (0..all.nodes.len()).filter(|n| Sample::new(metric.values(*n)).is_ok()).collect();
        let names: Vec<String> = whole.iter().map(|n| all.nodes[*n].clone()).collect();
        let steps = whole.iter().map(|n| metric.values(*n).to_vec()).collect();
        let name = metric.shown.clone().unwrap_or_else(|| metric.id.to_string());
        match Fleet::new(steps, metric.direction) {
            Ok(fleet) => {
                let said = compare(&fleet.aggregated(metric.declared.aggregated), params, SEED);
                found.push(shaped(name, &names, &said, None));
            }
            Err(why) => out::note(format_args!("{name}: {why}")),
        }
    }
    Ok(found)
}

fn shaped(name: String, names: &[String], said: &Comparison, truth: Option<&[usize]>) -> Compared {
    let named = |nodes: &[usize]| nodes.iter().map(|n| names[*n].clone()).collect::<Vec<_>>();
    let methods = |all: &[Method]| all.iter().map(|m| m.name()).collect();
    let line = |row: &muster_analysis::alternatives::Row| {
        let right = truth.map(|truth| score(&row.flagged, truth));
        Line {
            method: row.method.name(),
            flagged: named(&row.flagged),
            margin: row.margin.filter(|m| m.is_finite()),
            precision: right.and_then(|r| r.precision()),
            recall: right.and_then(|r| r.recall()),
            refused: row.refused.clone(),
        }
    };
    Compared {
        name,
        nodes: names.len(),
        defective: truth.map(named),
        methods: said.rows.iter().map(line).collect(),
        disagreements: said
            .disagreements
            .iter()
            .map(|d| Disagreement {
                node: names[d.node].clone(),
                flagged_by: methods(&d.flagged_by),
                passed_by: methods(&d.passed_by),
            })
            .collect(),
    }
}

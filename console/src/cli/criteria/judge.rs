//! `muster criteria judge`: SuperBench's rules on SuperBench's results.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use muster_analysis::State;
use muster_analysis::rules::{Baseline, Diagnosis, Refusal, RuleFile, diagnose};
use muster_import::Format;
use muster_import::format::Content;
use serde::Serialize;

use crate::exit::{CONFIG, Code, Ended, FAIL, PASS, UNDECIDED};
use crate::{input, out};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  muster criteria judge --rules rules.yaml --baseline baseline.json --from results-summary.jsonl --json

Verdicts are those of `sb result diagnosis`, except for its defects: a node without a metric of a rule is undecided \
instead of accepted; a baseline of zero, or none, leaves that metric undecided instead of ending everything; a node \
that comes twice is judged twice. Rules that run code (multi_rules, other lambdas than x < c, x > c, x != c) are refused \
with their line, and while there are any, no node passes.")]
pub struct Judge {
    /// SuperBench rule file.
    #[arg(long, value_name = "FILE")]
    pub rules: PathBuf,
    /// SuperBench baseline.json, for variance rules.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// SuperBench results-summary.jsonl.
    #[arg(long, value_name = "FILE")]
    pub from: PathBuf,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// The published document.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    version: u32,
    nodes: Vec<Node>,
    /// Rules that are not applied.
    refused: Vec<Refusal>,
}

/// One line of the results.
#[derive(Serialize)]
struct Node {
    node: String,
    state: State,
    /// What SuperBench calls accepted.
    accept: bool,
    categories: Vec<String>,
    /// In SuperBench's own words.
    details: Vec<String>,
    /// Why it could not pass.
    undecided: Vec<String>,
}

impl From<Diagnosis> for Node {
    fn from(found: Diagnosis) -> Self {
        Self {
            node: found.node,
            state: found.state,
            accept: found.state == State::Pass,
            categories: found.categories.into_iter().collect(),
            details: found.details.iter().map(ToString::to_string).collect(),
            undecided: found.undecided,
        }
    }
}

/// Judges and prints. Exit code 2 with a violated rule, 3 with an undecided node.
pub fn run(options: &Judge) -> Ended {
    let rules = rules(&options.rules).code(CONFIG)?;
    let baseline = options.baseline.as_deref().map_or_else(|| Ok(Baseline::default()), baseline).code(CONFIG)?;
    let Content::Table(table) = read(&options.from, Format::Superbench).code(CONFIG)? else {
        return Err(anyhow!("{}: no results-summary.jsonl", options.from.display())).code(CONFIG);
    };
    let nodes: Vec<Node> = diagnose(&table, &rules, &baseline).into_iter().map(Node::from).collect();
    let worst = nodes.iter().map(|n| n.state).max();
    let report = Report { schema: "muster.diagnosis", version: 1, nodes, refused: rules.refused };
    if options.json {
        out::json(&report)?;
    } else {
        text(&report, &options.rules)?;
    }
    Ok(match worst {
        Some(State::Fail) => FAIL,
        Some(State::Pass) => PASS,
        _ => UNDECIDED,
    })
}

fn text(report: &Report, rules: &Path) -> Result<(), crate::exit::Problem> {
    for refused in &report.refused {
        out::note(format_args!(
            "{}:{}: rule {} is not applied: {}",
            rules.display(),
            refused.line,
            refused.rule,
            refused.why
        ));
    }
    let row = |n: &Node| {
        let why = if n.state == State::Fail { &n.details } else { &n.undecided };
        let names: Vec<&str> = why.iter().map(String::as_str).collect();
        vec![n.node.clone(), n.state.name().to_owned(), n.categories.join(","), input::some(&names)]
    };
    out::line(&out::table(&["node", "state", "category", "why"], &report.nodes.iter().map(row).collect::<Vec<_>>()))
}

fn read(file: &Path, format: Format) -> anyhow::Result<Content> {
    input::content(file, format, &input::Reading::default())
}

fn rules(file: &Path) -> anyhow::Result<RuleFile> {
    match read(file, Format::SuperbenchRules)? {
        Content::Rules(rules) => Ok(rules),
        _ => Err(anyhow!("no rules")).with_context(|| file.display().to_string()),
    }
}

fn baseline(file: &Path) -> anyhow::Result<Baseline> {
    match read(file, Format::SuperbenchBaseline)? {
        Content::Baseline(baseline) => Ok(baseline),
        _ => Err(anyhow!("no baseline")).with_context(|| file.display().to_string()),
    }
}

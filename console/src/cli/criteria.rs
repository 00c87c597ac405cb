//! `muster criteria`: learn what is normal, or show what was learned.

use std::fs::File;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use muster_analysis::{Criterion, Learned, Observation, Sample, learn};
use muster_playbook::report::CriteriaReport;
use muster_store::Store;
use muster_wire::{Direction, MetricId, Unit};

use super::Better;
use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, IO, PASS, Problem};
use crate::{engine, out, samples, session};

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Learn criteria from a run or from a CSV file.
    Learn(Learn),
    /// Show stored criteria.
    Show {
        /// JSON on standard output.
        #[arg(long)]
        json: bool,
    },
}

/// Options of `learn`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  muster criteria learn\n  muster criteria learn --from samples.csv --lower-is-better '*latency*' --json"
)]
pub struct Learn {
    /// CSV with the columns node,metric,value and optionally step; nothing is stored then.
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Run id; the newest when left out.
    #[arg(long, conflicts_with = "from")]
    pub run: Option<String>,
    /// Which way the metrics are better.
    #[command(flatten)]
    pub better: Better,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Does it.
pub fn run(action: &Action, config: &Config) -> Ended {
    match action {
        Action::Learn(options) => match &options.from {
            Some(file) => from_csv(file, options, config),
            None => from_run(options, config),
        },
        Action::Show { json } => show(*json, config),
    }
}

fn from_csv(file: &PathBuf, options: &Learn, config: &Config) -> Ended {
    let name = file.display().to_string();
    let input = File::open(file).with_context(|| name.clone()).code(CONFIG)?;
    let samples = samples::read(input, &name).code(CONFIG)?;
    if samples.is_empty() {
        return Err(Problem { code: CONFIG, error: anyhow::anyhow!("{name}: no rows") });
    }
    let params = session::params(config);
    let mut report = CriteriaReport::default();
    for (metric, nodes) in samples {
        let direction = options.better.direction(&metric).unwrap_or_else(|| assumed(&metric));
        let observed: Vec<_> = nodes.into_iter().map(|(node, values)| (node, observation(&values))).collect();
        let id = MetricId::new("csv", metric.clone(), "imported");
        let learned = learn(&id, Unit::Count, direction, &observed, &params);
        report.push_named(metric, &learned);
    }
    print(&report, options.json)
}

fn observation(values: &[f64]) -> Observation {
    match Sample::new(values) {
        Ok(sample) => Observation::Sample(sample),
        Err(why) => Observation::Failed(why.to_string()),
    }
}

fn assumed(metric: &str) -> Direction {
    eprintln!("{metric}: taken as higher-is-better; say --higher-is-better or --lower-is-better with a pattern");
    Direction::HigherIsBetter
}

fn from_run(options: &Learn, config: &Config) -> Ended {
    let mut store = session::write_store(config)?;
    let run = session::run_of(&store, options.run.as_deref())?;
    let records = store.records(&run.id).code(IO)?;
    let assessment = engine::assess(&run, &records, &session::params(config));
    let mut report = CriteriaReport::default();
    for learned in &assessment.learned {
        let bytes = serde_json::to_vec(&learned.criterion).code(IO)?;
        store.put_criterion(&learned.criterion.id, &bytes).code(IO)?;
        report.push(learned);
    }
    print(&report, options.json)
}

fn show(json: bool, config: &Config) -> Ended {
    let store = session::read_store(config)?;
    let mut report = CriteriaReport::default();
    for id in store.criteria().code(IO)?.into_iter().map(|seen| seen.name) {
        let Some(bytes) = store.criterion(&id).code(IO)? else { continue };
        let criterion: Criterion =
            serde_json::from_slice(&bytes).with_context(|| format!("criterion {id} does not decode")).code(IO)?;
        report.push(&Learned { criterion, verdicts: Vec::new(), evidence: Vec::new() });
    }
    print(&report, json)
}

fn print(report: &CriteriaReport, json: bool) -> Ended {
    if json {
        out::json(report)?;
        return Ok(PASS);
    }
    let rows: Vec<Vec<String>> = report
        .criteria
        .iter()
        .map(|c| {
            let defects: Vec<String> = c
                .defects
                .iter()
                .map(|d| d.similarity.map_or(d.node.clone(), |s| format!("{} ({s:.3})", d.node)))
                .collect();
            let repeatability = c.repeatability.map_or("-".into(), |r| format!("{r:.4}"));
            vec![
                c.metric.clone(),
                session::word(&c.status),
                c.n.to_string(),
                c.healthy.to_string(),
                repeatability,
                defects.join(", "),
            ]
        })
        .collect();
    out::line(&out::table(&["metric", "status", "n", "healthy", "repeatability", "defects"], &rows))?;
    Ok(PASS)
}

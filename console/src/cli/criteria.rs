//! `muster criteria`: learn what is normal, or show what was learned.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use muster_analysis::{Criterion, Learned, learn};
use muster_playbook::report::CriteriaReport;
use muster_store::Store;

use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, IO, PASS};
use crate::{engine, input, out, session};

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
    after_help = "Examples:\n  muster criteria learn\n  muster criteria learn --from samples.csv --lower-is-better '*latency*' --json\n  \
                  muster criteria learn --from results-summary.jsonl\n  \
                  muster criteria learn --from gpus.csv --columns node=uuid,value=perf --lower-is-better perf"
)]
pub struct Learn {
    /// Files of any format that `muster import` reads; nothing is stored then.
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

/// Does it.
pub fn run(action: &Action, config: &Config) -> Ended {
    match action {
        Action::Learn(options) if options.from.is_empty() => from_run(options, config),
        Action::Learn(options) => from_files(options, config),
        Action::Show { json } => show(*json, config),
    }
}

fn from_files(options: &Learn, config: &Config) -> Ended {
    let fleet = input::fleet(&options.from, &options.reading).code(CONFIG)?;
    fleet.notes.iter().for_each(|note| eprintln!("{note}"));
    let params = session::params(config);
    let mut report = CriteriaReport::default();
    for metric in &fleet.metrics {
        let learned = learn(&metric.id, metric.unit, metric.direction, &fleet.observations(metric), &params);
        match &metric.shown {
            Some(name) => report.push_named(name, &learned),
            None => report.push(&learned),
        }
    }
    print(&report, options.json)
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

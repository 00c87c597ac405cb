//! `muster criteria diff`.

use clap::Args;
use muster_analysis::history::{Change, Difference, diff};
use serde::Serialize;

use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS, USAGE};
use crate::{database, judge, out, session};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  muster criteria diff 'cpu-stream/triad@own#5c1f' 'cpu-stream/triad@own#9e02'\n  \
                  muster criteria diff 'cpu-stream/triad@own#5c1f' cpu-stream/triad --run 20261121T143000Z-cbd-1f2e --json")]
pub struct Diff {
    /// The older version: an identity or its beginning.
    pub old: String,
    /// The newer one; a metric stands for its newest version.
    pub new: String,
    /// Also the nodes of this run that the two judge otherwise; the newest when left out.
    #[arg(long)]
    pub run: Option<String>,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// The published document.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    version: u32,
    old: String,
    new: String,
    /// Run whose nodes were judged by both; null without one.
    run: Option<String>,
    #[serde(flatten)]
    difference: Difference,
}

/// Compares and prints.
pub fn run(options: &Diff, config: &Config) -> Ended {
    let store = database::read(config)?;
    let (old, new) = (judge::find(&*store, &options.old).code(USAGE)?, judge::find(&*store, &options.new).code(USAGE)?);
    let newest = || store.runs().map(|runs| runs.into_iter().next());
    let run = match &options.run {
        Some(id) => Some(session::run_of(&*store, Some(id))?),
        None => newest().code(IO)?,
    };
    let nodes = match &run {
        Some(run) => {
            let records = store.records(&run.id).code(IO)?;
            muster_analysis::records::observations(run, &records, &new.criterion.metric)
        }
        None => Vec::new(),
    };
    let difference = diff(&old.criterion, &new.criterion, &nodes);
    let (old, new) = (old.criterion.id, new.criterion.id);
    let report = Report { schema: "muster.criteria-diff", version: 1, old, new, run: run.map(|r| r.id), difference };
    if options.json {
        out::json(&report)?;
        return Ok(PASS);
    }
    for change in &report.difference.changes {
        out::line(&sentence(change))?;
    }
    for (node, before, after) in &report.difference.flips {
        out::line(&format!("{node}: {} instead of {}", after.name(), before.name()))?;
    }
    if report.difference == Difference::default() {
        out::line("both say the same")?;
    }
    Ok(PASS)
}

fn sentence(change: &Change) -> String {
    let number = |value: Option<f64>| value.map_or("unknown".to_owned(), |v| format!("{v:.4}"));
    match change {
        Change::Incomparable(why) => format!("not comparable: {why}"),
        Change::Alpha(a, b) => format!("alpha {a} became {b}"),
        Change::Tau(a, b) => format!("tau {a} became {b}"),
        Change::Status(a, b) => format!("status {a} became {b}"),
        Change::Nodes(a, b) => format!("learned from {b} nodes instead of {a}"),
        Change::Repeatability(a, b) => format!("repeatability {} became {}", number(*a), number(*b)),
        Change::Centre(moved) => format!(
            "centre: median {} became {} (similarity {}, the new one worse in {} of the distance)",
            number(moved.from),
            number(moved.to),
            number(moved.similarity),
            number(moved.worse)
        ),
    }
}

//! `muster export`: a run for a ticket.

use std::collections::BTreeSet;

use clap::{Args, ValueEnum};
use muster_playbook::report;
use muster_store::Store;
use muster_wire::MetricId;

use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS};
use crate::{out, session};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  muster export --json > run.json\n  muster export --format markdown\n  \
                  muster export --format samples > samples.csv && muster criteria learn --from samples.csv")]
pub struct Options {
    /// Run id; the newest when left out.
    pub run: Option<String>,
    /// Form of the output.
    #[arg(long, value_enum, default_value_t = Format::Json)]
    pub format: Format,
    /// The same as `--format json`.
    #[arg(long)]
    pub json: bool,
}

/// Form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The `muster.run` document.
    Json,
    /// A summary to paste into a ticket.
    Markdown,
    /// One row per verdict.
    Csv,
    /// Every raw value: `node,metric,value,step`, as `criteria learn --from` reads it.
    Samples,
}

/// Prints the run.
pub fn run(options: &Options, config: &Config) -> Ended {
    let store = session::read_store(config)?;
    if options.format == Format::Samples && !options.json {
        return samples(&*store, options.run.as_deref());
    }
    let report = session::report_of(&*store, options.run.as_deref(), config)?;
    match options.format {
        Format::Markdown if !options.json => out::line(report::markdown(&report).trim_end())?,
        Format::Csv if !options.json => out::line(report::csv(&report).trim_end())?,
        _ => out::json(&report)?,
    }
    Ok(PASS)
}

/// The newest values of each piece of work, in the order measured.
fn samples(store: &dyn Store, run: Option<&str>) -> Ended {
    let run = session::run_of(store, run)?;
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(["node", "metric", "value", "step"]).code(IO)?;
    for record in store.records(&run.id).code(IO)? {
        let metrics: BTreeSet<&MetricId> = record.series.iter().map(|s| &s.metric).collect();
        for metric in metrics {
            for (step, value) in record.values_of(metric).into_iter().enumerate() {
                csv.write_record([&record.node, &metric.to_string(), &value.to_string(), &step.to_string()])
                    .code(IO)?;
            }
        }
    }
    let bytes = csv.into_inner().map_err(|why| anyhow::anyhow!("{why}")).code(IO)?;
    out::line(String::from_utf8_lossy(&bytes).trim_end())?;
    Ok(PASS)
}

//! `muster export`: a run for a ticket, a spreadsheet, a warehouse or a monitoring system.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use muster_playbook::report::{self, RunReport};
use muster_run::{Record, joined};

use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS, Problem, USAGE};
use crate::patience::Patience;
use crate::redact::{Redact, Redaction};
use crate::{database, out, session};

mod openmetrics;
mod parquet;
mod recording;
mod ticket;

pub(super) use openmetrics::escape;

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster export --json > run.json
  muster export --ticket > ticket.json                   all names replaced
  muster export --ticket --redact addresses,serials      the same with host names
  muster export --format markdown
  muster export --format samples > samples.csv && muster criteria learn --from samples.csv
  muster export --format parquet --output samples.parquet
  muster export --format openmetrics --output /var/lib/node_exporter/muster.prom
  muster export --recording 20261124T031000Z-watch-1f2e --format parquet --output job.parquet

A file is replaced as a whole or not at all. JSON, Markdown and CSV contain neither addresses nor \
serial numbers unless --redact none; one name has one pseudonym throughout a document.")]
pub struct Options {
    /// Run id; the newest when left out.
    pub run: Option<String>,
    /// What `muster watch --record` kept, instead of a run: id or file. As CSV or Parquet with the columns
    /// time_s,node,metric,value, which `muster watch --from` reads.
    #[arg(long, value_name = "ID|FILE", conflicts_with_all = ["run", "json", "ticket", "redact", "strict"])]
    pub recording: Option<PathBuf>,
    /// Output format [default: json; of a recording csv].
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// The same as `--format json`.
    #[arg(long)]
    pub json: bool,
    /// JSON with the raw values behind every failure, and all names replaced.
    #[arg(long, conflicts_with = "format")]
    pub ticket: bool,
    /// What to replace by pseudonyms.
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    pub redact: Vec<Redact>,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Exit 74 and write nothing if any part of the database is unreadable.
    #[arg(long)]
    pub strict: bool,
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
    /// Every raw value as Parquet, for a warehouse.
    Parquet,
    /// States, medians and similarities, for node_exporter's textfile directory.
    Openmetrics,
}

/// Writes the run.
pub fn run(options: &Options, config: &Config) -> Ended {
    if let Some(recording) = &options.recording {
        return recording::run(recording, options, config);
    }
    let store = database::read(config)?;
    let run = session::run_of(&*store, options.run.as_deref())?;
    let waiting = Patience::new(format!("reading {}", run.id));
    let records = || store.records(&run.id).code(IO);
    let report = || session::report_of(&*store, Some(&run.id), config);
    let format = if options.json || options.ticket { Format::Json } else { options.format.unwrap_or(Format::Json) };
    let bytes = match format {
        Format::Samples => samples(&records()?)?,
        Format::Parquet if options.output.is_none() => {
            return Err(anyhow!("Parquet is no text: --output names its file")).code(USAGE);
        }
        Format::Parquet => parquet::encode(&records()?).code(IO)?,
        Format::Openmetrics => openmetrics::text(&report()?).into_bytes(),
        Format::Json | Format::Markdown | Format::Csv => {
            let records = records()?;
            let mut redaction = Redaction::of(&chosen(options), &run, &records);
            if options.ticket {
                let ticket = ticket::Ticket::of(report()?, &*store, &records).code(IO)?;
                serde_json::to_vec_pretty(&redaction.document(&ticket).code(IO)?).code(IO)?
            } else {
                let report: RunReport = redaction.report(&report()?).code(IO)?;
                match format {
                    Format::Markdown => report::markdown(&report).into_bytes(),
                    Format::Csv => report::csv(&report).into_bytes(),
                    _ => serde_json::to_vec_pretty(&report).code(IO)?,
                }
            }
        }
    };
    drop(waiting);
    database::sound(&*store, options.strict)?;
    match &options.output {
        // A collector of metrics runs as another user, and what it reads is published anyway.
        Some(file) if matches!(format, Format::Openmetrics) => out::replace(file, &bytes, out::PUBLIC).code(IO)?,
        Some(file) => out::replace(file, &bytes, out::PRIVATE).code(IO)?,
        None => out::line(String::from_utf8_lossy(&bytes).trim_end())?,
    }
    Ok(PASS)
}

fn chosen(options: &Options) -> Vec<Redact> {
    match options.redact.as_slice() {
        [] if options.ticket => vec![Redact::Names, Redact::Addresses, Redact::Serials],
        [] => vec![Redact::Addresses, Redact::Serials],
        some => some.to_vec(),
    }
}

/// The newest values of each piece of work, in the order measured.
fn samples(records: &[Record]) -> Result<Vec<u8>, Problem> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(["node", "metric", "value", "step"]).code(IO)?;
    let mut visited: BTreeMap<(&str, &str), &Record> = BTreeMap::new();
    for record in records {
        let known = visited.entry((&record.node, record.benchmark())).or_insert(record);
        *known = if record.visit() >= known.visit() { record } else { known };
    }
    for record in visited.into_values() {
        for (metric, series) in record.by_metric() {
            for (step, value) in joined(series).into_iter().enumerate() {
                csv.write_record([&record.node, &metric.to_string(), &value.to_string(), &step.to_string()])
                    .code(IO)?;
            }
        }
    }
    csv.into_inner().map_err(|why| anyhow!("{why}")).code(IO)
}

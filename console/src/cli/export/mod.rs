//! `muster export`: a run for a ticket, a spreadsheet, a warehouse or a monitoring system.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use muster_playbook::report::{self, RunReport};
use muster_run::{Record, Run, joined};
use muster_store::Store;
use muster_wire::{Direction, MetricId};

use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS, USAGE};
use crate::options::Which;
use crate::patience::Patience;
use crate::redact::{Redact, Redaction, Remarked, noted};
use crate::{clock, database, judge, out, session};

mod dataset;
mod html;
mod openmetrics;
mod parquet;
mod recording;
mod replay;
mod superbench;
mod ticket;
mod verdicts;

pub(super) use openmetrics::escape;

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster export --json > run.json
  muster export --ticket > ticket.json                   all names replaced
  muster export --ticket --redact addresses,serials      the same with host names
  muster export --format markdown
  muster export --format html -o run.html                one file for a browser or for paper, without a script
  muster export --format html --node node007 -o node007.html
  muster export --format html --metric cpu-stream/triad-1t --redact names,addresses,serials -o triad.html
  muster export --format html --case job-4711.tar.gz -o job-4711.html
  muster export --format samples > samples.csv && muster criteria learn --from samples.csv
  muster export --format superbench > ours.jsonl && muster criteria judge --rules rules.yaml --baseline baseline.json --from ours.jsonl
  muster export --format parquet --output samples.parquet
  muster export --format openmetrics --output /var/lib/node_exporter/muster.prom
  muster export --since 2026-11-01 --format parquet --output warehouse/   all runs since then, again without harm
  muster export --recording 20261124T031000Z-watch-1f2e --format parquet --output job.parquet
  muster export --recording 20261124T031000Z-watch-1f2e --format html -o job.html
  muster export --format replay -o run.replay                     a run for muster replay, on any machine; names stay
  muster export --case job-4711.tar.gz --format replay -o job-4711.replay

A file is replaced as a whole or not at all. JSON, Markdown, HTML and CSV contain neither addresses nor \
serial numbers unless --redact none; samples, Parquet and OpenMetrics hold names as they are unless --redact says what to replace. \
One name has one pseudonym throughout a document. A replay file holds raw results as the nodes \
gave them, so nothing of it can be replaced.")]
pub struct Options {
    /// Run id; the newest when left out.
    #[command(flatten)]
    pub which: Which,
    /// What `muster watch --record` kept, instead of a run: id or file. As CSV or Parquet with the columns
    /// time_s,node,metric,value, which `muster watch --from` reads; as HTML with what a watch says of it.
    #[arg(long, value_name = "ID|FILE", conflicts_with_all = ["run", "run_id", "json", "ticket", "strict"])]
    pub recording: Option<PathBuf>,
    /// With `--format html` or `replay`: a bundle of a failed job, as `muster triage --from` reads it, instead of a run.
    #[arg(long, value_name = "DIR|FILE",
        conflicts_with_all = ["run", "run_id", "recording", "since", "json", "ticket", "strict"])]
    pub case: Option<PathBuf>,
    /// With `--format html`: only this node of the run, with all of its metrics, checks and facts.
    #[arg(long, value_name = "NODE", conflicts_with_all = ["recording", "case", "since", "metric"])]
    pub node: Option<String>,
    /// With `--format html`: only this metric of the run, such as cpu-stream/triad-1t, on all nodes.
    #[arg(long, value_name = "METRIC", conflicts_with_all = ["recording", "case", "since"])]
    pub metric: Option<String>,
    /// All runs that ended at this time (UTC) or later, such as 2026-11-01, as a data set: in the folder `--output` one file of
    /// verdicts and one of raw values for each run. Needs `--format parquet`.
    #[arg(long, value_name = "TIME", value_parser = super::incidents::moment,
        conflicts_with_all = ["run", "run_id", "recording", "json", "ticket", "redact"])]
    pub since: Option<u64>,
    /// Output format [default: json; of a recording csv].
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// JSON with the raw values behind every failure, and all names replaced.
    #[arg(long, conflicts_with = "format")]
    pub ticket: bool,
    /// What to replace by pseudonyms.
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    pub redact: Vec<Redact>,
    /// Write to this file instead of standard output; with `--since` a folder.
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
    /// One file for a browser or for paper: verdicts, distributions, pairs, coverage, what was not decided, hardware.
    Html,
    /// One row per verdict.
    Csv,
    /// Every raw value: `node,metric,value,step`, as `criteria learn --from` reads it.
    Samples,
    /// Every raw value as Parquet, for a warehouse.
    Parquet,
    /// The means that SuperBench has as well, as its results-summary.jsonl, for its rules and baselines.
    Superbench,
    /// Everything that `muster replay` needs of a run, a recording or a case, in one file for another machine.
    Replay,
    /// States, their counts, medians, similarities and the age of the run, for node_exporter's textfile directory.
    Openmetrics,
}

/// Writes the run.
pub fn run(options: &Options, config: &Config) -> Ended {
    if options.format == Some(Format::Replay) {
        return replay::run(options, config);
    }
    html::only_here(options)?;
    if let Some(case) = &options.case {
        return html::case(case, options);
    }
    if let Some(recording) = &options.recording {
        return match options.format {
            Some(Format::Html) => html::recording(recording, options, config),
            _ => recording::run(recording, options, config),
        };
    }
    if let Some(since) = options.since {
        return dataset::run(since, options, config);
    }
    let format = if options.json || options.ticket { Format::Json } else { options.format.unwrap_or(Format::Json) };
    if format == Format::Parquet && options.output.is_none() {
        return Err(anyhow!("Parquet is no text: --output names its file")).code(USAGE);
    }
    let store = database::read(config)?;
    let run = session::run_of(&*store, options.which.id())?;
    let waiting = Patience::new(format!("reading {}", run.id));
    if format == Format::Html {
        return html::of_run((&*store, &run), config, options, waiting);
    }
    let source = Source { store: &*store, run: &run, config, options };
    match &options.output {
        Some(file) => {
            // A collector of metrics runs as another user, and what it reads is published anyway.
            let mode = if format == Format::Openmetrics { out::PUBLIC } else { out::PRIVATE };
            let fill = |new: &mut File| {
                let mut new = BufWriter::with_capacity(BUFFER, new);
                if format == Format::Parquet {
                    source.parquet(&mut new)?
                } else {
                    source.write(format, &mut new)?
                }
                new.flush()?;
                database::sound(&*store, options.strict).map_err(|problem| problem.error)
            };
            out::replace_by(file, mode, fill).code(IO)?;
        }
        None => {
            if options.strict {
                // Nothing is to be printed of what turns out to be damaged.
                source.write(format, &mut std::io::sink()).code(IO)?;
                database::sound(&*store, true)?;
            }
            out::by(|to| {
                drop(waiting);
                source.write(format, to)
            })?;
            database::damaged(&*store);
        }
    }
    Ok(PASS)
}

/// Bytes that are handed to the system at once.
const BUFFER: usize = 1 << 18;

/// The run that is exported.
struct Source<'s> {
    store: &'s dyn Store,
    run: &'s Run,
    config: &'s Config,
    options: &'s Options,
}

impl Source<'_> {
    fn parquet(&self, to: impl Write + Send) -> Result<()> {
        let mut rows = parquet::Samples::to(to)?;
        self.each_node(&mut |records| rows.add(&records))?;
        rows.finish().map(drop)
    }

    /// What replaces names in a form that is read by machines, which need them as they are: only what somebody asked to replace.
    fn redaction(&self) -> Result<Option<Redaction>> {
        if self.options.redact.is_empty() {
            return Ok(None);
        }
        Ok(Some(Redaction::of(&self.options.redact, self.run, &self.store.facts(&self.run.id)?)))
    }

    /// Gives the records of every node to `each`, one node after another, with the names replaced that are to be replaced.
    fn each_node(&self, each: Each<'_>) -> Result<()> {
        let Some(mut redaction) = self.redaction()? else { return each_node(self.store, self.run, each) };
        let mut metrics: HashMap<MetricId, MetricId> = HashMap::new();
        each_node(self.store, self.run, &mut |mut records: Vec<Record>| {
            // They are all of one node.
            let node = records.first().map(|record| redaction.text(&record.node)).unwrap_or_default();
            for record in &mut records {
                record.node.clone_from(&node);
                for series in &mut record.series {
                    let known = metrics.entry(series.metric.clone()).or_insert_with_key(|metric| {
                        let [benchmark, name, engine] =
                            [&metric.benchmark, &metric.name, &metric.engine].map(|part| redaction.text(part));
                        MetricId::new(benchmark, name, engine)
                    });
                    series.metric = known.clone();
                }
            }
            each(records)
        })
    }

    /// Writes it as text, row by row; what is in memory is at most what is said of the nodes, without their samples.
    fn write(&self, format: Format, to: &mut dyn Write) -> Result<()> {
        match format {
            Format::Samples => samples(to, |each| self.each_node(each)),
            Format::Superbench => superbench::write(to, |each| self.each_node(each)),
            Format::Openmetrics => {
                let mut report = self.report()?;
                if let Some(mut redaction) = self.redaction()? {
                    report = redaction.run(report)?;
                }
                Ok(openmetrics::write(&report, (self.run, clock::now_ms()), to)?)
            }
            Format::Json if self.options.ticket => self.ticket(to),
            Format::Csv => self.csv(to),
            Format::Json | Format::Markdown | Format::Parquet | Format::Html | Format::Replay => {
                let facts = self.store.facts(&self.run.id)?;
                let mut redaction = Redaction::of(&chosen(self.options), self.run, &facts);
                let remark = redaction.remark();
                let report = redaction.run(self.report()?)?;
                match format {
                    Format::Markdown => to.write_all(noted(remark, &report::markdown(&report)).as_bytes())?,
                    _ => {
                        let report = Remarked { document: &report, names_replaced: remark };
                        serde_json::to_writer_pretty(&mut *to, &report).map_err(std::io::Error::from)?;
                        to.write_all(b"\n")?;
                    }
                }
                Ok(())
            }
        }
    }

    fn report(&self) -> Result<RunReport> {
        session::report_of(self.store, Some(&self.run.id), self.config).map_err(|problem| problem.error)
    }

    fn csv(&self, to: &mut dyn Write) -> Result<()> {
        let said = session::nodes_of(self.store, self.run, self.config, |_| true).map_err(|problem| problem.error)?;
        let mut redaction = Redaction::of(&chosen(self.options), self.run, &self.store.facts(&self.run.id)?);
        let run = redaction.report(&judge::info(self.run))?;
        report::write_csv(&run, to, |each| judge::each_report(&said, &mut |_, node| each(&redaction.node(node)?)))
    }

    fn ticket(&self, to: &mut dyn Write) -> Result<()> {
        let records = self.store.records(&self.run.id)?;
        let mut redaction = Redaction::of(&chosen(self.options), self.run, &records);
        let ticket = ticket::Ticket::of(self.report()?, self.store, &records)?;
        let (document, names_replaced) = (&redaction.document(&ticket)?, redaction.remark());
        let document = Remarked { document, names_replaced };
        serde_json::to_writer_pretty(&mut *to, &document).map_err(std::io::Error::from)?;
        Ok(to.write_all(b"\n")?)
    }
}

/// Gives the records of every node of `run` to `each`, one node after another.
fn each_node(store: &dyn Store, run: &Run, each: Each<'_>) -> Result<()> {
    let known = store.overview(&run.id)?;
    known.nodes.iter().try_for_each(|node| each(store.records_of(&run.id, &node.name)?))
}

fn chosen(options: &Options) -> Vec<Redact> {
    match options.redact.as_slice() {
        [] if options.ticket => vec![Redact::Names, Redact::Addresses, Redact::Serials],
        [] => vec![Redact::Addresses, Redact::Serials],
        some => some.to_vec(),
    }
}

/// What takes the records of a node.
type Each<'e> = &'e mut dyn FnMut(Vec<Record>) -> Result<()>;

/// How an import reads which way a metric is better.
const fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::HigherIsBetter => "higher_is_better",
        Direction::LowerIsBetter => "lower_is_better",
    }
}

/// The newest record of each piece of work of a node.
fn newest(records: &[Record]) -> Vec<&Record> {
    let mut visited: BTreeMap<&str, &Record> = BTreeMap::new();
    for record in records {
        let known = visited.entry(record.benchmark()).or_insert(record);
        *known = if record.visit() >= known.visit() { record } else { known };
    }
    visited.into_values().collect()
}

/// The newest values of each piece of work, in the order measured, with unit and direction, so that an import of them means the same;
/// `nodes` gives the records of one node after another.
fn samples(to: &mut dyn Write, nodes: impl FnOnce(Each<'_>) -> Result<()>) -> Result<()> {
    let mut csv = csv::WriterBuilder::new().buffer_capacity(BUFFER).from_writer(to);
    csv.write_record(["node", "metric", "value", "step", "unit", "direction"]).map_err(out::of_csv)?;
    nodes(&mut |records| {
        for record in newest(&records) {
            for (metric, series) in record.by_metric() {
                let metric = metric.to_string();
                let means = series.first().map_or(["", ""], |series| [series.unit.symbol(), word(series.direction)]);
                for (step, value) in joined(series).into_iter().enumerate() {
                    let (value, step) = (value.to_string(), step.to_string());
                    let row = [record.node.as_str(), &metric, &value, &step, means[0], means[1]];
                    csv.write_record(row).map_err(out::of_csv)?;
                }
            }
        }
        Ok(())
    })?;
    Ok(csv.flush()?)
}

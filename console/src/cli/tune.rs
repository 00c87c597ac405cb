//! `muster tune`: how few steps a benchmark needs on this fleet.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use muster_analysis::Sample;
use muster_analysis::tune::{Outcome, Settings, Tuned, search};
use muster_playbook::report::rfc3339;
use muster_run::joined;
use muster_wire::{Direction, MetricId, Profile, Steps};
use serde::Serialize;

use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, IO, PASS, Problem, UNDECIDED, USAGE};
use crate::judge::Profiled;
use crate::{clock, database, input, judge, out, session};

/// Steps that a series needs before a search makes sense: eight cycles of 64.
const SHORTEST: usize = 512;
/// Warm-up steps of SuperBench's fixed setting (72 + 3,072).
const WARMUP: usize = 72;

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster tune --from outputs/2026-11-20_10-00-00           step series of every rank of a SuperBench output folder
  muster tune --from steps.csv --lower-is-better '*time*' --store
  muster tune --run 20261121T143000Z-burn-in-1f2e --store  from now on in runs of that profile
  muster tune --forget cpu-stream

Per benchmark, the shortest warm-up and measurement that keep the repeatability of the whole series. A window is refused \
if the loss on the steps after it may be above 1 % (upper 95 % limit), if the level still moves at the end of the series or \
changes late, and if it misses slow steps that come later. With --store, later runs of the profile that was searched take what was found; steps of files are those of another \
program, and are kept to be shown.")]
pub struct Options {
    /// Files of any format that `muster import` reads, with their steps.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub from: Vec<PathBuf>,
    /// Run id; the newest when left out.
    #[arg(long, conflicts_with = "from")]
    pub run: Option<String>,
    /// How the files are read.
    #[command(flatten)]
    pub reading: input::Reading,
    /// Steps at the start of a series that the fixed setting leaves out: 72 for files, none for runs, whose probe left them
    /// out itself.
    #[arg(long, value_name = "STEPS")]
    pub warmup: Option<usize>,
    /// Largest loss of repeatability, as a share: upper 95 % limit on the steps after the window.
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    pub max_loss: f64,
    /// Show saved settings and exit.
    #[arg(long, conflicts_with_all = ["from", "run", "store", "json"])]
    pub show: bool,
    /// Go back to the profile's steps for this benchmark, and exit.
    #[arg(long, value_name = "BENCHMARK", conflicts_with_all = ["from", "run", "store", "json", "show"])]
    pub forget: Option<String>,
    /// Save what was found.
    #[arg(long)]
    pub store: bool,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// The published document.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    version: u32,
    benchmarks: Vec<Benchmark>,
    /// Metrics that were not searched, and why.
    skipped: Vec<String>,
}

/// One benchmark: what all its metrics can do with.
#[derive(Serialize)]
struct Benchmark {
    benchmark: String,
    /// Null where the fixed setting stays.
    setting: Option<Steps>,
    metrics: Vec<Metric>,
}

#[derive(Serialize)]
struct Metric {
    metric: String,
    nodes: usize,
    #[serde(flatten)]
    outcome: Outcome,
}

/// Step series of one metric, one per node.
struct Traces {
    metric: MetricId,
    direction: Direction,
    steps: Vec<Vec<f64>>,
}

/// Searches, keeps, prints. Exit code 3 where nothing could be tuned.
pub fn run(options: &Options, config: &Config) -> Ended {
    if options.show {
        return show(config);
    }
    if let Some(benchmark) = &options.forget {
        return forget(benchmark, config);
    }
    let (profile, traces) = if options.from.is_empty() { of_run(options, config)? } else { (None, of_files(options)?) };
    let fixed_warmup = options.warmup.unwrap_or(if options.from.is_empty() { 0 } else { WARMUP });
    let (alpha, tau) = (config.alpha.value, config.tau.value);
    let settings = Settings { alpha, tau, fixed_warmup, max_loss: options.max_loss, ..Settings::default() };
    let mut skipped = Vec::new();
    let mut found: BTreeMap<String, Vec<Metric>> = BTreeMap::new();
    for trace in traces {
        let steps = trace.steps.iter().map(Vec::len).min().unwrap_or(0);
        if steps < SHORTEST {
            skipped.push(format!("{}: too few steps: {steps} of at least {SHORTEST}", trace.metric));
            continue;
        }
        let outcome = search(&trace.steps, trace.direction, &settings)
            .map_err(|(node, why)| anyhow!("{}: series {node}: {why}", trace.metric))
            .code(CONFIG)?;
        let metric = Metric { metric: trace.metric.to_string(), nodes: trace.steps.len(), outcome };
        found.entry(trace.metric.benchmark.clone()).or_default().push(metric);
    }
    let benchmarks: Vec<Benchmark> = found.into_iter().map(|(benchmark, metrics)| of(benchmark, metrics)).collect();
    if options.store {
        keep(&benchmarks, profile, config)?;
    }
    let tuned = benchmarks.iter().any(|b| b.setting.is_some());
    let report = Report { schema: "muster.tune", version: 1, benchmarks, skipped };
    if options.json {
        out::json(&report)?;
    } else {
        text(&report, options.store)?;
    }
    Ok(if tuned { PASS } else { UNDECIDED })
}

fn show(config: &Config) -> Ended {
    let kept = judge::kept_steps(&*database::read(config)?).code(IO)?;
    let row = |(benchmark, kept): (&String, &Profiled)| {
        let Profiled { steps, profile, at_ms } = kept;
        let used = profile.map_or("no run: steps of files".to_owned(), |profile| format!("runs of profile {profile}"));
        vec![benchmark.clone(), steps.warmup.to_string(), steps.measured.to_string(), rfc3339(*at_ms), used]
    };
    let header = ["benchmark", "warm-up", "measured", "found", "used by"];
    out::line(&out::table(&header, &kept.iter().map(row).collect::<Vec<_>>()))?;
    Ok(PASS)
}

fn forget(benchmark: &str, config: &Config) -> Ended {
    let mut store = database::write(config)?;
    if !judge::kept_steps(&store).code(IO)?.contains_key(benchmark) {
        return Err(anyhow!("no steps are kept for '{benchmark}'; see `muster tune --show`")).code(USAGE);
    }
    judge::keep_steps(&mut store, benchmark, None).code(IO)?;
    Ok(PASS)
}

/// What every metric of a benchmark can do with, where all of them can do with less.
fn of(benchmark: String, metrics: Vec<Metric>) -> Benchmark {
    let tuned: Option<Vec<&Tuned>> =
        metrics.iter().map(|m| if let Outcome::Tuned(tuned) = &m.outcome { Some(tuned) } else { None }).collect();
    let setting = tuned.filter(|all| !all.is_empty()).map(|all| {
        let warmup = all.iter().map(|t| t.warmup).max().unwrap_or(0);
        let end = all.iter().map(|t| t.warmup + t.measured).max().unwrap_or(0);
        Steps { warmup: warmup as u32, measured: (end - warmup) as u32 }
    });
    Benchmark { benchmark, setting, metrics }
}

fn keep(benchmarks: &[Benchmark], profile: Option<Profile>, config: &Config) -> Result<(), Problem> {
    let mut store = database::write(config)?;
    for b in benchmarks {
        let Some(steps) = b.setting else { continue };
        let profiled = Profiled { steps, profile, at_ms: clock::now_ms() };
        judge::keep_steps(&mut store, &b.benchmark, Some(&profiled)).code(IO)?;
    }
    Ok(())
}

fn text(report: &Report, stored: bool) -> Result<(), Problem> {
    for skipped in &report.skipped {
        out::note(skipped);
    }
    let mut rows = Vec::new();
    for metric in report.benchmarks.iter().flat_map(|b| &b.metrics) {
        let numbers = |t: &Tuned| {
            let period = t.period.map_or("none".to_owned(), |p| p.to_string());
            let percent = |share: f64| format!("{:.2} %", share * 100.0);
            let bound = t.loss_bound.map_or("-".to_owned(), percent);
            [t.warmup.to_string(), t.measured.to_string(), period, percent(t.saving), percent(t.loss), bound].to_vec()
        };
        let (word, cells) = match &metric.outcome {
            Outcome::Tuned(t) => ("tuned".to_owned(), numbers(t)),
            Outcome::Refused(t) => {
                (format!("refused: {}", t.reason.as_deref().unwrap_or("loses too much")), numbers(t))
            }
            Outcome::Kept(why) => (format!("stays: {why}"), vec!["-".to_owned(); 6]),
        };
        rows.push([vec![metric.metric.clone(), metric.nodes.to_string()], cells, vec![word]].concat());
    }
    let header = ["metric", "nodes", "warm-up", "measured", "period", "saving", "loss", "at most", ""];
    out::line(&out::table(&header, &rows))?;
    for b in &report.benchmarks {
        if let Some(Steps { warmup, measured }) = b.setting {
            let kept = if stored { "; kept" } else { "; --store keeps it" };
            out::line(&format!("{}: {warmup} + {measured} steps{kept}", b.benchmark))?;
        }
    }
    Ok(())
}

fn of_files(options: &Options) -> Result<Vec<Traces>, Problem> {
    let fleet = input::fleet(&options.from, &options.reading).code(CONFIG)?;
    fleet.notes.iter().for_each(out::note);
    let traces = |metric: &input::Metric| Traces {
        metric: metric.id.clone(),
        direction: metric.direction,
        steps: (0..fleet.nodes.len()).map(|n| metric.values(n).to_vec()).filter(|v| Sample::new(v).is_ok()).collect(),
    };
    Ok(fleet.metrics.iter().map(traces).collect())
}

/// The series of a run, and with which profile they were taken.
fn of_run(options: &Options, config: &Config) -> Result<(Option<Profile>, Vec<Traces>), Problem> {
    let store = database::read(config)?;
    let run = session::run_of(&*store, options.run.as_deref())?;
    let mut found: BTreeMap<MetricId, Traces> = BTreeMap::new();
    for record in store.records(&run.id).code(IO)?.iter().filter(|r| muster_analysis::records::company(r).is_none()) {
        for (metric, series) in record.by_metric() {
            let (direction, steps) = (series[0].direction, joined(series));
            if Sample::new(&steps).is_ok() {
                let new = || Traces { metric: metric.clone(), direction, steps: Vec::new() };
                found.entry(metric.clone()).or_insert_with(new).steps.push(steps);
            }
        }
    }
    Ok((Some(run.profile), found.into_values().collect()))
}

//! `muster watch evaluate`: every method over recordings whose faults are known.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use muster_watch::minder::{Calls, Training};
use muster_watch::trial::{
    Around, Delay, Method, Model, Outcome, Plan, Rate, Recorded, Settings, Share, Summary, Teacher, Told, evaluate,
    learn,
};
use serde::Serialize;

use super::labelled::{self, Folder, LeftOut};
use crate::exit::{CONFIG, Code, Ended, PASS, Problem, UNDECIDED};
use crate::out;

/// Most bytes of a model file.
const LARGEST: u64 = 16 << 20;
/// The method that `muster watch` uses.
const DEFAULT: Method = Method::Muster;

/// When methods of Minder's kind look, and how they learn.
#[derive(Args, Debug)]
pub struct Looks {
    /// Seconds from one call of Minder to the next.
    #[arg(long, value_name = "SECONDS", default_value_t = 480, value_parser = clap::value_parser!(u32).range(8..=3_600))]
    pub every: u32,
    /// Cut values far outside the quartiles before a metric is scaled, so that one spike does not flatten everything else; not
    /// in the paper.
    #[arg(long)]
    pub clip: bool,
    /// Times that each window is shown to a network while it learns.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub epochs: u16,
    /// Seed of everything that is drawn.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

impl Looks {
    /// The same in the terms of the analysis.
    pub(super) fn settings(&self) -> Settings {
        let calls = Calls { every_s: self.every as usize, clip: self.clip, ..Calls::default() };
        let training = Training { epochs: usize::from(self.epochs), ..Training::default() };
        Settings { calls, training, seed: self.seed }
    }
}

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster watch evaluate recordings/                    all methods; each recording by what others taught
  muster watch evaluate recordings/ --json > scores.json
  muster watch evaluate recordings/ --method muster --method minder
  muster watch evaluate recordings/ --train others/    learn from one folder, score another
  muster watch evaluate recordings/ --model fleet.json what `muster watch learn` stored
  muster watch evaluate recordings/ --every 60         call Minder once a minute instead of every eight

A recording is a file that --from reads; its truth is the file NAME.truth.json beside it: {\"schema\": \"muster.watch.truth\", \
\"faulty\": [{\"node\", \"onset_s\", \"end_s\", \"detectable\"}]}, times in epoch seconds, an empty list where nobody is faulty. \
Methods that learn (all but muster) do so from recordings that they are not scored on: the folder is dealt into parts, and each \
part is scored by what the others taught. An alert is right if its machine is faulty when enough was seen to name it, or was up to \
60 s before. Intervals are 95 %. What stands in docs/WATCH.md says which method does what.

Exit codes: 0 scored, 3 no recording with a truth file (or, of methods that learn, nothing to learn from). 64 for a slip, 74 for \
a file that cannot be read, 78 for a recording, a truth or a model that is none; a bad recording or truth is named, and the others \
are scored all the same")]
pub struct Options {
    /// Folder with recordings and truth files.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Learn from the labelled recordings of this folder instead.
    #[arg(long, value_name = "DIR", conflicts_with = "model")]
    pub train: Option<PathBuf>,
    /// Use what `muster watch learn` stored, with its times of looking.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["every", "clip", "epochs", "seed"])]
    pub model: Option<PathBuf>,
    /// Parts that the folder is dealt into; as many as there are recordings leave out one at a time.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(2..=1_000), conflicts_with_all = ["train", "model"])]
    pub parts: u16,
    /// Only this method; may be given several times [default: all].
    #[arg(long, value_name = "NAME", value_parser = method)]
    pub method: Vec<Method>,
    /// When is looked, and how is learned.
    #[command(flatten)]
    pub looks: Looks,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

fn method(name: &str) -> Result<Method, String> {
    let known = || Method::ALL.map(Method::name).join(", ");
    Method::named(name).ok_or_else(|| format!("one of {}", known()))
}

/// The published document, `assets/schemas/muster.watch-evaluation.json`.
#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    version: u32,
    recordings: Vec<Row<'a>>,
    left_out: Vec<&'a LeftOut>,
    /// `parts`, `folder` or `model`.
    taught_by: &'static str,
    parts: Option<u16>,
    /// Seconds from one call of Minder to the next, and whether values are cut before they are scaled.
    every_s: usize,
    clip: bool,
    /// Recordings that were scored and learned from.
    seen: Vec<&'a str>,
    default_method: &'static str,
    /// The method with the largest F1; of equals the first.
    best_method: Option<&'static str>,
    methods: Vec<Scored<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    kind: &'a str,
    nodes: usize,
    metrics: usize,
    seconds: usize,
    faults: usize,
}

#[derive(Serialize)]
struct Scored<'a> {
    method: Method,
    title: &'static str,
    /// Recordings that it could not go through, as there was nothing to learn from.
    not_run: usize,
    cpu_s: f64,
    #[serde(flatten)]
    summary: Summary,
    recordings: Vec<Each<'a>>,
}

#[derive(Serialize)]
struct Each<'a> {
    name: &'a str,
    told: &'a [Told],
    /// Of each fault of its truth.
    delays_s: &'a [Option<f64>],
}

/// CPU time of this process, and standard error.
struct Console;

impl Around for Console {
    fn cpu(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
    }

    fn begins(&mut self, what: &str) {
        out::note(what);
    }
}

/// Reads, scores, prints.
pub(super) fn run(options: &Options) -> Ended {
    let model = options.model.as_deref().map(stored).transpose()?;
    let folder = labelled::read(&options.folder)?;
    folder.tell();
    let teachers = options.train.as_deref().map(labelled::read).transpose()?;
    teachers.iter().for_each(Folder::tell);
    let methods: Vec<Method> = if options.method.is_empty() {
        Method::ALL.to_vec()
    } else {
        Method::ALL.into_iter().filter(|method| options.method.contains(method)).collect()
    };
    let settings = options.looks.settings();
    let model = match teachers.as_ref() {
        None => model,
        Some(teachers) if teachers.recordings.is_empty() => {
            let error = anyhow!("--train: no recording with a truth file in it");
            return Err(Problem { code: teachers.code.unwrap_or(UNDECIDED), error });
        }
        Some(teachers) => {
            let all: Vec<&Recorded> = teachers.recordings.iter().collect();
            Console.begins(&format!("learning from {}", out::counted(all.len(), "recording", "recordings")));
            Some(learn(&all, &methods, &settings))
        }
    };
    let teacher = model.as_ref().map_or(Teacher::Parts(usize::from(options.parts)), Teacher::Model);
    let outcomes = evaluate(&folder.recordings, &Plan { methods: &methods, settings, teacher }, &mut Console);
    let seen = model.as_ref().map(|model| model.has_seen(&folder.recordings)).unwrap_or_default();
    let calls = model.as_ref().map_or(settings.calls, |model| Calls {
        every_s: model.every_s,
        back_s: model.back_s,
        clip: model.clip,
    });
    if options.json {
        out::json(&report(options, &folder, &outcomes, calls, seen))?;
    } else {
        table(&folder, &outcomes, &seen)?;
        let cut = if calls.clip { ", values cut far outside the quartiles" } else { "" };
        out::line(&format!("Minder is called every {} s{cut}", calls.every_s))?;
    }
    let code = teachers.and_then(|teachers| teachers.code).or(folder.code);
    let is_scored = outcomes.iter().any(|outcome| !outcome.each.is_empty());
    Ok(code.unwrap_or(if is_scored { PASS } else { UNDECIDED }))
}

/// A model that was stored.
fn stored(file: &Path) -> Result<Model, Problem> {
    let name = || file.display().to_string();
    let bytes = labelled::bounded(file, LARGEST).with_context(name).code(CONFIG)?;
    let text = String::from_utf8(bytes).map_err(|_| anyhow!("no model of `muster watch learn`: it is no text"));
    Model::from_json(&text.with_context(name).code(CONFIG)?).with_context(name).code(CONFIG)
}

fn report<'a>(
    options: &Options,
    folder: &'a Folder,
    outcomes: &'a [Outcome],
    calls: Calls,
    seen: Vec<&'a str>,
) -> Report<'a> {
    let row = |recorded: &'a Recorded| {
        let (nodes, metrics) = recorded.grid.size();
        let (name, kind, faults) = (&recorded.name, &recorded.truth.kind, recorded.truth.faults.len());
        Row { name, kind, nodes, metrics, seconds: recorded.grid.seconds(), faults }
    };
    let each = |each: &'a muster_watch::trial::Each| Each {
        name: &folder.recordings[each.recording].name,
        told: &each.told,
        delays_s: &each.delays_s,
    };
    let scored = |outcome: &'a Outcome| Scored {
        method: outcome.method,
        title: outcome.method.title(),
        not_run: outcome.not_run,
        cpu_s: outcome.cpu.as_secs_f64(),
        summary: outcome.tally.summary(),
        recordings: outcome.each.iter().map(each).collect(),
    };
    let taught_by = match (&options.train, &options.model) {
        (Some(_), _) => "folder",
        (_, Some(_)) => "model",
        _ => "parts",
    };
    Report {
        schema: "muster.watch-evaluation",
        version: 1,
        recordings: folder.recordings.iter().map(row).collect(),
        left_out: folder.bad.iter().chain(&folder.unlabelled).collect(),
        taught_by,
        parts: (taught_by == "parts").then_some(options.parts),
        every_s: calls.every_s,
        clip: calls.clip,
        seen,
        default_method: DEFAULT.name(),
        best_method: best(outcomes).map(Method::name),
        methods: outcomes.iter().map(scored).collect(),
        notes: &folder.notes,
    }
}

/// The method with the largest F1.
fn best(outcomes: &[Outcome]) -> Option<Method> {
    let worth = |outcome: &Outcome| outcome.tally.summary().f1.filter(|_| outcome.not_run == 0);
    let scored = outcomes.iter().filter_map(|outcome| Some((outcome.method, worth(outcome)?)));
    scored.reduce(|best, one| if one.1 > best.1 { one } else { best }).map(|(method, _)| method)
}

fn table(folder: &Folder, outcomes: &[Outcome], seen: &[&str]) -> Result<(), Problem> {
    let header = [
        "method",
        "precision",
        "recall",
        "of detectable",
        "F1",
        "delay s",
        "false alarms a machine-day",
        "clean accused",
        "CPU s",
    ];
    let cells = |outcome: &Outcome| {
        let of = outcome.tally.summary();
        let f1 = of.f1.map_or("-".to_owned(), |f1| format!("{f1:.3}"));
        let mut cells = vec![
            outcome.method.title().to_owned(),
            share(&of.precision),
            share(&of.recall),
            share(&of.recall_detectable),
            f1,
        ];
        cells.extend([of.delay.as_ref().map_or("-".to_owned(), delay), rate(&of.false_alarms)]);
        cells.extend([
            format!("{} of {}", of.clean_accused.count, of.clean_accused.of),
            format!("{:.1}", outcome.cpu.as_secs_f64()),
        ]);
        cells
    };
    let rows: Vec<Vec<String>> = outcomes.iter().filter(|outcome| !outcome.each.is_empty()).map(cells).collect();
    if !rows.is_empty() {
        out::line(&out::table(&header, &rows))?;
    }
    for outcome in outcomes.iter().filter(|outcome| outcome.not_run > 0) {
        let missed = out::counted(outcome.not_run, "recording", "recordings");
        out::note(format_args!(
            "{}: {missed} not scored, as there was nothing to learn from; give --train or --model",
            outcome.method.title()
        ));
    }
    if !seen.is_empty() {
        let names = seen.join(", ");
        out::note(format_args!("scored on recordings that were learned from, so the figures are too good: {names}"));
    }
    let days: f64 = folder.recordings.iter().map(Recorded::machine_days).sum();
    let best = best(outcomes).map_or(String::new(), |best| format!(", largest F1: {}", best.title()));
    let recordings = out::counted(folder.recordings.len(), "recording", "recordings");
    out::line(&format!("{recordings}, {days:.2} machine-days; intervals are 95 %{best}"))
}

/// `1.00 (16/16, 0.81-1.00)`.
fn share(share: &Share) -> String {
    let value = share.value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    format!("{value} ({}/{}, {:.2}-{:.2})", share.count, share.of, share.low, share.high)
}

fn rate(rate: &Rate) -> String {
    format!("{:.2} ({}, {:.2}-{:.2})", rate.value, rate.count, rate.low, rate.high)
}

fn delay(delay: &Delay) -> String {
    let error = delay.error_s.map_or(String::new(), |error| format!(" ±{error:.0}"));
    format!("{:.0}{error} (n {})", delay.mean_s, delay.count)
}

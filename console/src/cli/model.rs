//! `muster model`: train, look at and judge models of how likely each node is to have an incident.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use muster_analysis::risk::evaluate::{
    Bench, Plan, Split, Summary, by_fold, by_node, by_time, cross_validate, summarise,
};
use muster_analysis::risk::import::{Columns, Limits, survival_file};
use muster_analysis::risk::{Choice, Kind, Samples, Saved, Settings, choose, trained};
use muster_playbook::report::rfc3339;
use muster_store::Store;
use serde::Serialize;

use super::select::{log_of, model_of};
use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, IO, PASS, Problem, UNDECIDED, USAGE};
use crate::options::positive;
use crate::patience::Patience;
use crate::risk::{CAP_H, Log, incident_settings};
use crate::session::REGULAR;
use crate::{clock, database, input, out, session};

/// What to do.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  muster model train
  muster model train --incidents log.csv --nodes 400 --hours 8352 --out model.json
  muster model evaluate --incidents log.csv --nodes 400 --hours 8352 --json
  muster model evaluate --from support.csv --duration duration --event event --fold fold --model cox_time --json
  muster model show

Models: exponential, exponential_per_count, exponential_per_hour, kaplan_meier, weibull, cox, cox_time.")]
pub enum Action {
    /// Train on the incident log and save the model that is best on the last 30 % of the time.
    Train(Train),
    /// Show a saved model: how it was chosen, and what each feature does.
    #[command(after_help = "Examples:\n  muster model show\n  muster model show model.json --json")]
    Show {
        /// Version, or a file; the newest when left out.
        model: Option<String>,
        /// The saved model as JSON on standard output.
        #[arg(long)]
        json: bool,
    },
    /// Evaluate the models on data they have not seen.
    Evaluate(Evaluate),
    /// List saved models, newest first.
    #[command(after_help = "Example:\n  muster model list")]
    List,
}

/// An incident log other than the database's.
#[derive(Args, Debug)]
pub struct File {
    /// Incidents of this CSV (node,start_h,end_h,category) instead of the database's.
    #[arg(long, value_name = "FILE")]
    pub incidents: Option<PathBuf>,
    /// Nodes there were, those without incidents included.
    #[arg(long, value_name = "N", requires = "incidents")]
    pub nodes: Option<usize>,
    /// Length of the log in hours, above 0 and below 1,000,000; its last incident ends it when left out.
    #[arg(long, value_name = "H", requires = "incidents", value_parser = positive)]
    pub hours: Option<f64>,
}

/// Options of `train`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  muster model train\n  muster model train --incidents log.csv --nodes 400 --hours 8352 --out model.json"
)]
pub struct Train {
    /// Which log.
    #[command(flatten)]
    pub log: File,
    /// This kind instead of the best one.
    #[arg(long, value_name = "NAME", value_parser = kind)]
    pub model: Option<Kind>,
    /// Write the model to this file instead of the database.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Options of `evaluate`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  muster model evaluate --incidents log.csv --nodes 400 --hours 8352\n  muster model evaluate --from support.csv --duration duration --event event --fold fold --model cox_time --json"
)]
pub struct Evaluate {
    /// Survival data instead of the incident log: a CSV of numbers.
    #[arg(long, value_name = "FILE", conflicts_with = "incidents")]
    pub from: Option<PathBuf>,
    /// Column of observed times.
    #[arg(long, value_name = "COL", default_value = "duration")]
    pub duration: String,
    /// Event column: 1 = failed, 0 = censored.
    #[arg(long, value_name = "COL", default_value = "event")]
    pub event: String,
    /// Its column of folds: fold k judges, the next one stops the training; five in turn when left out.
    #[arg(long, value_name = "COL")]
    pub fold: Option<String>,
    /// Columns that are not features, separated by commas.
    #[arg(long, value_name = "COL", value_delimiter = ',')]
    pub ignore: Vec<String>,
    /// Which incident log.
    #[command(flatten)]
    pub log: File,
    /// Only this kind.
    #[arg(long, value_name = "NAME", value_parser = kind)]
    pub model: Option<Kind>,
    /// Seeds of the network.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub seeds: u64,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

fn kind(name: &str) -> Result<Kind, String> {
    Kind::named(name).ok_or_else(|| format!("one of {}", Kind::ALL.map(Kind::name).join(", ")))
}

/// The published document.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    version: u32,
    /// `fold`: by the file's folds; `node`: all rows of a node on one side.
    split: &'static str,
    models: Vec<Summary>,
    /// The same models trained on the first part of an incident log and judged on the rest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    by_time: Vec<Summary>,
    /// The kind that `train` would keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    choice: Option<Choice>,
}

/// Does it.
pub fn run(action: &Action, config: &Config) -> Ended {
    match action {
        Action::Train(options) => train(options, config),
        Action::Show { model, json } => show(model.as_deref(), *json, config),
        Action::Evaluate(options) => match &options.from {
            Some(file) => of_file(file, options),
            None => of_log(options, config),
        },
        Action::List => list(config),
    }
}

fn rows(file: &File, config: &Config) -> Result<(Log, Samples), Problem> {
    let log = match &file.incidents {
        Some(path) => log_of(path, file.nodes, file.hours)?,
        None => {
            let full = session::playbook(REGULAR)?;
            let store = database::read(config)?;
            let runs = store.runs().code(IO)?;
            Log::stored(&*store, &runs, &full, clock::now_ms()).code(IO)?
        }
    };
    let samples = log.samples(&log.history(&[])).code(CONFIG)?;
    if samples.table.events() == 0 {
        let why = "the log has no incident to learn from; muster incidents import takes one over";
        return Err(Problem { code: UNDECIDED, error: anyhow!(why) });
    }
    Ok((log, samples))
}

fn train(options: &Train, config: &Config) -> Ended {
    let (log, samples) = rows(&options.log, config)?;
    let kinds = options.model.map_or(Kind::ALL.to_vec(), |kind| vec![kind]);
    let patience = Patience::new(format!("training {}", out::counted(kinds.len(), "model", "models")));
    let saved = trained(&kinds, &samples, log.window, CAP_H, &incident_settings()).code(UNDECIDED)?;
    drop(patience);
    let text = saved.to_json().code(IO)?;
    let place = match &options.out {
        Some(file) => {
            std::fs::write(file, text + "\n").with_context(|| file.display().to_string()).code(IO)?;
            file.display().to_string()
        }
        None => format!("model {}", database::write(config)?.put_model(text.as_bytes()).code(IO)?),
    };
    out::line(&format!("{place}: {}", about(&saved)))?;
    Ok(PASS)
}

fn about(saved: &Saved) -> String {
    let (rows, events) = saved.trained_on;
    let why = saved.choice.as_ref().map_or("named by a person", |c| c.reason.as_str());
    let kind = saved.model.kind().name();
    format!("{kind}, {rows} rows ({events} before an incident) over {:.0} h; {why}", saved.hours)
}

fn show(model: Option<&str>, json: bool, config: &Config) -> Ended {
    let file = model.filter(|name| std::path::Path::new(name).exists());
    let saved = match (file, model.map(str::parse::<u64>)) {
        (Some(file), _) => model_of(file.as_ref())?,
        (None, Some(Err(_))) => {
            let why = anyhow!("'{}' is no version and no file; see muster model list", model.unwrap_or_default());
            return Err(Problem { code: USAGE, error: why });
        }
        (None, version) => {
            let bytes = database::read(config)?.model(version.and_then(Result::ok)).code(IO)?;
            let bytes =
                bytes.ok_or_else(|| anyhow!("there is no such model; muster model train makes one")).code(USAGE)?;
            Saved::from_json(&String::from_utf8_lossy(&bytes)).code(IO)?
        }
    };
    if json {
        out::json(&saved)?;
        return Ok(PASS);
    }
    out::line(&about(&saved))?;
    if let Some(choice) = &saved.choice {
        let rows: Vec<Vec<String>> = choice
            .candidates
            .iter()
            .map(|c| {
                let ibs = c.ibs.map_or_else(|| c.why.clone().unwrap_or_default(), |ibs| format!("{ibs:.4}"));
                vec![c.kind.name().to_owned(), ibs]
            })
            .collect();
        out::line(&format!("\n{}", out::table(&["model", "Brier score on held-out time"], &rows)))?;
    }
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let rows: Vec<Vec<String>> =
        saved.effects.iter().take(10).map(|e| vec![e.name.clone(), percent(e.risk.0), percent(e.risk.1)]).collect();
    out::line(&format!("\n{}", out::table(&["feature", "30-day risk at its low", "and at its high end"], &rows)))?;
    Ok(PASS)
}

fn list(config: &Config) -> Ended {
    let store = database::read(config)?;
    let mut rows = Vec::new();
    for seen in store.models().code(IO)?.into_iter().rev() {
        let bytes = store.model(Some(seen.version)).code(IO)?.unwrap_or_default();
        let what = Saved::from_json(&String::from_utf8_lossy(&bytes)).map_or_else(|why| why.to_string(), |s| about(&s));
        rows.push(vec![seen.version.to_string(), rfc3339(seen.at_ms), what]);
    }
    out::line(&out::table(&["version", "trained", "model"], &rows))?;
    Ok(PASS)
}

fn of_file(file: &std::path::Path, options: &Evaluate) -> Ended {
    let columns = Columns {
        duration: options.duration.clone(),
        event: options.event.clone(),
        fold: options.fold.clone(),
        ignore: options.ignore.clone(),
        log1p: false,
    };
    let text = input::text(file).code(CONFIG)?;
    let data = survival_file(&text, &columns, Limits::default()).with_context(|| file.display().to_string());
    let data = data.code(CONFIG)?;
    let splits = by_fold(&data.table, &data.fold);
    let plan = |split: &Split| Plan::hundred(&split.test);
    let models = judged(options, &splits, &Settings::default(), &plan)?;
    print(
        &Report { schema: "muster.model", version: 1, split: "fold", models, by_time: Vec::new(), choice: None },
        options,
    )
}

fn of_log(options: &Evaluate, config: &Config) -> Ended {
    let (log, samples) = rows(&options.log, config)?;
    let (settings, plan) = (incident_settings(), |_: &Split| Plan::hours(CAP_H));
    let models = judged(options, &by_node(&samples.table, &samples.node, 5, 0), &settings, &plan)?;
    let cut = log.window.start_h + 0.7 * (log.window.end_h - log.window.start_h);
    let later = [by_time(&samples.table, &samples.node, &samples.at_h, cut, 0)];
    let by_time = judged(options, &later, &settings, &plan)?;
    let choice = match options.model {
        Some(_) => None,
        None => {
            let _patience = Patience::new("choosing the model that train would keep");
            Some(choose(&Kind::ALL, &samples, cut, &Plan::hours(CAP_H), &settings).code(UNDECIDED)?)
        }
    };
    print(&Report { schema: "muster.model", version: 1, split: "node", models, by_time, choice }, options)
}

/// `evaluating cox_time, model 7 of 7, on 5 splits`.
fn evaluating(kind: Kind, (at, of): (usize, usize), splits: usize) -> String {
    let splits = out::counted(splits, "split", "splits");
    format!("evaluating {}, model {at} of {of}, on {splits} of the data", kind.name())
}

/// Scores of every kind asked for; one that cannot be fitted to these rows is told and left out.
fn judged(
    options: &Evaluate,
    splits: &[Split],
    settings: &Settings,
    plan: &dyn Fn(&Split) -> Plan,
) -> Result<Vec<Summary>, Problem> {
    let kinds = options.model.map_or(Kind::ALL.to_vec(), |kind| vec![kind]);
    let start = Instant::now();
    let mut found = Vec::new();
    for (at, kind) in kinds.iter().copied().enumerate() {
        let patience = Patience::new(evaluating(kind, (at + 1, kinds.len()), splits.len()));
        let mut clock = || start.elapsed().as_secs_f64();
        let mut bench = Bench { plan, clock: &mut clock };
        let runs = cross_validate(kind, splits, settings, options.seeds, &mut bench);
        drop(patience);
        match runs {
            Ok(runs) => found.extend(summarise(&runs)),
            Err(why) => out::note(format_args!("{}: {why}", kind.name())),
        }
    }
    if found.is_empty() {
        Err(Problem { code: UNDECIDED, error: anyhow!("no model can be fitted") })
    } else {
        Ok(found)
    }
}

fn print(report: &Report, options: &Evaluate) -> Ended {
    if options.json {
        out::json(report)?;
        return Ok(PASS);
    }
    out::line(&format!("split by {}\n{}", report.split, scores(&report.models)))?;
    if !report.by_time.is_empty() {
        out::line(&format!("\nsplit by time\n{}", scores(&report.by_time)))?;
    }
    if let Some(choice) = &report.choice {
        out::line(&format!("\nchoice: {}", choice.reason))?;
    }
    Ok(PASS)
}

fn scores(models: &[Summary]) -> String {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.4}"));
    let list = |values: &[f64]| values.iter().map(|v| format!("{v:.4}")).collect::<Vec<_>>().join(" ");
    let row = |m: &Summary| {
        let lift: Vec<String> = m.lift.iter().map(|l| l.map_or("-".to_owned(), |l| format!("{l:.1}"))).collect();
        vec![
            m.name.to_owned(),
            m.runs.to_string(),
            format!("{} ±{}", number(m.ctd), number(m.ctd_sd)),
            format!("{:.4} ±{:.4}", m.ibs, m.ibs_sd),
            format!("{:.4}", m.inbll),
            list(&m.brier),
            list(&m.calibration),
            lift.join(" "),
            format!("{} {}", number(m.accuracy_median), number(m.accuracy_mean)),
            format!("{:.3} {:.3}", m.fit_s, m.predict_s),
        ]
    };
    let head =
        ["model", "runs", "C^td", "IBS", "INBLL", "Brier 24 168 720 h", "calibration error", "lift", "accuracy", "s"];
    out::table(&head, &models.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_an_evaluation_hears_which_model_it_is_at() {
        let said = evaluating(Kind::CoxTime, (7, 7), 5);
        assert_eq!(said, "evaluating cox_time, model 7 of 7, on 5 splits of the data");
        assert!(evaluating(Kind::Cox, (1, 1), 1).ends_with("on 1 split of the data"));
    }
}

//! `muster select`: which benchmarks should run on which nodes before a job, and why.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;
use muster_analysis::risk::Saved;
use muster_analysis::risk::import::{Limits, csv_incidents};
use muster_fleet::hostlist;

use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, PASS, Problem, USAGE};
use crate::options::{Ask, Pick};
use crate::risk::{Advice, Basis, Log, Measured};
use crate::session::{REGULAR, stored_basis};
use crate::{database, input, out, session};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster select -w 'node[001-064]' --job-hours 72
  muster select -w @rack7 --job-hours 24 --budget 10 --json
  muster select --incidents log.csv --job-hours 168 --p0 0.2
  muster run regular -w @rack7 --job-hours 24      runs what select picks

Without --p0, nodes are validated if an incident is expected before the job ends: above a probability \
of 0.63 that any node fails.")]
pub struct Options {
    /// Which nodes.
    #[command(flatten)]
    pub pick: Pick,
    /// About which job.
    #[command(flatten)]
    pub ask: Ask,
    /// Where the history comes from.
    #[command(flatten)]
    pub from: From,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Where the history comes from.
#[derive(Args, Clone, Debug, Default)]
pub struct From {
    /// Incidents of this CSV instead of the database's.
    #[arg(long, value_name = "FILE")]
    pub incidents: Option<PathBuf>,
    /// This saved model instead of the database's newest.
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
}

/// Answers.
pub fn run(options: &Options, config: &Config) -> Ended {
    let ask = options.ask.question();
    let basis = basis(&options.pick, &options.from, config, ask.job_hours)?;
    let advice = Advice::new(&basis, &ask);
    if options.json {
        out::json(&advice)?;
    } else {
        print(&advice)?;
    }
    Ok(PASS)
}

/// What answers about a job of `hours` rest on.
///
/// # Errors
/// When the nodes, the files or the database cannot be read.
pub fn basis(pick: &Pick, from: &From, config: &Config, hours: f64) -> Result<Basis, Problem> {
    let playbook = session::playbook(REGULAR)?;
    let read = |file: &PathBuf| Ok::<_, Problem>((model_of(file)?, file.display().to_string()));
    let given = from.model.as_ref().map(read).transpose()?;
    let named = || Ok::<_, Problem>(session::nodes(config, pick)?.into_iter().map(|n| n.name).collect::<Vec<_>>());
    let Some(file) = &from.incidents else {
        return stored_basis(&*database::read(config)?, (&named()?, &playbook), given, vec![hours]);
    };
    let log = log_of(file, None, None)?;
    let all = || log.history(&[]).nodes().map(|(name, _)| name.to_owned()).collect();
    let names = if pick.names() { named()? } else { all() };
    if names.is_empty() {
        return Err(Problem { code: USAGE, error: anyhow!("no node is named and the log has none") });
    }
    Basis::new(&log, &Measured::default(), given, (&names, &playbook), vec![hours]).code(CONFIG)
}

/// The incident log of a CSV file.
///
/// # Errors
/// When it cannot be read; the message names file and line.
pub fn log_of(file: &std::path::Path, nodes: Option<usize>, hours: Option<f64>) -> Result<Log, Problem> {
    let name = file.display().to_string();
    let parsed =
        csv_incidents(&input::text(file).code(CONFIG)?, Limits::default()).context(name.clone()).code(CONFIG)?;
    for error in &parsed.errors {
        eprintln!("{name}: {}", muster_wire::clean(&error.to_string(), 300));
    }
    Ok(Log::of_file(parsed.incidents, nodes.unwrap_or(0), hours))
}

/// A model saved in a file.
///
/// # Errors
/// When it cannot be read or is none.
pub fn model_of(file: &std::path::Path) -> Result<Saved, Problem> {
    let text = input::text(file).code(CONFIG)?;
    Saved::from_json(&text).with_context(|| file.display().to_string()).code(CONFIG)
}

fn print(advice: &Advice) -> Result<(), Problem> {
    let model = advice.model.name.unwrap_or("no model");
    out::line(&format!(
        "job of {} h on {}: risk {:.2} that any node fails, {:.2} acceptable ({model}; {})",
        advice.job_hours,
        out::counted(advice.nodes.len(), "node", "nodes"),
        advice.joint_risk,
        advice.p0,
        advice.model.reason
    ))?;
    out::line(&advice.selection.reason)?;
    let picks: Vec<Vec<String>> = advice
        .selection
        .picks
        .iter()
        .map(|p| {
            vec![p.benchmark.clone(), format!("{:.1}", p.minutes), format!("{:.3}", p.risk_after), p.reason.clone()]
        })
        .collect();
    if !picks.is_empty() {
        out::line(&format!("\n{}", out::table(&["benchmark", "minutes", "risk after", "why"], &picks)))?;
        out::line(&format!("\non {}", hostlist::fold(advice.validate.iter().map(String::as_str))))?;
    }
    let rows: Vec<Vec<String>> = advice
        .nodes
        .iter()
        .take(20)
        .map(|n| {
            let state = match (n.down, n.validate) {
                (true, _) => "down",
                (false, true) => "validate",
                (false, false) => "",
            };
            let quiet = n.quiet_hours.map_or("-".to_owned(), |h| format!("{h:.0}"));
            vec![n.node.clone(), format!("{:.3}", n.risk), n.incidents.to_string(), quiet, state.to_owned()]
        })
        .collect();
    out::line(&format!("\n{}", out::table(&["node", "risk", "incidents", "quiet h", ""], &rows)))?;
    let left = advice.nodes.len().saturating_sub(20);
    if left > 0 {
        out::line(&format!("and {left} with less risk"))?;
    }
    Ok(())
}

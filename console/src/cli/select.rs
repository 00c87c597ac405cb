//! `muster select`: which benchmarks should run on which nodes before a job, and why.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, anyhow};
use clap::Args;
use muster_analysis::risk::Saved;
use muster_analysis::risk::import::{Limits, csv_incidents};
use muster_analysis::service::Service;
use muster_fleet::hostlist;
use muster_store::Store;

use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, IO, PASS, Problem, USAGE};
use crate::options::{Ask, Pick};
use crate::risk::{Advice, Basis, Log, Measured};
use crate::service::{Standing, services};
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
    let (basis, held) = basis(&options.pick, &options.from, config, (ask.job_hours, None))?;
    let (advice, Held { nodes: held, .. }) = (Advice::new(&basis, &ask), held?);
    if let Some(told) = told(&held) {
        out::note(told);
    }
    if options.json {
        out::json(&advice)?;
    } else {
        print(&advice, &held)?;
    }
    Ok(PASS)
}

/// The nodes that no job may have: in repair, defective, or kept as spares.
pub struct Held {
    /// These nodes.
    pub nodes: Vec<Standing>,
    /// Whether time was left for all runs that may say so.
    pub whole: bool,
}

/// What answers about a job of `hours` rest on, and the nodes that no job may have, or why that cannot be told. No run is looked into for these
/// after `until`.
///
/// # Errors
/// When the nodes, the files or the database cannot be read.
pub fn basis(
    pick: &Pick,
    from: &From,
    config: &Config,
    (hours, until): (f64, Option<Instant>),
) -> Result<(Basis, Result<Held, Problem>), Problem> {
    let playbook = session::playbook(REGULAR)?;
    let read = |file: &PathBuf| Ok::<_, Problem>((model_of(file)?, file.display().to_string()));
    let given = from.model.as_ref().map(read).transpose()?;
    let named = || Ok::<_, Problem>(session::nodes(config, pick)?.into_iter().map(|n| n.name).collect::<Vec<_>>());
    let Some(file) = &from.incidents else {
        let (store, names) = (database::read(config)?, named()?);
        let basis = stored_basis(&*store, (&names, &playbook), given, vec![hours])?;
        return Ok((basis, held(&*store, config, &names, until)));
    };
    let log = log_of(file, None, None)?;
    let all = || log.history(&[]).nodes().map(|(name, _)| name.to_owned()).collect();
    let names = if pick.names() { named()? } else { all() };
    if names.is_empty() {
        return Err(Problem { code: USAGE, error: anyhow!("no node is named and the log has none") });
    }
    let basis = Basis::new(&log, &Measured::default(), given, (&names, &playbook), vec![hours]).code(CONFIG)?;
    // A file of incidents knows nothing of repairs and spares.
    Ok((basis, Ok(Held { nodes: Vec::new(), whole: true })))
}

/// Those of `names` that no job may have, by what is looked into until then.
///
/// # Errors
/// When the database cannot be read.
pub fn held(store: &dyn Store, config: &Config, names: &[String], until: Option<Instant>) -> Result<Held, Problem> {
    let nodes: Vec<_> = names.iter().map(|name| (name.clone(), BTreeMap::new())).collect();
    let (mut nodes, whole) = services(store, &session::params(config), &nodes, until).code(IO)?;
    nodes.retain(|one| matches!(one.service, Service::InRepair | Service::Defective | Service::HotBuffer));
    Ok(Held { nodes, whole })
}

/// Nodes that are named with their reasons; the others are counted.
const NAMED: usize = 3;

/// In whose hands the nodes are that no job may have, and why; `None` without any.
pub fn told(held: &[Standing]) -> Option<String> {
    let of = |state: Service| {
        let all: Vec<&Standing> = held.iter().filter(|one| one.service == state).collect();
        let mut said: Vec<String> = all.iter().take(NAMED).map(|one| sentence(one)).collect();
        if all.len() > NAMED {
            let more = hostlist::fold(all[NAMED..].iter().map(|one| one.machine.name.as_str()));
            said.push(format!("so {} {more}", if all.len() == NAMED + 1 { "is" } else { "are" }));
        }
        said
    };
    let said: Vec<String> =
        [Service::InRepair, Service::Defective, Service::HotBuffer].into_iter().flat_map(of).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// `n007 is in repair, by kim: RMA 4711`.
fn sentence(one: &Standing) -> String {
    let name = &one.machine.name;
    let state = if one.service == Service::HotBuffer { "in the hot buffer" } else { one.service.title() };
    let mut said = format!("{name} is {state}");
    if !one.who.is_empty() {
        said += &format!(", by {}", one.who);
    }
    // Many a reason begins with the name.
    let why = one.why.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(&one.why);
    if !why.is_empty() {
        said += &format!(": {why}");
    }
    said
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
        out::note(format_args!("{name}: {}", muster_wire::clean(&error.to_string(), 300)));
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

fn print(advice: &Advice, held: &[Standing]) -> Result<(), Problem> {
    let held: HashMap<&str, &str> = held.iter().map(|one| (one.machine.name.as_str(), one.service.title())).collect();
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
            let state = match (held.get(n.node.as_str()).copied(), n.down, n.validate) {
                (Some(state), ..) => state,
                (None, true, _) => "down",
                (None, false, true) => "validate",
                (None, false, false) => "",
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

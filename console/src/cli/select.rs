//! `muster select`: which benchmarks should run on which nodes before a job, and why.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, anyhow};
use clap::Args;
use muster_analysis::risk::Saved;
use muster_analysis::risk::import::{Limits, csv_incidents};
use muster_analysis::selector::apart;
use muster_analysis::service::Service;
use muster_fleet::hostlist;
use muster_run::{LINK, Run};
use muster_store::{Store, StoreError};
use muster_wire::Outcome;

use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, IO, PASS, Problem, USAGE};
use crate::options::{Ask, Pick};
use crate::risk::{Advice, Basis, Log, Measured};
use crate::service::{Counterpart, Standing, services};
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
    if let Some(why) = unknown(&basis, &options.from) {
        out::note(format_args!("{why}: the risk is the model's alone, and muster gate asks for every benchmark first"));
    }
    if let Some(told) = told(&held) {
        out::note(told);
    }
    if options.json {
        out::json(&advice)?;
    } else {
        print(&advice, (&held, &basis.unmeasured))?;
    }
    Ok(PASS)
}

/// The nodes that no job may have: in repair, defective, or kept as spares.
pub struct Held {
    /// These nodes.
    pub nodes: Vec<Standing>,
    /// Whether time was left for all runs that may say so.
    pub whole: bool,
    /// Of the nodes that are asked about and that the newest attempt could not reach: why.
    pub unreached: Vec<String>,
}

impl Held {
    /// No node, where nothing is known of it.
    pub const NOBODY: Self = Self { nodes: Vec::new(), whole: true, unreached: Vec::new() };
}

/// Why nothing is known of some nodes: `n7 never was measured here`; `None` where something is known of all.
pub fn unknown(basis: &Basis, from: &From) -> Option<String> {
    let names = hostlist::fold(basis.unmeasured.iter().map(String::as_str));
    let one = basis.unmeasured.len() == 1;
    let said = |one_is: &str, many_are: &str| format!("{names} {}", if one { one_is } else { many_are });
    match &from.incidents {
        _ if basis.unmeasured.is_empty() => None,
        None => Some(said("never was measured here", "never were measured here")),
        Some(file) => Some(format!("{} in {}", said("is not", "are not"), file.display())),
    }
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
    let basis = Basis::new(&log, &Measured::of_file(&log), given, (&names, &playbook), vec![hours]).code(CONFIG)?;
    // A file of incidents knows nothing of repairs and spares.
    Ok((basis, Ok(Held::NOBODY)))
}

/// Those of `names` that no job may have, by what is looked into until then.
///
/// # Errors
/// When the database cannot be read.
pub fn held(store: &dyn Store, config: &Config, names: &[String], until: Option<Instant>) -> Result<Held, Problem> {
    let nodes: Vec<_> = names.iter().map(|name| (name.clone(), BTreeMap::new())).collect();
    let runs = store.runs().code(IO)?;
    let (mut nodes, whole) = services((store, &runs), &session::params(config), &nodes, until).code(IO)?;
    nodes.retain(|one| matches!(one.service, Service::InRepair | Service::Defective | Service::HotBuffer));
    Ok(Held { nodes, whole, unreached: unreached((store, &runs), names, until).code(IO)? })
}

/// Runs that are looked into for whether they reached a node, newest first.
const ATTEMPTS: usize = 16;

/// Why the newest attempt at each of `names` could not reach it; nothing of those that it reached.
fn unreached(
    (store, runs): (&dyn Store, &[Run]),
    names: &[String],
    until: Option<Instant>,
) -> Result<Vec<String>, StoreError> {
    let mut asked: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let mut found = Vec::new();
    for run in runs.iter().take(ATTEMPTS) {
        if asked.is_empty() || until.is_some_and(|until| Instant::now() >= until) {
            break;
        }
        let known = store.overview(&run.id)?;
        let of_run = known.nodes.iter().filter(|node| asked.remove(node.name.as_str()) && !node.done);
        let lost: Vec<&str> = of_run.map(|node| node.name.as_str()).collect();
        if lost.is_empty() {
            continue;
        }
        for one in store.summaries_of(&run.id, &lost)? {
            if let (LINK, Outcome::Failed(why)) = (one.work.as_str(), one.outcome) {
                found.push(why);
            }
        }
    }
    Ok(found)
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
    if let Some(other @ Counterpart::ReplacedBy { .. }) = &one.counterpart {
        said += &format!(" ({})", other.sentence());
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
    for error in parsed.errors.iter().chain(&parsed.doubts) {
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

fn print(advice: &Advice, (held, unmeasured): (&[Standing], &[String])) -> Result<(), Problem> {
    let held: HashMap<&str, &str> = held.iter().map(|one| (one.machine.name.as_str(), one.service.title())).collect();
    let model = advice.model.name.unwrap_or("no model");
    let (risk, acceptable) = apart(advice.joint_risk, advice.p0);
    out::line(&format!(
        "job of {} h on {}: risk {risk} that any node fails, {acceptable} acceptable ({model}; {})",
        advice.job_hours,
        out::counted(advice.nodes.len(), "node", "nodes"),
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
                (None, false, false) if unmeasured.contains(&n.node) => "never measured",
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

#[cfg(test)]
mod tests {
    use muster_run::{Record, Run, RunState};
    use muster_store::{Db, Options as Opened};
    use muster_wire::Profile;

    use super::*;

    fn measured(store: &mut Db, id: &str, at_ms: u64, outcomes: &[(&str, &str, Outcome)]) {
        let run = Run {
            id: id.to_owned(),
            playbook: "regular".to_owned(),
            profile: Profile::Smoke,
            started_ms: at_ms,
            ended_ms: None,
            nodes: outcomes.iter().map(|(node, ..)| (*node).to_owned()).collect(),
            plan: vec!["disk".to_owned()],
            state: RunState::Running,
        };
        store.begin(&run).unwrap();
        for (node, work, outcome) in outcomes {
            let record = Record {
                run: id.to_owned(),
                node: (*node).to_owned(),
                work: (*work).to_owned(),
                outcome: outcome.clone(),
                at_ms,
                elapsed_ns: 1,
                series: Vec::new(),
                facts: Vec::new(),
            };
            store.append(&record).unwrap();
        }
        store.end(id, RunState::Finished, at_ms + 1).unwrap();
    }

    #[test]
    fn only_the_newest_attempt_tells_whether_a_node_was_reached_and_only_a_result_makes_it_measured() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Db::open(dir.path(), &Opened::default()).unwrap();
        let lost = |node: &str| Outcome::Failed(format!("{node}: connect: connection refused"));
        let done = || Outcome::Done;
        measured(&mut store, "20261120-080000", 1_000, &[("n1", LINK, lost("n1")), ("n2", "disk", done())]);
        let newer = [("n1", "disk", done()), ("n2", LINK, lost("n2")), ("n3", LINK, lost("n3"))];
        measured(&mut store, "20261121-080000", 9_000, &newer);
        let names = ["n1", "n2", "n4"].map(str::to_owned);
        let runs = store.runs().unwrap();
        assert_eq!(unreached((&store, &runs), &names, None).unwrap(), ["n2: connect: connection refused"]);
        assert!(
            unreached((&store, &runs), &names, Some(Instant::now())).unwrap().is_empty(),
            "there was no time to look"
        );
        let known = Measured::stored(&store, &runs, &session::playbook(REGULAR).unwrap()).unwrap().nodes;
        assert_eq!(known, ["n1", "n2"].map(str::to_owned).into(), "n3 was never reached");
    }
}

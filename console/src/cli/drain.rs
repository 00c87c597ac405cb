//! `muster drain` and `muster resume`: nodes out of Slurm's service and back, without touching what others said of them.

use std::collections::BTreeSet;
use std::io::IsTerminal;

use anyhow::anyhow;
use clap::Args;
use muster_fleet::hostlist::fold;
use muster_fleet::slurm::{self, Drain, Left, Listed, Resume, Said, ask};
use serde::Serialize;

use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS, Problem, UNDECIDED, USAGE, WARN};
use crate::options::{Common, Pick};
use crate::{out, session};

/// Nodes named in one call of scontrol: what the system takes as one argument is limited.
const AT_ONCE: usize = 500;
/// Bytes of what scontrol answers.
const ANSWER: u64 = 1 << 16;

/// Options of `drain`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster drain -w n007 --reason 'gpu-stream 31 % below its peers'
  muster drain -w 'n[007,012]' --reason 'RMA 4711' --yes --json

A reason is written with 'muster: ' before it. A node that others gave a reason, or drained, is left as it is.
Exit codes: 0 all drained, 1 some left that are out of service already, 3 some are not drained.")]
pub struct DrainOptions {
    /// Which nodes.
    #[command(flatten)]
    pub pick: Pick,
    /// Why; shown by sinfo -R.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Options of `resume`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster resume -w n007
  muster resume -w 'n[001-064]' --yes --json

Only what `muster drain` drained is resumed; every other node is left as it is and named.
Exit codes: 0 all resumed or not drained, 1 some left that others drained, 3 some are still drained.")]
pub struct ResumeOptions {
    /// Which nodes.
    #[command(flatten)]
    pub pick: Pick,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// What is to be done to nodes.
enum Action {
    Drain(String),
    Resume,
}

/// What came of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Drained,
    /// Drained by muster before; the reason is the new one.
    Renewed,
    Resumed,
    Left,
    Failed,
}

#[derive(Debug, Serialize)]
struct Row {
    node: String,
    outcome: Outcome,
    /// States afterwards, as scontrol prints them.
    state: String,
    reason: String,
    /// Empty where Slurm does not tell.
    reason_by: String,
    /// Why it was left or failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    why: String,
    #[serde(skip)]
    out: bool,
    #[serde(skip)]
    others: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    version: u32,
    action: &'static str,
    nodes: &'a [Row],
}

/// Drains.
pub fn drain(options: &DrainOptions, config: &Config, common: &Common) -> Ended {
    if options.reason.trim().is_empty() {
        return Err(usage("--reason is empty; whoever finds the node drained must read why"));
    }
    let action = Action::Drain(slurm::reason(&options.reason));
    run(&action, (&options.pick, options.json), config, common)
}

/// Resumes.
pub fn resume(options: &ResumeOptions, config: &Config, common: &Common) -> Ended {
    run(&Action::Resume, (&options.pick, options.json), config, common)
}

fn run(action: &Action, (pick, json): (&Pick, bool), config: &Config, common: &Common) -> Ended {
    if common.read_only {
        return Err(usage(&format!("--read-only forbids {}", action.doing())));
    }
    if !pick.names() {
        return Err(usage("name the nodes with -w, or a job with --job"));
    }
    let names: Vec<String> = session::nodes(config, pick)?.into_iter().map(|node| node.name).collect();
    let before = look(&names)?;
    let wanted: BTreeSet<&str> =
        before.iter().filter(|node| action.refused(node).is_none()).map(|node| node.name.as_str()).collect();
    if !wanted.is_empty() && !agreed(action, &before, &wanted, common)? {
        return Ok(PASS);
    }
    // Somebody may have written a reason while the question stood.
    let now = look(&names)?;
    let free = |node: &&Listed| wanted.contains(node.name.as_str()) && action.refused(node).is_none();
    let (touched, words) = action.carry_out(&now.iter().filter(free).collect::<Vec<_>>());
    let after = if touched.is_empty() { now.clone() } else { look(&names)? };
    let rows: Vec<Row> = now.iter().zip(&after).map(|(was, is)| action.row((was, is), &touched, &words)).collect();
    if json {
        let (schema, version, action) = ("muster.drain", 1, action.word());
        out::json(&Report { schema, version, action, nodes: &rows })?;
    } else {
        tell(&rows)?;
    }
    Ok(code(&rows))
}

/// The nodes as Slurm lists them now, in the order of `names`.
fn look(names: &[String]) -> Result<Vec<Listed>, Problem> {
    let mut listed = slurm::listed().map_err(anyhow::Error::msg).code(IO)?;
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    let find = |name: &String| listed.binary_search_by(|node| node.name.cmp(name)).ok().and_then(|at| listed.get(at));
    let unknown: Vec<&str> = names.iter().filter(|name| find(name).is_none()).map(String::as_str).collect();
    if !unknown.is_empty() {
        return Err(usage(&format!("Slurm has no {}", fold(unknown))));
    }
    Ok(names.iter().filter_map(find).cloned().collect())
}

/// Shows the list and asks; yes where `--yes` says so.
fn agreed(action: &Action, nodes: &[Listed], wanted: &BTreeSet<&str>, common: &Common) -> Result<bool, Problem> {
    if common.yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        return Err(usage(&format!("{} asks first; give --yes in scripts", action.doing())));
    }
    for node in nodes.iter().filter(|node| !wanted.contains(node.name.as_str())) {
        out::note(format_args!(
            "{} is left as it is: {}",
            node.name,
            action.refused(node).map(|left| said(left, node)).unwrap_or_default()
        ));
    }
    let count = out::counted(wanted.len(), "node", "nodes");
    let list = fold(wanted.iter().copied());
    Ok(out::confirmed(&match action {
        Action::Drain(reason) => format!("drain {count} with the reason '{reason}': {list}?"),
        Action::Resume => format!("resume {count}: {list}?"),
    }))
}

impl Action {
    const fn word(&self) -> &'static str {
        match self {
            Self::Drain(_) => "drain",
            Self::Resume => "resume",
        }
    }

    const fn doing(&self) -> &'static str {
        match self {
            Self::Drain(_) => "draining nodes",
            Self::Resume => "resuming nodes",
        }
    }

    /// Why a node must be left, if it must.
    fn refused(&self, node: &Listed) -> Option<Left> {
        match self {
            Self::Drain(_) => match slurm::drain(node) {
                Drain::Left(left) => Some(left),
                Drain::New | Drain::Again => None,
            },
            Self::Resume => match slurm::resume(node) {
                Resume::Left(left) => Some(left),
                Resume::Own => None,
            },
        }
    }

    /// Tells Slurm; gives the nodes it was told about, and what scontrol said against it.
    fn carry_out(&self, nodes: &[&Listed]) -> (BTreeSet<String>, String) {
        // A node that is down stays down: only our drain is taken back.
        let (down, up): (Vec<&&Listed>, Vec<&&Listed>) = nodes.iter().partition(|node| node.is("DOWN"));
        let (drain, resume, undrain) = ("State=DRAIN", "State=RESUME", "State=UNDRAIN");
        let parts = match self {
            Self::Drain(_) => [(up, drain), (down, drain)],
            Self::Resume => [(up, resume), (down, undrain)],
        };
        let mut words = Vec::new();
        for (nodes, state) in parts {
            for some in nodes.chunks(AT_ONCE) {
                let names: Vec<&str> = some.iter().map(|node| node.name.as_str()).collect();
                let list = format!("NodeName={}", slurm::host_list(&names));
                let reason = if let Self::Drain(reason) = self { format!("Reason={reason}") } else { String::new() };
                let arguments = ["update", &list, state, &reason];
                let arguments = arguments.split_at(if reason.is_empty() { 3 } else { 4 }).0;
                match ask("scontrol", arguments, ANSWER) {
                    Said::Text(_) => {}
                    Said::Failed(why) => words.push(why),
                    Said::Absent => words.push("scontrol is not on the PATH of this machine".to_owned()),
                }
            }
        }
        (nodes.iter().map(|node| node.name.clone()).collect(), words.join("; "))
    }

    fn row(&self, (was, is): (&Listed, &Listed), touched: &BTreeSet<String>, words: &str) -> Row {
        let touched = touched.contains(&was.name);
        let refused = self.refused(was);
        let (outcome, why) = match (self, &refused) {
            (_, Some(left)) => (Outcome::Left, said(left.clone(), was)),
            (Self::Drain(reason), None) if touched && is.is("DRAIN") && is.reason == *reason => {
                let again = slurm::drain(was) == Drain::Again;
                (if again { Outcome::Renewed } else { Outcome::Drained }, gone(was))
            }
            (Self::Resume, None) if touched && !is.is("DRAIN") => (Outcome::Resumed, String::new()),
            _ if words.is_empty() => (Outcome::Failed, format!("Slurm says it is {} now", is.state())),
            _ => (Outcome::Failed, format!("scontrol: {words}")),
        };
        let (node, state) = (is.name.clone(), is.state());
        let (reason, reason_by) = (is.reason.clone(), is.reason_by.clone());
        let others = refused == Some(Left::Others);
        Row { node, outcome, state, reason, reason_by, why, out: is.out(), others }
    }
}

/// Says which reason of an earlier drain, by others, had to go.
fn gone(was: &Listed) -> String {
    if !slurm::left_over(was) {
        return String::new();
    }
    format!("the reason of an earlier drain is gone: '{}'{}", was.reason, by(was))
}

fn by(node: &Listed) -> String {
    if node.reason_by.is_empty() { String::new() } else { format!(" by {}", node.reason_by) }
}

fn said(left: Left, node: &Listed) -> String {
    let by = by(node);
    match left {
        Left::NotDrained => format!("it is not drained ({})", node.state()),
        Left::Others if node.reason.is_empty() => format!("others drained it without a reason ({})", node.state()),
        Left::Others => format!("others gave it the reason '{}'{by} ({})", node.reason, node.state()),
    }
}

fn tell(rows: &[Row]) -> Result<(), Problem> {
    for (outcome, word) in
        [(Outcome::Drained, "drained"), (Outcome::Renewed, "drained again"), (Outcome::Resumed, "resumed")]
    {
        let names: Vec<&str> = rows.iter().filter(|row| row.outcome == outcome).map(|row| row.node.as_str()).collect();
        if !names.is_empty() {
            out::line(&format!("{word}: {}", fold(names)))?;
        }
    }
    for row in rows.iter().filter(|row| row.outcome == Outcome::Drained && !row.why.is_empty()) {
        out::line(&format!("{}: {}", row.node, row.why))?;
    }
    for row in rows.iter().filter(|row| row.outcome == Outcome::Left) {
        out::line(&format!("left: {}: {}", row.node, row.why))?;
    }
    for row in rows.iter().filter(|row| row.outcome == Outcome::Failed) {
        out::note(format_args!("{}: {}", row.node, row.why));
    }
    Ok(())
}

fn code(rows: &[Row]) -> u8 {
    let one = |row: &Row| match row.outcome {
        Outcome::Failed => UNDECIDED,
        Outcome::Left if row.others => {
            if row.out {
                WARN
            } else {
                UNDECIDED
            }
        }
        _ => PASS,
    };
    rows.iter().map(one).max().unwrap_or(PASS)
}

fn usage(why: &str) -> Problem {
    Problem { code: USAGE, error: anyhow!("{why}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(states: &[&str], reason: &str) -> Listed {
        let states = states.iter().map(|state| (*state).to_owned()).collect();
        Listed { name: "n1".into(), states, reason: reason.into(), reason_by: "ann".into(), ..Listed::default() }
    }

    #[test]
    fn a_drain_counts_only_when_slurm_shows_it_with_our_reason() {
        let action = Action::Drain(slurm::reason("slow"));
        let touched = BTreeSet::from(["n1".to_owned()]);
        let outcome = |was: &Listed, is: &Listed| {
            let row = action.row((was, is), &touched, "");
            (row.outcome, code(&[row]))
        };
        let (idle, ours) = (listed(&["IDLE"], ""), listed(&["IDLE", "DRAIN"], "muster: slow"));
        assert_eq!(outcome(&idle, &ours), (Outcome::Drained, PASS));
        assert_eq!(outcome(&ours, &ours), (Outcome::Renewed, PASS));
        assert_eq!(outcome(&idle, &idle), (Outcome::Failed, UNDECIDED));
        let raced = listed(&["IDLE", "DRAIN"], "bad fan");
        assert_eq!(outcome(&idle, &raced), (Outcome::Failed, UNDECIDED), "others were quicker");
        assert_eq!(outcome(&raced, &raced), (Outcome::Left, WARN));
        let noted = listed(&["IDLE"], "watch the fan");
        assert_eq!(outcome(&noted, &noted), (Outcome::Left, UNDECIDED), "left, and jobs still start there");
    }

    #[test]
    fn a_node_that_others_drained_is_named_with_their_reason() {
        let other = listed(&["IDLE", "DRAIN"], "bad fan");
        let row = Action::Resume.row((&other, &other), &BTreeSet::new(), "");
        assert_eq!(row.why, "others gave it the reason 'bad fan' by ann (IDLE+DRAIN)");
        assert_eq!(code(&[row]), WARN);
    }
}

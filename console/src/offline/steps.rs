//! The steps in their order: each says what it found, and why it ends there or goes on.

use std::collections::BTreeSet;

use muster_analysis::State;
use muster_analysis::network::localise::{Kind, SURE, Suspect};
use muster_analysis::network::topology::node_name;
use muster_playbook::report::{NodeReport, Of, PairsReport, RunReport, accusation};
use muster_triage::offline::{Accused, AccusedKind, HALVING, PAIRS, REFERENCE, SELF_TESTS, Tried, accused, still_open};
use muster_triage::report::Done;

use super::folded;
use super::rig::Rig;
use super::search::{Searched, search};
use crate::exit::Problem;
use crate::{out, session};

/// What the steps came to.
#[derive(Default)]
pub(super) struct Course {
    pub culprits: Vec<Accused>,
    pub open: Vec<String>,
    pub steps: Vec<Done>,
    pub trials: Vec<Tried>,
    pub runs: Vec<String>,
}

impl Course {
    fn done(&mut self, step: &'static str, result: impl Into<String>, why: impl Into<String>) {
        self.steps.push(Done { step, result: result.into(), why: why.into() });
    }
}

/// Goes through them until something is named.
///
/// # Errors
/// When the store fails, the topology does not know a node, or somebody interrupts it.
pub(super) async fn all(mut rig: Rig<'_>) -> Result<Course, Problem> {
    let mut course = Course::default();
    if !rig.order.skip_self_tests {
        self_tests(&mut rig, &mut course).await?;
    }
    let named = !course.culprits.is_empty() && !rig.order.go_on;
    if !named && rig.nodes.len() > 1 {
        reference(&mut rig, &mut course).await?;
        if course.culprits.is_empty() {
            pairs(&mut rig, &mut course).await?;
        }
    }
    course.runs = rig.runs;
    Ok(course)
}

/// Every node by itself.
async fn self_tests(rig: &mut Rig<'_>, course: &mut Course) -> Result<(), Problem> {
    (rig.say)(&format!("self-tests on {}", out::counted(rig.nodes.len(), "node", "nodes")));
    let report = rig.all(session::playbook("cbd-light")?).await?;
    let reason = |node: &NodeReport| node.reasons.first().cloned().unwrap_or_else(|| format!("{} fails", node.node));
    let failed: Vec<&NodeReport> = report.nodes.iter().filter(|node| node.state == State::Fail).collect();
    // What measured nothing was not reached, or ended before it could say anything.
    let silent = |node: &&NodeReport| node.state == State::Unknown && node.verdicts.is_empty();
    let silent: Vec<&NodeReport> = report.nodes.iter().filter(silent).collect();
    course.culprits.extend(failed.iter().map(|node| own(node, SELF_TESTS)));
    course.open.extend(silent.iter().map(|node| format!("Not tested: {}.", reason(node).trim_end_matches('.'))));
    let out: BTreeSet<&str> = failed.iter().chain(&silent).map(|node| node.node.as_str()).collect();
    rig.nodes.retain(|node| !out.contains(node.name.as_str()));
    course.open.extend(doubts(&report, &out, "Self-tests leave something open"));
    let left = rig.nodes.len();
    let result = match failed.len() + silent.len() {
        0 => format!("no node of {left} fails"),
        _ => format!("{} fail, {} could not be tested, {left} are left", failed.len(), silent.len()),
    };
    let why = match (failed.is_empty(), left) {
        (false, 2..) if rig.order.go_on => {
            "A node that fails its own tests explains a failing job; the others go on as asked."
        }
        (false, _) => "A node that fails its own tests explains a failing job; --go-on tests the others together.",
        (true, 2..) => "What fails only in company, no node shows by itself.",
        (true, _) => "Too few nodes are left for a job of several.",
    };
    course.done(SELF_TESTS, result, why);
    Ok(())
}

/// All nodes together, and parts of them where that fails.
async fn reference(rig: &mut Rig<'_>, course: &mut Course) -> Result<(), Problem> {
    let names = rig.names();
    let leaves: Vec<Option<String>> = rig.places()?.into_iter().map(|mut place| place.pop()).collect();
    let Searched { found, tried, whole } = search(rig).await?;
    let first = tried.first().cloned();
    let count = tried.len();
    course.trials = tried;
    if let Some(Tried { fails: true, why, .. }) = first {
        course.done(
            REFERENCE,
            format!("fails: {why}"),
            "It fails without the job too: parts of the nodes tell whose fault that is.",
        );
        let named = accused(&found, (&names, &leaves), &folded);
        let more = out::counted(count - 1, "more trial", "more trials");
        let result = if named.is_empty() {
            format!("nothing after {more}")
        } else {
            format!("{} after {more}", elements(&named))
        };
        course.open.extend(found.open.map(still_open));
        let why = match (named.is_empty(), found.open) {
            (_, Some(open)) => still_open(open),
            (true, None) => "All parts run.".to_owned(),
            (false, None) => "Without that the other nodes run.".to_owned(),
        };
        course.culprits.extend(named);
        course.done(HALVING, result, why);
        return Ok(());
    }
    let slow = whole.iter().flat_map(|report| &report.nodes).filter(|node| node.state == State::Fail);
    let slow: Vec<Accused> = slow.map(|node| own(node, REFERENCE)).collect();
    let named: BTreeSet<&str> = slow.iter().flat_map(|accused| &accused.nodes).map(String::as_str).collect();
    course
        .open
        .extend(whole.iter().flat_map(|report| doubts(report, &named, "The reference job leaves something open")));
    let why = if slow.is_empty() {
        "The nodes can run a job together; pairs of them tell more of the network."
    } else {
        "Every step waits for its slowest node."
    };
    let result = match slow.len() {
        0 => "runs, with the same weights on all nodes, and no node is found slow".to_owned(),
        more => {
            format!("runs, and {} slower than the others", if more == 1 { "one node is" } else { "some nodes are" })
        }
    };
    course.culprits.extend(slow);
    course.done(REFERENCE, result, why);
    Ok(())
}

/// Pairs of nodes, messages of several sizes; what is slow is accused only when a second scan says the same.
async fn pairs(rig: &mut Rig<'_>, course: &mut Course) -> Result<(), Problem> {
    let Some(first) = scan(rig).await? else {
        course.open.push("No pair of nodes could be measured.".to_owned());
        course.done(PAIRS, "nothing was measured", "No connection between two nodes came about.");
        return Ok(());
    };
    let second = if sure(&first).next().is_some() { scan(rig).await? } else { None };
    let again = |suspect: &&Of<Suspect>| {
        let same = |other: &Of<Suspect>| other.found.element == suspect.found.element;
        second.as_ref().is_some_and(|second| sure(second).any(same))
    };
    let (named, once): (Vec<_>, Vec<_>) = sure(&first).partition(again);
    // One thing shows in several metrics.
    let mut elements = BTreeSet::new();
    let names = rig.names();
    let named = named.into_iter().filter(|suspect| elements.insert(suspect.found.element.as_str()));
    let named: Vec<Accused> = named.map(|suspect| way(suspect, &names)).collect();
    course.open.extend(once.iter().map(|suspect| format!("In one of two scans: {}", accusation(suspect))));
    let doubtful = first.suspects.iter().filter(|suspect| suspect.found.confidence < SURE);
    course.open.extend(doubtful.map(accusation));
    course.open.extend(first.undecided.iter().map(|open| open.found.reason.clone()));
    let left_out = first.run.iter().flat_map(|run| &run.left_out);
    course.open.extend(left_out.map(|left| format!("Not tested in pairs: {}: {}", left.node, left.reason)));
    let visits = first.run.as_ref().map_or(0, |run| run.visits);
    let (result, why) = match (named.first(), first.exit_code()) {
        (Some(named), _) => (format!("twice: {}", named.sentence), "A slow way holds up every step of a job."),
        (None, 0 | 1) => {
            let visits = out::counted(visits, "visit", "visits");
            (format!("no pair of nodes is unlike the others ({visits})"), "There is nothing left to test.")
        }
        (None, _) => {
            ("something is odd and nobody can say what".to_owned(), "More rounds may tell: muster pairs --scan full.")
        }
    };
    course.culprits.extend(named);
    course.done(PAIRS, result, why);
    Ok(())
}

async fn scan(rig: &mut Rig<'_>) -> Result<Option<PairsReport>, Problem> {
    (rig.say)("pairs of nodes, chosen by bisection");
    let mut playbook = session::playbook("network-bisect")?;
    playbook.profile = rig.order.profile;
    Ok(rig.all(playbook).await?.network)
}

fn sure(network: &PairsReport) -> impl Iterator<Item = &Of<Suspect>> {
    network.suspects.iter().filter(|suspect| suspect.found.confidence >= SURE)
}

/// `n003 and n[005-006]`: what each of them is about, at one end.
fn elements(named: &[Accused]) -> String {
    let of = |accused: &Accused| folded(&accused.nodes.iter().map(String::as_str).collect::<Vec<_>>());
    named.iter().map(of).collect::<Vec<_>>().join(" and ")
}

/// Nodes besides `settled` of which something was not decided, or that were warned of, in one sentence: a fault may hide there.
fn doubts(report: &RunReport, settled: &BTreeSet<&str>, what: &str) -> Option<String> {
    let open = |node: &&NodeReport| node.undecided || matches!(node.state, State::Unknown | State::Warn);
    let nodes = || report.nodes.iter().filter(|node| !settled.contains(node.node.as_str())).filter(open);
    let first = nodes().next()?;
    let names: Vec<&str> = nodes().map(|node| node.node.as_str()).collect();
    let reason = first.reasons.first().map_or("not decided", String::as_str);
    Some(format!("{what} on {}; of the first: {}.", folded(&names), reason.trim_end_matches('.')))
}

/// A node that is accused by what it did itself.
fn own(node: &NodeReport, step: &'static str) -> Accused {
    let sentence = node.reasons.first().cloned().unwrap_or_else(|| format!("{} fails", node.node));
    Accused {
        kind: AccusedKind::Node,
        nodes: vec![node.node.clone()],
        with: Vec::new(),
        element: None,
        step: step.into(),
        sentence,
    }
}

/// What pairs of the nodes called `names` point at.
fn way(suspect: &Of<Suspect>, names: &[String]) -> Accused {
    let found = &suspect.found;
    let pair = || {
        let end = |node: &String| {
            let other = found.element.strip_prefix(node.as_str())?.strip_prefix('-')?;
            let known = names.iter().any(|name| name == other);
            known.then(|| (vec![node.clone()], vec![other.to_owned()]))
        };
        names.iter().find_map(end)
    };
    let (kind, (nodes, with)) = match found.kind {
        Kind::Node | Kind::Nic | Kind::NodeRx | Kind::NodeTx => {
            (AccusedKind::Node, (vec![node_name(&found.element).to_owned()], Vec::new()))
        }
        Kind::Pair => (AccusedKind::Way, pair().unwrap_or_default()),
        Kind::Leaf | Kind::Uplink => (AccusedKind::Way, Default::default()),
    };
    Accused {
        kind,
        nodes,
        with,
        element: Some(found.element.clone()),
        step: PAIRS.into(),
        sentence: accusation(suspect),
    }
}

//! Which nodes are accused, once all metrics of a run are known: a doubt in one noisy place accuses nobody.
//!
//! Twenty metrics on every node of a fleet are hundreds of comparisons, and on a busy machine some of them fall
//! far out by chance. Chance scatters them over nodes and metrics; a slow node is slow throughout a resource.
//! Hence, in this order:
//!
//! 1. A failed benchmark stands as it is.
//! 2. A node that is slow (30 % more cost and three spreads) in at least half of the metrics of a resource
//!    class, three or more of them, is convicted, also where no single metric could decide, if chance does not
//!    explain it: the other nodes of the same run show how often a metric is slow by chance, and as many metrics
//!    at that rate must be rarer than one in 2,000 over all nodes and classes. This is what finds a half-speed node
//!    on a machine on which nothing is repeatable: its cost doubles everywhere at once. It is asked twice, of the
//!    mean step (sees a node stopped now and then) and of the median step (deaf to bursts).
//! 3. On a quiet fleet the alpha rule convicts alone if the node's median lies beyond eight spreads of its peers.
//!    Small fleets need more: a spread estimated from seven values is off by a factor of two now and then, so of
//!    eight nodes one must lie beyond sixteen, which keeps hundreds of comparisons below one false one in a
//!    thousand runs (`tests/noise.rs`).
//! 4. All other failures become warnings on a quiet fleet and undecided on a noisy one.
//! 5. A node passes where nothing speaks against it and every class is vouched for: by a quarter of its metrics that
//!    alpha could decide, or, on a noisy machine, by rule 2 itself, if that would have named a node half as fast. The
//!    slowdown from which on it would have is said with the pass.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::class::{CORES, Cell, Class, Tally, WITNESSES, is_tail, is_told, kind, resource_class, weigh};
use crate::{Grain, Learned, NodeVerdict, State, Status};

/// Spreads beyond which the alpha rule needs no second metric, in a large fleet; see [`spreads_alone`].
const ALONE_SPREADS: f64 = 8.0;
/// Share of them from which on a metric compared by its mean is worth a warning.
const DOUBT_SHARE: f64 = 0.5;
/// Fleet size at which twice as many are needed.
const ALONE_SMALL: f64 = 8.0;
/// Nodes with slow metrics, as a share, from which on the slow metrics are the place's and not the nodes'.
const SCATTERED_SHARE: f64 = 0.2;
/// Share of kinds of metrics that do not repeat step by step from which on the whole run counts as noisy.
const NOISY_SHARE: f64 = 0.25;
/// Share of a class's metrics that must be decided by alpha to vouch for it.
const DECIDED_SHARE: f64 = 0.25;
/// Fewer nodes accuse nobody.
const QUORUM: usize = 5;

/// What is said about a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeState {
    /// Node name.
    pub node: String,
    /// Judgement over all its metrics.
    pub state: State,
    /// Why, worst first; empty for a node that passes.
    pub reasons: Vec<String>,
    /// Its verdicts, revised: uncorroborated failures lowered, corroborated doubts raised.
    pub verdicts: Vec<NodeVerdict>,
}

/// Judges every node over all metrics of a run, in the order of the nodes' names.
#[must_use]
pub fn convict(metrics: &[Learned]) -> Vec<NodeState> {
    let mut cells: BTreeMap<&str, Vec<Cell<'_>>> = BTreeMap::new();
    for learned in metrics {
        for (verdict, evidence) in learned.verdicts.iter().zip(&learned.evidence) {
            let usable = learned.criterion.n >= QUORUM;
            cells.entry(&verdict.node).or_default().push(Cell {
                verdict,
                evidence: evidence.filter(|_| usable),
                status: learned.criterion.status,
                grain: learned.criterion.grain,
                peers: learned.criterion.n.saturating_sub(1),
            });
        }
    }
    let everyone = Tally::of(cells.values().flatten());
    let mut weighed: Vec<_> = cells.values().map(|own| weigh(own, everyone, cells.len())).collect();
    // What chance does is learned from the innocent: the slow metrics of the convicted are no chance.
    let innocent = Tally::of(cells.values().zip(&weighed).filter(|(_, c)| !convicted(c)).flat_map(|(own, _)| own));
    for (own, classes) in cells.values().zip(&mut weighed).filter(|(_, classes)| !convicted(classes)) {
        *classes = weigh(own, innocent, cells.len());
    }
    let scattered = cells
        .values()
        .zip(&weighed)
        .filter(|(cells, classes)| !convicted(classes) && cells.iter().any(|c| tells(c) && c.slow()[0]))
        .count();
    let noisy = undecidable(metrics) || scattered as f64 >= (SCATTERED_SHARE * cells.len() as f64).max(3.0);
    let mut unseen: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, ratio) in weighed.iter().flatten().filter_map(|(name, class)| Some((*name, class.coarse()?))) {
        let worst = unseen.entry(name).or_insert(ratio);
        *worst = worst.max(ratio);
    }
    let place = Place { noisy, unseen };
    cells.iter().zip(&weighed).map(|((node, cells), classes)| judge_node(node, cells, classes, &place)).collect()
}

/// Whether a slow cell tells of the place: tails stray everywhere, and of hundreds of cores one is slow by chance.
fn tells(cell: &Cell<'_>) -> bool {
    let metric = &cell.verdict.metric;
    !is_tail(&metric.name) && resource_class(&metric.benchmark) != CORES
}

/// What is true of the whole run.
struct Place<'a> {
    /// One metric alone accuses nobody.
    noisy: bool,
    /// Mildest slowdown that would have been named on every node, per class.
    unseen: BTreeMap<&'a str, f64>,
}

fn convicted(classes: &BTreeMap<&str, Class>) -> bool {
    classes.values().any(|class| class.convicted)
}

/// Whether too many kinds of metrics of the run do not repeat step by step, in most of their parts: hundreds of cores have
/// one voice, and tails none.
fn undecidable(metrics: &[Learned]) -> bool {
    let mut kinds: BTreeMap<(&str, String), (usize, usize)> = BTreeMap::new();
    for criterion in metrics.iter().map(|learned| &learned.criterion).filter(|c| c.n >= QUORUM) {
        if is_tail(&criterion.metric.name) || is_told(&criterion.metric) {
            continue;
        }
        let (undecided, all) = kinds.entry((&criterion.metric.benchmark, kind(&criterion.metric.name))).or_default();
        *undecided += usize::from(criterion.status != Status::Ok || criterion.grain != Grain::Steps);
        *all += 1;
    }
    let undecided = kinds.values().filter(|(undecided, all)| 2 * undecided > *all).count();
    undecided as f64 > NOISY_SHARE * kinds.len() as f64
}

fn judge_node(node: &str, cells: &[Cell<'_>], classes: &BTreeMap<&str, Class>, place: &Place<'_>) -> NodeState {
    let class_of = |cell: &Cell<'_>| &classes[resource_class(&cell.verdict.metric.benchmark)];
    let verdicts: Vec<NodeVerdict> = cells.iter().map(|cell| revise(cell, class_of(cell), place.noisy)).collect();
    let mut reasons = Vec::new();
    for (name, class) in classes.iter().filter(|(_, c)| c.convicted) {
        let members: Vec<&Cell<'_>> =
            cells.iter().filter(|c| resource_class(&c.verdict.metric.benchmark) == *name).collect();
        reasons.push(summary(node, name, class, &members));
    }
    let (state, coarse) = settle(&verdicts, classes);
    for wanted in [State::Fail, State::Warn] {
        reasons.extend(verdicts.iter().filter(|v| v.state == wanted).map(|v| v.reason.clone()));
    }
    match state {
        State::Unknown | State::NotRun => reasons.extend(gaps(node, &verdicts)),
        State::Pass if !coarse.is_empty() => reasons.push(resolution(node, &coarse, place)),
        _ => {}
    }
    NodeState { node: node.to_owned(), state, reasons, verdicts }
}

fn revise(cell: &Cell<'_>, class: &Class, noisy: bool) -> NodeVerdict {
    let mut verdict = cell.verdict.clone();
    if cell.accused() && !stands(cell, class, noisy) {
        let (state, why) = if noisy {
            (State::Unknown, "undecided, the run is too noisy for one metric to accuse")
        } else if !doubtful(cell) {
            (State::Unknown, "undecided, within the fleet's own spread")
        } else {
            (State::Warn, "one metric alone and not far outside its peers: measure again")
        };
        verdict.state = state;
        verdict.reason = format!("{}; {why}", verdict.reason);
    } else if (class.convicted || class.doubted) && cell.is_slow() && verdict.state == State::Unknown {
        verdict.state = if class.convicted { State::Fail } else { State::Warn };
        if let Some(evidence) = cell.evidence {
            verdict.reason = format!(
                "{} is {} than {} peers ({}, beyond {:.1} spreads, as in {} of {} metrics of its kind)",
                verdict.node,
                percent(evidence.mean.slowdown),
                cell.peers,
                verdict.metric.path(),
                evidence.mean.spreads(),
                class.slow,
                class.of
            );
        }
    }
    verdict
}

/// Worth a second look: by steps a tail alone may set a node apart, by its middle it has to leave the fleet's spread.
fn doubtful(cell: &Cell<'_>) -> bool {
    let spreads = cell.evidence.map_or(0.0, |e| if cell.grain == Grain::Mean { e.mean } else { e.median }.spreads());
    cell.grain == Grain::Steps || spreads >= DOUBT_SHARE * spreads_alone(cell.peers + 1)
}

fn stands(cell: &Cell<'_>, class: &Class, noisy: bool) -> bool {
    if class.convicted {
        return true;
    }
    cell.status == Status::Ok
        && !noisy
        && cell.evidence.is_some_and(|e| e.median.spreads() >= spreads_alone(cell.peers + 1))
}

/// Spreads needed for one metric to accuse alone: the estimate of a spread gets poorer with fewer nodes.
fn spreads_alone(nodes: usize) -> f64 {
    ALONE_SPREADS * (1.0 + ALONE_SMALL / nodes as f64)
}

/// State of a node over all its verdicts, and the classes that only their resolution vouches for.
fn settle<'a>(verdicts: &[NodeVerdict], classes: &BTreeMap<&'a str, Class>) -> (State, Vec<&'a str>) {
    let count = |state| verdicts.iter().filter(|v| v.state == state).count();
    let worst = verdicts.iter().map(|v| v.state).max().unwrap_or(State::NotRun);
    if matches!(worst, State::Fail | State::Warn | State::NotApplicable) {
        return (worst, Vec::new());
    }
    if count(State::NotRun) > 0 {
        // Part of the work is missing: what was measured cannot vouch for the rest.
        let nothing = count(State::NotRun) + count(State::NotApplicable) == verdicts.len();
        return (if nothing { State::NotRun } else { State::Unknown }, Vec::new());
    }
    let (mut fine, mut coarse, mut unvouched) = (0, Vec::new(), false);
    for (name, class) in classes {
        let all = || verdicts.iter().filter(|v| resource_class(&v.metric.benchmark) == *name);
        // A tail that repeats nowhere keeps nobody from passing; a class of nothing else has to do with its tails.
        let only_tails = all().all(|v| is_tail(&v.metric.name));
        let own = all().filter(|v| only_tails || !is_tail(&v.metric.name));
        let applicable = own.clone().filter(|v| v.state != State::NotApplicable).count();
        let passed = own.filter(|v| v.state == State::Pass).count();
        if passed as f64 >= DECIDED_SHARE * applicable as f64 {
            fine += 1;
        } else if class.coarse().is_some() {
            coarse.push(*name);
        } else {
            // Two metrics cannot witness for each other; where the others vouch for the node they may stay undecided.
            unvouched |= applicable >= WITNESSES;
        }
    }
    if unvouched || fine + coarse.len() == 0 { (State::Unknown, Vec::new()) } else { (State::Pass, coarse) }
}

/// `n3: too noisy here for alpha; a node 1.4 times as slow in cpu, 1.9 times in disk would have been named`.
fn resolution(node: &str, coarse: &[&str], place: &Place<'_>) -> String {
    let limit =
        |name: &&str| Some(format!("{:.1} times as slow in {name}", (place.unseen.get(*name)? * 10.0).ceil() / 10.0));
    let limits: Vec<String> = coarse.iter().filter_map(limit).collect();
    format!("{node}: too noisy here for alpha; a node {} would have been named", limits.join(", "))
}

/// `n3 is 52 % slower than 7 peers in 11 of 13 cpu metrics`.
fn summary(node: &str, name: &str, class: &Class, cells: &[&Cell<'_>]) -> String {
    let mut slowdowns: Vec<f64> =
        cells.iter().filter(|c| c.is_slow()).filter_map(|c| c.evidence).map(|e| e.mean.slowdown).collect();
    slowdowns.sort_unstable_by(f64::total_cmp);
    let typical = crate::sample::median_of_sorted(&slowdowns);
    let peers = cells.iter().map(|c| c.peers).max().unwrap_or(0);
    format!("{node} is {} than {peers} peers in {} of {} {name} metrics", percent(typical), class.slow, class.of)
}

/// Loss of speed: 50 % slower takes twice the time.
fn percent(slowdown: f64) -> String {
    format!("{:.0} % slower", -(-slowdown).exp_m1() * 100.0)
}

fn gaps(node: &str, verdicts: &[NodeVerdict]) -> Option<String> {
    let absent = verdicts.iter().filter(|v| v.state == State::NotRun);
    let unknown = verdicts.iter().filter(|v| v.state == State::Unknown).count();
    let all = verdicts.len();
    match absent.clone().count() {
        0 if unknown == 0 => None,
        0 => Some(format!(
            "{node}: {unknown} of {all} metrics undecided ({}); not repeatable enough here",
            per_class(verdicts)
        )),
        n => absent.take(1).map(|v| format!("{node}: {n} of {all} metrics not measured ({})", v.reason)).next(),
    }
}

/// `cpu 9 of 11, net 2 of 2`: where the undecided metrics are.
fn per_class(verdicts: &[NodeVerdict]) -> String {
    let mut classes: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for verdict in verdicts {
        let (unknown, all) = classes.entry(resource_class(&verdict.metric.benchmark)).or_default();
        *unknown += usize::from(verdict.state == State::Unknown);
        *all += 1;
    }
    let named = classes.iter().filter(|(_, (unknown, _))| *unknown > 0);
    named.map(|(name, (unknown, all))| format!("{name} {unknown} of {all}")).collect::<Vec<_>>().join(", ")
}

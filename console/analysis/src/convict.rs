//! Which nodes are accused, once all metrics of a run are known: a doubt in one noisy place accuses nobody.
//!
//! Twenty metrics on every node of a fleet are hundreds of comparisons, and on a busy machine some of them fall
//! far out by chance. Chance scatters them over nodes and metrics; a slow node is slow throughout a resource.
//! Hence, in this order:
//!
//! 1. A failed benchmark stands as it is.
//! 2. A node that is slow ([`SLOW`]: 30 % more cost and three spreads) in at least half of the metrics of a resource
//!    class, three or more of them, is convicted, also where no single metric could decide, if chance does not
//!    explain it: the other nodes of the same run show how often a metric is slow by chance, and as many metrics
//!    at that rate must be rarer than [`CHANCE`] over all nodes and classes. This is what finds a half-speed node
//!    on a machine on which nothing is repeatable: its cost doubles everywhere at once. It is asked twice, of the
//!    mean step (sees a node stopped now and then) and of the median step (deaf to bursts).
//! 3. On a quiet fleet the alpha rule convicts alone if the node's median lies beyond eight spreads of its peers.
//!    Small fleets need more: a spread estimated from seven values is off by a factor of two now and then, so of
//!    eight nodes one must lie beyond sixteen, which keeps hundreds of comparisons below one false one in a
//!    thousand runs (`tests/noise.rs`).
//! 4. All other failures become warnings on a quiet fleet and undecided on a noisy one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Evidence, Grain, Learned, NodeVerdict, State, Status};

/// `ln 1.3`: cost over the peers' that counts as slow; node offsets on shared machines reach 15 %.
const SLOW: f64 = 0.262_364_264_467_491_06;
/// Spreads it must lie beyond as well, each metric taken alone.
const SLOW_SPREADS: f64 = 3.0;
/// `ln 1.7`, and twelve spreads: enough where a run holds too few metrics to confirm each other.
const EXTREME: f64 = 0.530_628_251_062_170_4;
/// See [`EXTREME`].
const EXTREME_SPREADS: f64 = 12.0;
/// Share of a class's metrics that must agree.
const SHARE: f64 = 0.5;
/// Metrics that must agree at least.
const WITNESSES: usize = 3;
/// Spreads beyond which the alpha rule needs no second metric, in a large fleet; see [`spreads_alone`].
const ALONE_SPREADS: f64 = 8.0;
/// Share of them from which on a metric compared by its mean is worth a warning.
const DOUBT_SHARE: f64 = 0.5;
/// Fleet size at which twice as many are needed.
const ALONE_SMALL: f64 = 8.0;
/// Chance left that an innocent node of a run is convicted by agreement.
const CHANCE: f64 = 5e-4;
/// Nodes with slow metrics, as a share, from which on the slow metrics are the place's and not the nodes'.
const SCATTERED_SHARE: f64 = 0.2;
/// Share of metrics that do not repeat step by step from which on the whole run counts as noisy.
const NOISY_SHARE: f64 = 0.25;
/// Share of a node's metrics that must be decided before it can pass.
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

/// Resource class of a benchmark: the first word of its name, such as `cpu` or `disk`.
#[must_use]
pub fn resource_class(benchmark: &str) -> &str {
    benchmark.split('-').next().unwrap_or(benchmark)
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
    let run = Tally::of(cells.values().flatten());
    let weighed: Vec<_> = cells.values().map(|own| weigh_classes(own, run, cells.len())).collect();
    let scattered = cells
        .values()
        .zip(&weighed)
        .filter(|(cells, classes)| classes.values().all(|c| !c.convicted) && cells.iter().any(|c| c.slow()[0]))
        .count();
    let noisy = undecidable(metrics) || scattered as f64 >= (SCATTERED_SHARE * cells.len() as f64).max(3.0);
    cells.iter().zip(&weighed).map(|((node, cells), classes)| judge_node(node, cells, classes, noisy)).collect()
}

/// Whether too many metrics of the run do not repeat step by step.
fn undecidable(metrics: &[Learned]) -> bool {
    let able = || metrics.iter().map(|l| &l.criterion).filter(|c| c.n >= QUORUM);
    let undecided = able().filter(|c| c.status != Status::Ok || c.grain != Grain::Steps).count();
    undecided as f64 > NOISY_SHARE * able().count() as f64
}

/// Weighs the classes of one node against everyone else's metrics.
fn weigh_classes<'a>(cells: &[Cell<'a>], run: Tally, nodes: usize) -> BTreeMap<&'a str, Class> {
    let mut classes: BTreeMap<&str, Vec<&Cell<'_>>> = BTreeMap::new();
    for cell in cells {
        classes.entry(resource_class(&cell.verdict.metric.benchmark)).or_default().push(cell);
    }
    let all = Tally::of(cells);
    let others = Tally { slow: [0, 1].map(|k| run.slow[k] - all.slow[k]), of: run.of - all.of };
    let questions = nodes * classes.len();
    let weigh = |cells: Vec<&Cell<'_>>| {
        let own = Tally::of(cells.iter().copied());
        // A run of one or two metrics has no witnesses to ask: then each must be extreme by itself.
        let few = all.of > 0 && all.of < WITNESSES && cells.iter().all(|c| c.evidence.is_none() || c.extreme());
        let slow = own.slow[0].max(own.slow[1]);
        Class { slow, of: own.of, convicted: few || own.stands_out(others, questions) }
    };
    classes.into_iter().map(|(name, cells)| (name, weigh(cells))).collect()
}

struct Cell<'a> {
    verdict: &'a NodeVerdict,
    evidence: Option<Evidence>,
    status: Status,
    grain: Grain,
    peers: usize,
}

impl Cell<'_> {
    /// Slow by its mean step, and by its median step.
    fn slow(&self) -> [bool; 2] {
        self.evidence.map_or([false; 2], |e| {
            [
                e.slowdown >= SLOW && e.spreads >= SLOW_SPREADS,
                e.median_slowdown >= SLOW && e.median_spreads >= SLOW_SPREADS,
            ]
        })
    }

    fn is_slow(&self) -> bool {
        self.slow().contains(&true)
    }

    /// Worth a second look: by steps a tail alone may set a node apart, by means it has to leave the fleet's spread.
    fn doubtful(&self) -> bool {
        let spreads = self.evidence.map_or(0.0, |e| e.spreads);
        self.grain == Grain::Steps || spreads >= DOUBT_SHARE * spreads_alone(self.peers + 1)
    }

    fn extreme(&self) -> bool {
        self.evidence.is_some_and(|e| {
            e.median_slowdown >= EXTREME && e.median_spreads >= EXTREME_SPREADS && e.slowdown >= EXTREME
        })
    }

    /// Fails by its criterion, not because the benchmark broke.
    fn accused(&self) -> bool {
        self.verdict.state == State::Fail && self.verdict.similarity.is_some()
    }
}

/// What the metrics of one class say together about one node.
struct Class {
    slow: usize,
    of: usize,
    convicted: bool,
}

/// How often metrics are slow by chance: the totals of a run, by mean and by median step.
#[derive(Clone, Copy, Default)]
struct Tally {
    slow: [usize; 2],
    of: usize,
}

impl Tally {
    fn of<'a>(cells: impl IntoIterator<Item = &'a Cell<'a>>) -> Self {
        let mut tally = Self::default();
        for cell in cells.into_iter().filter(|c| c.evidence.is_some()) {
            let slow = cell.slow();
            tally.of += 1;
            (0..2).filter(|&k| slow[k]).for_each(|k| tally.slow[k] += 1);
        }
        tally
    }

    /// Whether `own` is more than chance at the rate of everyone else, asked `questions` times.
    fn stands_out(self, others: Self, questions: usize) -> bool {
        (0..2).any(|k| {
            // One more slow metric than seen: a rate of zero would call anything significant.
            let rate = (others.slow[k] + 1) as f64 / (others.of + 2) as f64;
            let enough = self.slow[k] >= WITNESSES && self.slow[k] as f64 >= SHARE * self.of as f64;
            enough && binomial_tail(self.slow[k], self.of, rate) * questions as f64 <= CHANCE
        })
    }
}

/// Chance of at least `k` successes of `n` at `rate` each.
fn binomial_tail(k: usize, n: usize, rate: f64) -> f64 {
    let mut term = (1.0 - rate).powi(n as i32);
    let mut tail = 0.0;
    for i in 0..=n {
        if i >= k {
            tail += term;
        }
        term *= (n - i) as f64 / (i + 1) as f64 * rate / (1.0 - rate);
    }
    tail
}

fn judge_node(node: &str, cells: &[Cell<'_>], classes: &BTreeMap<&str, Class>, noisy: bool) -> NodeState {
    let class_of = |cell: &Cell<'_>| &classes[resource_class(&cell.verdict.metric.benchmark)];
    let verdicts: Vec<NodeVerdict> = cells.iter().map(|cell| revise(cell, class_of(cell), noisy)).collect();
    let mut reasons = Vec::new();
    for (name, class) in classes.iter().filter(|(_, c)| c.convicted) {
        let members: Vec<&Cell<'_>> =
            cells.iter().filter(|c| resource_class(&c.verdict.metric.benchmark) == *name).collect();
        reasons.push(summary(node, name, class, &members));
    }
    let state = settle(&verdicts);
    for wanted in [State::Fail, State::Warn] {
        reasons.extend(verdicts.iter().filter(|v| v.state == wanted).map(|v| v.reason.clone()));
    }
    if matches!(state, State::Unknown | State::NotRun) {
        reasons.extend(gaps(node, &verdicts));
    }
    NodeState { node: node.to_owned(), state, reasons, verdicts }
}

fn revise(cell: &Cell<'_>, class: &Class, noisy: bool) -> NodeVerdict {
    let mut verdict = cell.verdict.clone();
    if cell.accused() && !stands(cell, class, noisy) {
        let (state, why) = if noisy {
            (State::Unknown, "undecided, the run is too noisy for one metric to accuse")
        } else if !cell.doubtful() {
            (State::Unknown, "undecided, within the fleet's own spread")
        } else {
            (State::Warn, "one metric alone and not far outside its peers: measure again")
        };
        verdict.state = state;
        verdict.reason = format!("{}; {why}", verdict.reason);
    } else if class.convicted && cell.is_slow() && verdict.state == State::Unknown {
        verdict.state = State::Fail;
        if let Some(evidence) = cell.evidence {
            verdict.reason = format!(
                "{} is {} than {} peers ({}, beyond {:.1} spreads, as in {} of {} metrics of its kind)",
                verdict.node,
                percent(evidence.slowdown),
                cell.peers,
                verdict.metric.path(),
                evidence.spreads,
                class.slow,
                class.of
            );
        }
    }
    verdict
}

fn stands(cell: &Cell<'_>, class: &Class, noisy: bool) -> bool {
    if class.convicted {
        return true;
    }
    cell.status == Status::Ok
        && !noisy
        && cell.evidence.is_some_and(|e| e.median_spreads >= spreads_alone(cell.peers + 1))
}

/// Spreads needed for one metric to accuse alone: the estimate of a spread gets poorer with fewer nodes.
fn spreads_alone(nodes: usize) -> f64 {
    ALONE_SPREADS * (1.0 + ALONE_SMALL / nodes as f64)
}

fn settle(verdicts: &[NodeVerdict]) -> State {
    let count = |state| verdicts.iter().filter(|v| v.state == state).count();
    let applicable = verdicts.len() - count(State::NotApplicable);
    let worst = verdicts.iter().map(|v| v.state).max().unwrap_or(State::NotRun);
    match worst {
        State::Fail | State::Warn | State::NotApplicable => worst,
        _ if applicable == count(State::NotRun) => State::NotRun,
        // Part of the work is missing: what was measured cannot vouch for the rest.
        _ if count(State::NotRun) > 0 => State::Unknown,
        _ if count(State::Pass) as f64 >= DECIDED_SHARE * applicable as f64 => State::Pass,
        _ => State::Unknown,
    }
}

/// `n3 is 52 % slower than 7 peers in 11 of 13 cpu metrics`.
fn summary(node: &str, name: &str, class: &Class, cells: &[&Cell<'_>]) -> String {
    let mut slowdowns: Vec<f64> =
        cells.iter().filter(|c| c.is_slow()).filter_map(|c| c.evidence).map(|e| e.slowdown).collect();
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
        0 => Some(format!("{node}: {unknown} of {all} metrics undecided; not repeatable enough here")),
        n => absent.take(1).map(|v| format!("{node}: {n} of {all} metrics not measured ({})", v.reason)).next(),
    }
}

//! Follows a run by the engine's updates: what is done, what is in progress and what is left.

mod elsewhere;

use std::collections::{BTreeSet, HashMap, HashSet};

use muster_fleet::LinkState;
use muster_playbook::{Phase, Plan};
use muster_run::{Record, is_work};
use muster_tui::snapshot::Left;
use muster_wire::Outcome;

use super::durations::{Durations, nodes};
use super::expected::{Basis, Expected};
use super::steady::steady;
use super::window::through;
use crate::judge::Told;
use crate::work::Update;

/// Time between two estimates, milliseconds.
const EVERY_MS: u64 = 1_000;
/// Milliseconds that a node is assumed to need before it starts to measure, until one has shown it.
const FIRST_OVERHEAD: f64 = 1_000.0;
/// Number of nodes that must have begun before their rate counts.
const BEGUN: usize = 10;
/// At least this share of a piece of work is left while it runs, however long it has taken.
const LEAST_LEFT: f64 = 0.05;

/// A run and how far it is.
#[derive(Debug)]
pub struct Course {
    numbers: HashMap<String, usize>,
    phases: Vec<Stretch>,
    /// How many of them are in the plan. Those after them measure doubtful nodes again, possibly between phases of the plan.
    planned: usize,
    /// How many phases of the plan have begun.
    begun: usize,
    /// The phase under way, and the last that some node may be at already.
    at: usize,
    last: usize,
    at_once: usize,
    /// Nodes that have left the run.
    gone: HashSet<usize>,
    /// Nodes that are working in the current phase, or are done with it.
    turns: HashMap<usize, Turn>,
    /// Milliseconds that nodes spent outside their work: the sum, and the number of nodes.
    overhead: (f64, f64),
    /// Time taken against time expected, over all nodes and for each.
    pace: Pace,
    paces: HashMap<usize, Pace>,
    /// How long further visits at the end will take, judging by earlier runs.
    again_ms: u64,
    measured: bool,
    shown: Option<(u64, Left)>,
}

/// A part of the run.
#[derive(Debug)]
enum Stretch {
    /// Every node works on its own.
    Each { works: Vec<Expected>, nodes: Vec<usize>, done: HashMap<usize, BTreeSet<usize>> },
    /// All nodes work together.
    Together { planned_ms: f64, began_ms: Option<u64>, rounds: Option<(usize, usize)> },
    /// Some nodes are measured again.
    Again { nodes: usize, works: usize, done: usize, took: (f64, u32) },
}

/// A node at work.
#[derive(Clone, Copy, Debug)]
struct Turn {
    began_ms: u64,
    /// When it started its current work; `None` until it has reported.
    since_ms: Option<u64>,
    /// When it last reported progress, and the share that was done.
    said: Option<(u64, f64)>,
    /// Time its finished work took, milliseconds.
    worked: f64,
    over: bool,
}

/// Time taken against time expected.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    took: f64,
    expected: f64,
    results: u32,
}

impl Pace {
    fn add(&mut self, took: f64, expected: f64) {
        self.took += took;
        self.expected += expected;
        self.results += 1;
    }

    /// How much slower than expected, drawn towards 1 as if `weight` more milliseconds had gone as expected.
    fn factor(&self, weight: f64) -> f64 {
        if self.expected + weight > 0.0 { (self.took + weight) / (self.expected + weight) } else { 1.0 }
    }

    fn mean(&self) -> f64 {
        if self.results == 0 { 0.0 } else { self.expected / f64::from(self.results) }
    }
}

/// Milliseconds, and how many of them are based on measurements.
#[derive(Clone, Copy, Debug, Default)]
struct Weighed {
    ms: f64,
    measured: f64,
}

impl Weighed {
    const fn measured(ms: f64) -> Self {
        Self { ms, measured: ms }
    }
}

impl Course {
    /// A run of `plan` on `at_once` nodes at a time; the results in `done` (node and work) are already there.
    #[must_use]
    pub fn new(plan: &Plan, durations: &Durations, at_once: usize, done: &BTreeSet<(String, String)>) -> Self {
        let numbers: HashMap<String, usize> = nodes(plan).into_iter().zip(0..).collect();
        let mut phases: Vec<Stretch> =
            plan.phases.iter().map(|phase| Stretch::of(phase, durations, &numbers)).collect();
        for phase in &mut phases {
            for (node, work) in done {
                if let Some(nr) = numbers.get(node) {
                    phase.finish(*nr, work);
                }
            }
        }
        Self {
            numbers,
            planned: phases.len(),
            phases,
            begun: 0,
            at: 0,
            last: 0,
            at_once,
            gone: HashSet::new(),
            turns: HashMap::new(),
            overhead: (FIRST_OVERHEAD, 1.0),
            pace: Pace::default(),
            paces: HashMap::new(),
            again_ms: durations.again_ms,
            measured: false,
            shown: None,
        }
    }

    /// The last estimate shown, and when.
    #[must_use]
    pub const fn said(&self) -> Option<(u64, Left)> {
        self.shown
    }

    /// The same course, continuing from an estimate that was already shown.
    #[must_use]
    pub fn after(self, said: Option<(u64, Left)>) -> Self {
        Self { measured: said.is_some_and(|(_, left)| left.measured), shown: said, ..self }
    }

    /// Follows the run.
    pub fn see(&mut self, update: &Update<'_>, now: u64) {
        match update {
            Update::Phase { index, nodes, work, further, .. } => {
                self.begin(*index, (*nodes, *work), further.len(), now)
            }
            Update::Link { node, state } => {
                let at_work = !matches!(state, LinkState::Idle | LinkState::Closed | LinkState::Failed { .. });
                if at_work && let Some(nr) = self.number(node) {
                    self.turn(nr, now);
                }
            }
            Update::Working { node, progress } => {
                if let Some(nr) = self.number(node) {
                    let turn = self.turn(nr, now);
                    turn.since_ms.get_or_insert(now);
                    turn.said = Some((now, progress.done));
                }
            }
            Update::Recorded(record) => self.recorded(record, now),
            Update::Round { number, planned, .. } => {
                if let Some(Stretch::Together { began_ms, rounds, .. }) = self.phases.get_mut(self.at) {
                    began_ms.get_or_insert(now);
                    *rounds = planned.map(|(rounds, _)| (*number, rounds));
                }
            }
            Update::Dropped { node, .. } => self.gone.extend(self.number(node)),
            Update::Ended { node, failure } => self.ended(node, failure.is_some(), now),
            Update::Said { .. }
            | Update::More(_)
            | Update::Interrupted { .. }
            | Update::Outage(_)
            | Update::Together(_)
            | Update::Late { .. } => {}
        }
    }

    /// The time left to show at `now`. Linear in nodes and work, once a second.
    pub fn shown(&mut self, now: u64) -> Left {
        if let Some((at, shown)) = self.shown
            && now < at + EVERY_MS
        {
            return shown;
        }
        let estimate = self.left(now);
        self.measured = estimate.measured;
        let left = steady(self.shown, now, estimate);
        self.shown = Some((now, left));
        left
    }

    /// The unsmoothed estimate of the time left at `now`.
    #[must_use]
    pub fn left(&self, now: u64) -> Left {
        let mut all = Weighed::default();
        let under_way = self.at..=self.last;
        let to_come = (self.begun..self.planned).filter(|index| !under_way.contains(index));
        let mut parts: Vec<(&[Stretch], bool)> = to_come.map(|index| (&self.phases[index..=index], false)).collect();
        parts.extend(self.phases.get(under_way).map(|phases| (phases, true)));
        for (phases, is_under_way) in parts {
            let one = self.of_phases(phases, is_under_way, now);
            (all.ms, all.measured) = (all.ms + one.ms, all.measured + one.measured);
        }
        if self.at < self.planned || self.begun < self.planned {
            let again = self.again_ms as f64;
            (all.ms, all.measured) = (all.ms + again, all.measured + again);
        }
        // It is not said now this way and now that where about half is known.
        let least = if self.measured { 0.25 } else { 0.5 };
        Left { ms: all.ms.max(0.0) as u64, measured: all.measured >= least * all.ms }
    }

    fn number(&self, node: &str) -> Option<usize> {
        self.numbers.get(node).copied()
    }

    fn begin(&mut self, index: usize, (nodes, works): (usize, usize), further: usize, now: u64) {
        self.turns.clear();
        if index >= self.planned {
            self.phases.truncate(self.planned);
            self.phases.push(Stretch::Again { nodes, works, done: 0, took: (0.0, 0) });
            (self.at, self.last) = (self.planned, self.planned);
        } else {
            let last = (index + further).min(self.planned - 1);
            (self.at, self.last, self.begun) = (index, last, last + 1);
        }
        if let Some(Stretch::Together { began_ms, .. }) = self.phases.get_mut(self.at) {
            *began_ms = Some(now);
        }
    }

    fn turn(&mut self, nr: usize, now: u64) -> &mut Turn {
        let fresh = Turn { began_ms: now, since_ms: None, said: None, worked: 0.0, over: false };
        self.turns.entry(nr).or_insert(fresh)
    }

    fn recorded(&mut self, record: &Record, now: u64) {
        let Some(nr) = self.number(&record.node).filter(|_| is_work(&record.work)) else { return };
        let took = record.elapsed_ns as f64 / 1e6;
        let turn = self.turn(nr, now);
        (turn.since_ms, turn.said, turn.worked) = (Some(now), None, turn.worked + took);
        let done = matches!(record.outcome, Outcome::Done);
        let pace = self.factor();
        let holds = |at: &usize| self.phases.get(*at).is_some_and(|phase| phase.lacks(nr, &record.work));
        let at = (self.at..=self.last).find(holds).unwrap_or(self.at);
        match self.phases.get_mut(at) {
            Some(Stretch::Again { done: count, took: (sum, results), .. }) => {
                *count += 1;
                (*sum, *results) = (*sum + took, *results + 1);
            }
            Some(phase @ Stretch::Each { .. }) => {
                let Some(expected) = phase.finish(nr, &record.work).filter(|_| done) else { return };
                let (ms, basis) = expected.ms(nr);
                expected.took(took);
                let own = self.paces.entry(nr).or_default();
                match basis {
                    Basis::Past => {
                        own.add(took, ms * pace);
                        self.pace.add(took, ms);
                    }
                    Basis::Now => own.add(took, ms),
                    Basis::Plan => {}
                }
            }
            _ => {}
        }
    }

    fn ended(&mut self, node: &str, failed: bool, now: u64) {
        let Some(nr) = self.number(node) else { return };
        if failed {
            self.gone.insert(nr);
        }
        if let Some(turn) = self.turns.get_mut(&nr) {
            turn.over = true;
            if !failed {
                let besides = now.saturating_sub(turn.began_ms) as f64 - turn.worked;
                self.overhead = (self.overhead.0 + besides.max(0.0), self.overhead.1 + 1.0);
            }
        }
    }

    /// Time left in phases that each node goes through at its own pace, or in one.
    fn of_phases(&self, phases: &[Stretch], under_way: bool, now: u64) -> Weighed {
        let Some(first) = phases.first() else { return Weighed::default() };
        match first {
            Stretch::Each { nodes, .. } => self.of_nodes((phases, nodes), under_way, now),
            Stretch::Together { planned_ms, began_ms, rounds } => {
                let spent = began_ms.filter(|_| under_way).map_or(0.0, |at| now.saturating_sub(at) as f64);
                match rounds.filter(|(over, _)| *over > 0) {
                    Some((over, all)) => {
                        let ms = spent / over as f64 * all as f64 - spent;
                        let ms = ms.max(LEAST_LEFT * spent / over as f64);
                        Weighed::measured(ms)
                    }
                    None => Weighed { ms: (planned_ms - spent).max(LEAST_LEFT * planned_ms), measured: 0.0 },
                }
            }
            Stretch::Again { nodes, works, done, took } => self.of_again((*nodes, *works, *done), *took),
        }
    }

    /// Time left in phases in which every node works on its own.
    fn of_nodes(&self, (phases, nodes): (&[Stretch], &[usize]), under_way: bool, now: u64) -> Weighed {
        let mut sum = Weighed::default();
        let (mut at_work, mut waiting) = (Vec::new(), Vec::new());
        for nr in nodes.iter().filter(|nr| !self.gone.contains(nr)) {
            let turn = self.turns.get(nr).filter(|_| under_way);
            let own = self.own(*nr);
            let left = phases.iter().flat_map(|phase| phase.left(*nr));
            let left: Vec<Weighed> = left.map(|work| self.expected(work, (*nr, own))).collect();
            if turn.is_some_and(|turn| turn.over) || left.is_empty() {
                continue;
            }
            let one = self.of_node(&left, turn, now);
            (sum.ms, sum.measured) = (sum.ms + one.ms, sum.measured + one.measured);
            let queue = if turn.is_some() { &mut at_work } else { &mut waiting };
            queue.push(one.ms as u64);
        }
        let begun = self.until_begun(&waiting, now);
        let ms = through(at_work.into_iter().chain(waiting), self.at_once) as f64;
        let measured = if sum.ms > 0.0 { ms * sum.measured / sum.ms } else { 0.0 };
        // The rate at which nodes begin is a measurement.
        Weighed { ms: ms.max(begun), measured: measured + (begun - ms).max(0.0) }
    }

    /// Milliseconds until the last of the waiting nodes is done, if nodes go on to begin at the rate seen so far: connections are
    /// opened a few at a time, however many nodes may be at work.
    fn until_begun(&self, waiting: &[u64], now: u64) -> f64 {
        let began = || self.turns.values().map(|turn| turn.began_ms);
        let Some((first, last)) = began().min().zip(began().max()) else { return 0.0 };
        if self.turns.len() < BEGUN || waiting.is_empty() {
            return 0.0;
        }
        let each = (last - first) as f64 / (self.turns.len() - 1) as f64;
        let mean = waiting.iter().sum::<u64>() as f64 / waiting.len() as f64;
        each * waiting.len() as f64 - now.saturating_sub(last) as f64 + mean
    }

    /// Time that a node still needs for `left`; it may be working on the first of them.
    fn of_node(&self, left: &[Weighed], turn: Option<&Turn>, now: u64) -> Weighed {
        let sum = |part: fn(&Weighed) -> f64| left.iter().map(part).sum::<f64>();
        let mut all = Weighed { ms: sum(|one| one.ms), measured: sum(|one| one.measured) };
        let overhead = self.overhead.0 / self.overhead.1;
        // Until a node is through, it is assumed and not measured.
        let seen = if self.overhead.1 > 1.0 { 1.0 } else { 0.0 };
        let Some(turn) = turn else {
            return Weighed { ms: all.ms + overhead, measured: all.measured + seen * overhead };
        };
        let Some((since, first)) = turn.since_ms.zip(left.first()) else {
            let waits = (overhead - now.saturating_sub(turn.began_ms) as f64).max(0.0);
            return Weighed { ms: all.ms + waits, measured: all.measured + seen * waits };
        };
        let spent = now.saturating_sub(since) as f64;
        // What the node says of its work counts the more the more of it is done.
        let whole = match turn.said.filter(|(_, share)| (0.0..1.0).contains(share)) {
            Some((at, share)) => (1.0 - share) * first.ms + at.saturating_sub(since) as f64,
            None => first.ms,
        };
        let rest = (whole - spent).max(LEAST_LEFT * whole);
        all.measured += if first.ms > 0.0 { (rest - first.ms) * first.measured / first.ms } else { 0.0 };
        all.ms += rest - first.ms;
        all
    }

    /// Expected time of a piece of work on a node, at the pace of this run and of this node.
    fn expected(&self, work: &Expected, (nr, own): (usize, f64)) -> Weighed {
        match work.ms(nr) {
            (ms, Basis::Past) => Weighed::measured(ms * own * self.factor()),
            (ms, Basis::Now) => Weighed::measured(ms * own),
            (ms, Basis::Plan) => Weighed { ms, measured: 0.0 },
        }
    }

    /// How much slower this node is than expected. A node that has been slow so far is expected to stay slow; a single result
    /// counts for less.
    fn own(&self, nr: usize) -> f64 {
        self.paces.get(&nr).map_or(1.0, |own| own.factor(own.mean()))
    }

    /// How much slower this run is than earlier ones.
    fn factor(&self) -> f64 {
        self.pace.factor(2.0 * self.pace.mean())
    }

    fn of_again(&self, (nodes, works, done): (usize, usize, usize), (sum, results): (f64, u32)) -> Weighed {
        if nodes == 0 || works == 0 {
            return Weighed::default();
        }
        let (mean, measured) = match results {
            0 => self.mean_work(),
            _ => (sum / f64::from(results), true),
        };
        let waves = nodes.div_ceil(self.at_once.max(1)) as f64;
        let overhead = self.overhead.0 / self.overhead.1;
        let whole = waves * (works as f64 / nodes as f64 * mean + overhead);
        let ms = whole * works.saturating_sub(done) as f64 / works as f64;
        Weighed { ms, measured: if measured { ms } else { 0.0 } }
    }

    /// The mean time of the plan's benchmarks, and whether at least half of it is based on measurements.
    fn mean_work(&self) -> (f64, bool) {
        let mut all = Weighed::default();
        let mut count = 0.0;
        for phase in &self.phases {
            let Stretch::Each { works, nodes, .. } = phase else { continue };
            let benchmarks = works.iter().filter(|work| !work.work.starts_with("collect/"));
            for (work, nr) in benchmarks.flat_map(|work| nodes.first().map(|nr| (work, *nr))) {
                let one = self.expected(work, (nr, 1.0));
                (all.ms, all.measured, count) = (all.ms + one.ms, all.measured + one.measured, count + 1.0);
            }
        }
        if count == 0.0 { (0.0, false) } else { (all.ms / count, all.measured * 2.0 >= all.ms) }
    }
}

impl Stretch {
    fn of(phase: &Phase, durations: &Durations, numbers: &HashMap<String, usize>) -> Self {
        if !phase.is_alone() {
            return Self::Together { planned_ms: phase.budget().as_secs_f64() * 1e3, began_ms: None, rounds: None };
        }
        let nodes = phase.nodes.iter().filter_map(|node| numbers.get(node).copied()).collect();
        Self::Each { works: Expected::of(phase, durations, numbers), nodes, done: HashMap::new() }
    }

    /// What a node has not finished of a phase in which every node works on its own.
    fn left(&self, nr: usize) -> impl Iterator<Item = &Expected> {
        let (works, done) = match self {
            Self::Each { works, done, .. } => (works.as_slice(), done.get(&nr)),
            _ => (&[][..], None),
        };
        works
            .iter()
            .enumerate()
            .filter(move |(at, _)| !done.is_some_and(|done| done.contains(at)))
            .map(|(_, work)| work)
    }

    /// Whether a node has this piece of work still to finish.
    fn lacks(&self, nr: usize, work: &str) -> bool {
        self.left(nr).any(|expected| expected.work == work)
    }

    /// Notes that a node has finished a piece of work; returns what was expected of it, the first time.
    fn finish(&mut self, nr: usize, work: &str) -> Option<&mut Expected> {
        let Self::Each { works, done, .. } = self else { return None };
        let at = works.iter().position(|expected| expected.work == work)?;
        done.entry(nr).or_default().insert(at).then(|| &mut works[at])
    }
}

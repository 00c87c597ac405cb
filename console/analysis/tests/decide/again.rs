//! What is decided of made fleets that were visited several times, as it stands in `again.txt`.
//!
//! With `MUSTER_BLESS=1` it is written there instead; read the difference before you commit it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use muster_analysis::decide::Settings;
use muster_analysis::{Chance, Rounds, Sample, State, Visited, VisitedMetric, decide_rounds};
use muster_wire::Component;

use crate::families::{ALL, fleet};
use crate::run::Run;
use crate::said::short;

/// One a node, or one a visit; `None` where nothing could be judged.
type Samples = Vec<Option<Sample>>;

/// How a fleet is made.
#[derive(Clone, Copy)]
struct Made {
    seed: usize,
    nodes: usize,
    metrics: usize,
    steps: usize,
    visits: usize,
}

impl Made {
    fn of(seed: usize) -> Self {
        let (nodes, metrics, steps) = ([16, 9, 12, 30][seed % 4], [2, 4, 1][seed % 3], [16, 32, 5, 1, 12][seed % 5]);
        Self { seed, nodes, metrics, steps, visits: 2 + usize::from(seed % 7 > 2) }
    }

    /// A visit. Of six kinds of fleet, n2 is slow in all visits in two, n3 in the first in two, n4 in the last, n5 for a while in the
    /// first, n6 for a while in each; in the last kind all of it. The whole fleet has hours that are slower or faster.
    fn visit(&self, at: usize) -> Run {
        let mut chance = Chance::branch(self.seed as u64, at as u64);
        let mut speeds = fleet(ALL[self.seed % ALL.len()], &mut chance, self.nodes, self.metrics, self.steps);
        let loss = [0.08, 0.3, 0.6][self.seed % 3];
        let kind = self.seed % 6;
        let mut on = |node: usize, kinds: &[usize], steps: std::ops::Range<usize>, left: f64| {
            for metric in (0..self.metrics.div_ceil(2)).filter(|_| kind == 5 || kinds.contains(&kind)) {
                speeds[metric][node][steps.clone()].iter_mut().for_each(|speed| *speed *= left);
            }
        };
        let (all, a_while) = (0..self.steps, self.steps / 3..self.steps * 4 / 5);
        on(2, &[0, 1], all.clone(), 1.0 - loss);
        if at == 0 {
            on(3, &[1, 2], all.clone(), 1.0 - loss);
            on(5, &[3], a_while.clone(), 0.5);
        }
        if at + 1 == self.visits {
            on(4, &[2], all, 1.0 - loss);
        }
        on(6, &[4], a_while, 0.5);
        let hour = [1.0, 0.7, 1.1][(at + self.seed) % 3];
        speeds.iter_mut().flatten().flatten().for_each(|speed| *speed *= hour);
        let run = Run::of(&speeds);
        if self.seed.is_multiple_of(2) { run.times() } else { run }
    }

    /// Who was visited again: all, or the odd ones and n2. Of n1 the second visit could not be judged, of n7 the first.
    fn visits(&self, runs: &[Run], metric: usize) -> (Samples, BTreeMap<usize, Samples>) {
        let sample = |visit: usize, node: usize| {
            let lost = (node, visit) == (1, 1) || (node, visit) == (7, 0);
            runs[visit].rows[metric].samples[node].clone().filter(|_| !lost || !self.seed.is_multiple_of(4))
        };
        let chosen = |node: &usize| self.seed % 5 != 4 || !node.is_multiple_of(2) || *node == 2;
        // Another metric may be measured again on fewer nodes.
        let again = (0..self.nodes).filter(chosen).filter(|node| metric != 1 || *node < self.nodes - 2);
        let of = |node: usize| (node, (0..runs.len()).map(|visit| sample(visit, node)).collect());
        ((0..self.nodes).map(|node| sample(0, node)).collect(), again.map(of).collect())
    }

    fn rounds(&self) -> (Rounds, String) {
        let runs: Vec<Run> = (0..self.visits).map(|at| self.visit(at)).collect();
        let all: Vec<_> = (0..self.metrics).map(|metric| self.visits(&runs, metric)).collect();
        let busy: BTreeSet<usize> = if self.seed % 6 == 1 { BTreeSet::from([2, 3]) } else { BTreeSet::new() };
        let metrics = runs[0].rows.iter().zip(&all).enumerate().map(|(at, (row, (first, again)))| VisitedMetric {
            id: &row.id,
            direction: row.direction,
            component: if at % 2 == 0 || self.seed.is_multiple_of(2) { Component::Cpu } else { Component::Memory },
            aggregated: self.seed % 9 == 5,
            frozen: None,
            first: first.iter().map(Option::as_ref).collect(),
            again: again.iter().map(|(node, all)| (*node, all.iter().map(Option::as_ref).collect())).collect(),
            busy: busy.clone(),
        });
        let visited = Visited { nodes: self.nodes, metrics: metrics.collect(), run_nodes: self.nodes };
        let rounds = decide_rounds(&visited, &Settings::default());
        let joined: Vec<String> = rounds.fleet(&visited).metrics.iter().map(|of| middles(&of.samples)).collect();
        (rounds, joined.join("; "))
    }
}

/// Medians of the first nodes, in the metric's unit.
fn middles(samples: &[Option<&Sample>]) -> String {
    let of = |sample: &Option<&Sample>| sample.map_or("-".to_owned(), |sample| short(sample.median()));
    samples.iter().take(8).map(of).collect::<Vec<_>>().join(" ")
}

/// What is said of the first nodes that are not sound, and of the first.
fn told(rounds: &Rounds) -> String {
    let mut text = String::new();
    let decision = &rounds.decision;
    for (at, node) in decision.nodes.iter().enumerate().filter(|(at, of)| *at == 0 || of.state != State::Pass).take(7) {
        write!(text, "  n{at} {:?} undecided {} by {} visits", node.state, node.undecided, rounds.visits[at]).unwrap();
        for of in &node.components {
            let average =
                of.average.map(|of| format!(" average {:?} {}", of.state, short(of.loss))).unwrap_or_default();
            let limiting = of.limiting.map(|by| format!(" by m{}", by.metric)).unwrap_or_default();
            let resolution = of.resolution.map(short);
            let undecided = if of.undecided { " undecided" } else { "" };
            write!(text, "; {:?} {:?}{undecided} {resolution:?}{limiting}{average}", of.component, of.state).unwrap();
        }
        for (metric, cells) in decision.cells.iter().enumerate().filter(|(_, cells)| cells[at].state != State::Pass) {
            let cell = &cells[at];
            let numbers = [cell.loss, cell.limit, cell.resolution].map(short).join(" ");
            write!(text, "; m{metric} {:?} {:?} {numbers}", cell.state, cell.why).unwrap();
        }
        text.push('\n');
    }
    text
}

#[test]
fn of_every_made_fleet_that_was_visited_again_the_same_is_said_number_for_number() {
    let mut text = String::new();
    for seed in 0..84 {
        let made = Made::of(seed);
        let Made { nodes, metrics, steps, visits, .. } = made;
        let family = ALL[seed % ALL.len()];
        writeln!(text, "{family}, seed {seed}: {nodes} nodes, {metrics} metrics, {steps} steps, {visits} visits")
            .unwrap();
        let (rounds, joined) = made.rounds();
        text += &told(&rounds);
        writeln!(text, "  decided by medians {joined}").unwrap();
    }
    muster_golden::hold(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/decide/again.txt")), &text);
}

//! What one metric says of one node, in one view of its steps.

use std::cell::RefCell;

use muster_wire::Direction;

use super::budget;
use super::decision::{Cell, View as Look, Why};
use super::measured::Compared;
use super::peers::{Peers, loose, plain};
use super::quantile::{Memo, after_leaving_out, exact};
use super::sorted::Sums;
use super::views::{Column, View, speed, value};
use super::{Settings, stretch};
use crate::{Sample, State};

/// Fleets in which, beside the robust reference, the plain mean and spread of all others are asked.
const PLAIN: std::ops::RangeInclusive<usize> = 6..=15;
/// Fleets in which a reference that leaves out a third of the others is asked before a node passes.
const LOOSE: std::ops::RangeInclusive<usize> = 5..=10;
/// Fleets in which either is asked.
pub(super) const SMALL: usize = 15;
/// Steps from which on a small loss is worth a warning if the peers are that close together.
const LONG: u32 = 32;
/// Steps below which a stall may be the median.
pub(super) const FEW: u32 = 6;
/// Expected peers beyond a node's loss, if the others' tail goes on as it began, from which on it only warns; and from
/// which on nothing is said.
const TAIL_WARNS: f64 = 0.5;
const TAIL_UNKNOWN: f64 = 3.0;
/// Peers between half the limit and the limit, from which on a node beyond the warning limit only is part of a tail.
const TAIL_PEERS: usize = 5;

/// What all cells of a view share.
pub(super) struct Scene<'a> {
    pub(super) column: &'a Column,
    pub(super) view: &'a View,
    /// Over the values of the view, where it is so small that more references than one are asked.
    pub(super) sums: Option<Sums<'a>>,
    /// One per node of the fleet.
    pub(super) samples: &'a [Option<&'a Sample>],
    pub(super) look: Look,
    pub(super) direction: Direction,
    pub(super) aggregated: bool,
    pub(super) settings: &'a Settings,
    /// log10 of the chance of a false fail, and of a false warning, that this view has per node.
    pub(super) chances: [f64; 2],
    pub(super) memo: &'a RefCell<Memo>,
}

/// Limits of one node: losses.
#[derive(Clone, Copy, Debug)]
struct Limits {
    fail: f64,
    warn: f64,
    weak: f64,
    resolution: f64,
    /// Beyond the limit of the reference that leaves out a third.
    disagree: bool,
}

/// A cell whose node has few steps and is slow: decided together with the node's others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slow {
    pub(super) node: u32,
    /// Beyond the fail limit, and no tail of the fleet.
    pub(super) named: bool,
    pub(super) contested: bool,
}

impl Scene<'_> {
    /// log10 of the chances as this view of a fleet of `nodes` has them.
    pub(super) fn chances(settings: &Settings, share: f64, nodes: usize, run_nodes: usize) -> [f64; 2] {
        let half = if PLAIN.contains(&nodes) { 0.5 } else { 1.0 };
        [settings.fail, settings.warn].map(|all| budget::per_node(all * share * half, nodes, run_nodes))
    }

    /// Whether the node at `index` has too few steps to exclude a stall.
    pub(super) fn few(&self, index: usize) -> bool {
        self.look == Look::MedianStep && !self.aggregated && self.column.steps[index] < FEW
    }

    /// Decides every cell of the view; `put` gets node and cell, and `slow` collects what must be decided together.
    pub(super) fn decide(&self, compared: &Compared, slow: &mut Vec<Slow>, mut put: impl FnMut(u32, Cell)) {
        let (sorted, peers) = (&self.view.sorted, &compared.peers);
        let mut hints = [0, 0];
        for (position, &index) in sorted.order().iter().enumerate() {
            let (index, node) = (index as usize, self.view.nodes[index as usize]);
            let peers = &peers[index];
            if peers.scale.is_nan() {
                put(node, self.without_reference());
                continue;
            }
            let split = compared.split.get(position).copied().unwrap_or(false);
            let (cell, found) = self.one(position, peers, split, &mut hints);
            slow.extend(found.map(|(named, contested)| Slow { node, named, contested }));
            put(node, self.unless_for_a_while(node, cell));
        }
    }

    /// A node that is beyond the limit by a stretch of its steps only does not fail: the other steps must be, too.
    pub(super) fn unless_for_a_while(&self, node: u32, cell: Cell) -> Cell {
        if cell.state != State::Fail {
            return cell;
        }
        let Some(found) = self.samples[node as usize].and_then(|sample| stretch::find(sample, self.direction)) else {
            return cell;
        };
        let centre = speed(cell.centre, self.direction);
        if found.loss(self.look, self.direction, centre, self.settings.glitch) >= cell.limit {
            return cell;
        }
        let stretch::Stretch { from, to, slow, steps, .. } = found;
        Cell { state: State::Warn, why: Why::SlowForAWhile { from, to, slow, steps }, ..cell }
    }

    fn without_reference(&self) -> Cell {
        let why = if self.view.speeds.len() < 4 { Why::TooFewNodes } else { Why::NoReference };
        let peers = u32::try_from(self.view.speeds.len() - 1).unwrap_or(u32::MAX);
        Cell { state: State::Unknown, why, view: self.look, peers, ..Cell::EMPTY }
    }

    fn one(&self, position: usize, peers: &Peers, split: bool, hints: &mut [usize; 2]) -> (Cell, Option<(bool, bool)>) {
        let sorted = &self.view.sorted;
        let index = sorted.order()[position] as usize;
        let (own, n) = (sorted.at(position), sorted.len());
        let loss = peers.loss(own);
        let limits = self.limits(position, peers);
        let mut beyond = |limit: f64, hint: usize| {
            let bar = peers.centre * (1.0 - limit);
            sorted.up_to(bar, &mut hints[hint]) - usize::from(own <= bar)
        };
        let alike = beyond(limits.fail, 0);
        let near = beyond(limits.fail / 2.0, 1) - alike;
        let long = self.column.steps[self.column.index(self.view, index)] >= LONG;
        let named = loss >= limits.fail;
        let warned = loss >= limits.warn || (loss >= limits.weak && long);
        let tail = near as f64 * (8.0 / 7.0) * (limits.fail / 2.0 / loss).powi(3);
        let heavy = named && tail > TAIL_WARNS;
        let scattered = if named { tail > TAIL_UNKNOWN } else { warned && near > TAIL_PEERS };
        let crowded = 3 * (alike + near + usize::from(named)) > n;
        let (state, why) = if self.few(index) {
            let slow = crowded || split || named || warned;
            if slow { (State::Unknown, few_why(crowded, split)) } else { (State::Pass, Why::AsPeers) }
        } else {
            judge(named, warned, [heavy, scattered], [crowded, split])
        };
        let (state, why) =
            if limits.disagree && state == State::Pass { (State::Unknown, Why::PeersDisagree) } else { (state, why) };
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let cell = Cell {
            state,
            why,
            view: self.look,
            peers: peers.kept,
            alike: count(alike),
            loss,
            centre: value(peers.centre, self.direction),
            scale: peers.scale,
            limit: limits.fail,
            warn_limit: limits.warn,
            resolution: limits.resolution,
            frozen: false,
        };
        let slow = self.few(index) && ((named && !heavy) || (warned && !scattered));
        (cell, slow.then_some((named && !heavy, crowded || split || limits.disagree && !named)))
    }

    fn limits(&self, position: usize, peers: &Peers) -> Limits {
        let (n, effect) = (self.view.speeds.len(), self.settings.effect);
        let [log_fail, log_warn] = self.chances.map(|chance| chance + f64::from(peers.share));
        let table = after_leaving_out(peers.kept as usize);
        let [k, k_warn] = self.memo.borrow_mut().at(table, [log_fail, log_warn]);
        let s = peers.scale;
        let at_least = |limit: f64, s: f64| limit.max(effect - 2.0 * s);
        let mut limits = Limits {
            fail: at_least(k * s, s),
            warn: at_least(k_warn * s, s),
            weak: (k * s).max(self.settings.weak),
            resolution: at_least(k * s, s) + table.one_in_twenty * s,
            disagree: false,
        };
        let Some(sums) = &self.sums else { return limits };
        if LOOSE.contains(&n) {
            let loose = loose((self.column, self.view), sums, position, self.settings.floor);
            let table = after_leaving_out(loose.kept as usize);
            let limit = at_least(table.at(log_fail) * loose.scale, loose.scale);
            limits.disagree = loose.loss(self.view.sorted.at(position)) >= limit;
            limits.resolution = limit + table.one_in_twenty * loose.scale;
        }
        if PLAIN.contains(&n) {
            let plain = plain((self.column, self.view), sums, position, self.settings.floor);
            let table = exact(n - 2);
            // The same limit, as a loss against the other reference's centre.
            let told = |limit: f64| 1.0 - plain.centre * (1.0 - limit) / peers.centre;
            let fail = at_least(table.at(log_fail) * plain.scale, plain.scale);
            limits.fail = limits.fail.min(told(fail));
            limits.warn = limits.warn.min(told(at_least(table.at(log_warn) * plain.scale, plain.scale)));
            limits.resolution = limits.resolution.min(told(fail + table.one_in_twenty * plain.scale));
        }
        limits
    }
}

fn few_why(crowded: bool, split: bool) -> Why {
    match (crowded, split) {
        (true, _) => Why::Contested,
        (false, true) => Why::TwoClusters,
        _ => Why::FewSteps { witnesses: 0, needed: 0 },
    }
}

/// State of a cell with enough steps.
fn judge(named: bool, warned: bool, [heavy, scattered]: [bool; 2], [crowded, split]: [bool; 2]) -> (State, Why) {
    match (named, crowded) {
        (true, true) => (State::Warn, Why::Contested),
        (false, true) => (State::Unknown, Why::Contested),
        (true, false) if scattered => (State::Unknown, Why::TailOfFleet),
        (true, false) if heavy => (State::Warn, Why::TailOfFleet),
        (true, false) => (State::Fail, Why::Beyond),
        (false, false) if warned && scattered => (State::Unknown, Why::TailOfFleet),
        (false, false) if warned => (State::Warn, Why::BeyondWarning),
        (false, false) if split => (State::Unknown, Why::TwoClusters),
        (false, false) => (State::Pass, Why::AsPeers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_cell_of_few_steps_says_what_keeps_it_from_a_verdict() {
        assert_eq!([few_why(true, false), few_why(true, true)], [Why::Contested; 2]);
        assert_eq!(few_why(false, true), Why::TwoClusters);
        assert_eq!(few_why(false, false), Why::FewSteps { witnesses: 0, needed: 0 });
    }

    #[test]
    fn nothing_fails_or_passes_where_anything_speaks_against_it() {
        for case in 0..64_u32 {
            let [named, warned, heavy, scattered, crowded, split] = std::array::from_fn(|bit| case >> bit & 1 == 1);
            let (state, _) = judge(named, warned, [heavy, scattered], [crowded, split]);
            let fails = named && !heavy && !scattered && !crowded;
            let passes = !named && !warned && !crowded && !split;
            let warns = if crowded { named } else { !scattered && (named && heavy || !named && warned) };
            let one = (state == State::Fail, state == State::Pass, state == State::Warn);
            assert_eq!(one, (fails, passes, warns), "{case:06b}");
        }
    }
}

//! A node against a criterion of earlier runs: against the others of its own run with the spread that earlier runs had,
//! and against the centre they had, where runs differ among each other too.

use muster_wire::Direction;

use super::cell::{Scene, Slow};
use super::decision::{Cell, SlowerRun, Why};
use super::peers::{Peers, with_frozen_spread};
use super::views::{Column, View, speed, value};
use super::{Frozen, Settings, budget, student};
use crate::State;

/// Fewer nodes are compared with the frozen centre only.
const FEWEST: usize = 4;
/// Variance of the median of normal values over that of their mean.
const MEDIAN_VARIANCE: f64 = 1.6;

/// What every node is compared with: the others with the frozen spread, or the criterion alone.
pub(super) fn peers(view: &View, frozen: &Frozen, direction: Direction) -> Vec<Peers> {
    if view.len() >= FEWEST {
        return with_frozen_spread(view, frozen);
    }
    let bar = Bar::of_criterion(frozen, direction);
    let kept = u32::try_from(frozen.nodes).unwrap_or(u32::MAX);
    vec![Peers { centre: bar.centre, scale: bar.scale, kept, share: 0.0 }; view.len()]
}

/// What one loss is measured against.
#[derive(Clone, Copy)]
struct Bar {
    centre: f64,
    scale: f64,
    df: f64,
}

impl Bar {
    /// The frozen centre, as uncertain as nodes and runs differ.
    fn of_criterion(frozen: &Frozen, direction: Direction) -> Self {
        let node = frozen.spread.powi(2) * (1.0 + 1.0 / frozen.nodes.max(1) as f64);
        Self::sum(frozen, direction, node)
    }

    /// Variance `node` between nodes and that between runs.
    fn sum(frozen: &Frozen, direction: Direction, node: f64) -> Self {
        let run = frozen.run_spread.powi(2) * (1.0 + 1.0 / frozen.runs.max(1) as f64);
        // Welch and Satterthwaite: degrees of freedom of a sum of two estimated variances.
        let df = (node + run).powi(2) / (node.powi(2) / frozen.df.max(1.0) + run.powi(2) / frozen.run_df.max(1.0));
        let centre = speed(frozen.centre, direction);
        let usable = centre > 0.0 && (node + run) > 0.0;
        Self { centre, scale: if usable { (node + run).sqrt() } else { f64::NAN }, df }
    }
}

/// Losses from which on a node fails, warns; and which it would not pass.
#[derive(Clone, Copy)]
struct Limits {
    fail: f64,
    warn: f64,
    resolution: f64,
}

/// Limits of one bar, computed again only where a node's share differs from the one before.
struct Cache {
    last: Option<(f32, Limits)>,
}

impl Cache {
    fn limits(&mut self, bar: Bar, share: f32, chances: [f64; 2], effect: f64) -> Limits {
        if let Some((_, limits)) = self.last.filter(|(known, _)| *known == share) {
            return limits;
        }
        let [fail, warn] = chances.map(|log| {
            let quantile = student::quantile(10_f64.powf(log + f64::from(share)), bar.df);
            (quantile * bar.scale).max(effect - 2.0 * bar.scale)
        });
        let limits = Limits { fail, warn, resolution: fail + student::quantile(0.05, bar.df) * bar.scale };
        self.last = Some((share, limits));
        limits
    }
}

impl Scene<'_> {
    /// Decides every cell against `frozen`.
    pub(super) fn decide_frozen(
        &self,
        frozen: &Frozen,
        peers: &[Peers],
        slow: &mut Vec<Slow>,
        mut put: impl FnMut(u32, Cell),
    ) {
        let criterion = Bar::of_criterion(frozen, self.direction);
        let few_nodes = self.view.len() < FEWEST;
        let half = if few_nodes { 0.0 } else { 0.5_f64.log10() };
        let chances = self.chances.map(|chance| chance + half);
        let (mut among, mut against) = (Cache { last: None }, Cache { last: None });
        for (position, &index) in self.view.sorted.order().iter().enumerate() {
            let (index, node) = (index as usize, self.view.nodes[index as usize]);
            let own = &peers[index];
            if criterion.scale.is_nan() || own.scale.is_nan() {
                put(node, Cell { state: State::Unknown, why: Why::NoReference, ..Cell::EMPTY });
                continue;
            }
            let limits = against.limits(criterion, own.share, chances, self.settings.effect);
            let mut cell = self.unless_for_a_while(node, self.against_criterion(position, criterion, limits, own.kept));
            if !few_nodes {
                let bar = Bar { centre: own.centre, scale: own.scale, df: frozen.df.max(1.0) };
                let limits = among.limits(bar, own.share, chances, self.settings.effect);
                let other = self.unless_for_a_while(node, self.frozen_cell(position, bar, limits, own.kept));
                cell = if cell.state > other.state { cell } else { other };
            }
            if self.few(index) && cell.state > State::Unknown {
                let whole = cell.why == Why::WholeRunSlow;
                slow.push(Slow { node, named: cell.state == State::Fail, contested: whole });
                cell.state = State::Unknown;
                // Kept until it is known how many witnesses there are.
                cell.why = if whole { cell.why } else { Why::FewSteps { witnesses: 0, needed: 0 } };
            }
            put(node, cell);
        }
    }

    fn frozen_cell(&self, position: usize, bar: Bar, limits: Limits, peers: u32) -> Cell {
        let own = self.view.sorted.at(position);
        let loss = 1.0 - own / bar.centre;
        let limit = bar.centre * (1.0 - limits.fail);
        let alike = self.view.sorted.up_to(limit, &mut 0) - usize::from(own <= limit);
        let (state, why) = if loss >= limits.fail {
            (State::Fail, Why::Beyond)
        } else if loss >= limits.warn {
            (State::Warn, Why::BeyondWarning)
        } else {
            (State::Pass, Why::AsPeers)
        };
        Cell {
            state,
            why,
            peers,
            alike: u32::try_from(alike).unwrap_or(u32::MAX),
            loss,
            centre: value(bar.centre, self.direction),
            scale: bar.scale,
            limit: limits.fail,
            warn_limit: limits.warn,
            resolution: limits.resolution,
            ..Cell::EMPTY
        }
    }

    /// Against the criterion alone. Where next to nobody else of the run reaches it, it is not this node.
    fn against_criterion(&self, position: usize, bar: Bar, limits: Limits, peers: u32) -> Cell {
        let mut cell = Cell { frozen: true, ..self.frozen_cell(position, bar, limits, peers) };
        let (n, sorted) = (self.view.len(), &self.view.sorted);
        let bar = reached(bar, limits.fail);
        let reaching = n - sorted.up_to(bar, &mut 0) - usize::from(sorted.at(position) > bar);
        if cell.state == State::Fail {
            let everybody = n >= FEWEST && 4 * reaching < n;
            cell.why = if everybody { Why::WholeRunSlow } else { Why::BeyondFrozen };
            cell.state = if everybody { State::Warn } else { State::Fail };
        }
        cell
    }
}

/// Slowest speed of a node that reaches a criterion, beside nodes that are `limit` slower.
fn reached(bar: Bar, limit: f64) -> f64 {
    bar.centre * (1.0 - limit / 2.0)
}

/// A metric in which the run's median node may be slower than earlier runs.
pub(super) struct Whole<'a> {
    pub(super) column: &'a Column,
    pub(super) frozen: &'a Frozen,
    pub(super) direction: Direction,
}

impl Whole<'_> {
    fn bar(&self) -> Bar {
        let n = self.column.median.len() as f64;
        Bar::sum(self.frozen, self.direction, self.frozen.spread.powi(2) / n * MEDIAN_VARIANCE)
    }

    /// How exactly earlier runs predict this one.
    pub(super) fn scale(&self) -> f64 {
        self.bar().scale
    }

    /// The finding, if it is one with the given share in the chance (log10).
    pub(super) fn finding(&self, metric: usize, share: f64, settings: &Settings) -> Option<SlowerRun> {
        let (bar, sorted) = (self.bar(), &self.column.median.sorted);
        let middle = sorted.len() / 2;
        let median = f64::midpoint(sorted.at(sorted.len().div_ceil(2) - 1), sorted.at(middle));
        // It warns, so it may use what warnings may.
        let chance = settings.warn * budget::MEDIAN * 10_f64.powf(share);
        let limit = (student::quantile(chance, bar.df) * bar.scale).max(settings.effect - 2.0 * bar.scale);
        let loss = 1.0 - median / bar.centre;
        // Where more than a few reach it, it is not the run that is slow; and by chance some of a slow run come near it.
        let near = reached(bar, limit) + bar.centre * self.frozen.spread;
        let reaching = sorted.len() - sorted.up_to(near, &mut 0);
        let all = loss >= limit && 4 * reaching < sorted.len();
        all.then_some(SlowerRun { metric, loss, limit, centre: self.frozen.centre, scale: bar.scale })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_the_effect_or_what_chance_allows_and_what_passes_it_is_seen_nineteen_times_of_twenty() {
        let wide = Bar { centre: 1.0, scale: 0.02, df: 10.0 };
        let mut cache = Cache { last: None };
        let limits = cache.limits(wide, 0.0, [-6.0, -4.0], 0.05);
        let spreads = |p: f64| student::quantile(p, 10.0) * 0.02;
        assert_eq!((limits.fail, limits.warn), (spreads(1e-6), spreads(1e-4)));
        assert!((limits.resolution - (spreads(1e-6) + spreads(0.05))).abs() < 1e-12);
        assert_eq!(cache.limits(wide, 0.0, [-1.0, -1.0], 0.05).fail, limits.fail, "known for this share");
        assert!(cache.limits(wide, -1.0, [-6.0, -4.0], 0.05).fail > limits.fail, "a tenth of the chance");
        let narrow = Bar { scale: 0.001, ..wide };
        let limits = Cache { last: None }.limits(narrow, 0.0, [-6.0, -4.0], 0.05);
        assert!((limits.fail - 0.048).abs() < 1e-12 && limits.resolution < 0.05, "{}", limits.fail);
    }
}

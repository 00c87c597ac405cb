//! A decision over several visits: what was in doubt was measured again, beside peers that were not in doubt.

use std::collections::{BTreeMap, BTreeSet};

use muster_wire::{Component, Direction, MetricId};

use crate::decide::{
    Average, Cell, ComponentDecision, Decision, Fleet, Frozen, Limiting, Metric, Settings, View, Why, decide, outside,
};
use crate::repeats::{Losses, Repeats};
use crate::{Sample, State, join_visits};

/// Nodes that are measured together at least when some are measured again. From sixteen on a third of them can be left out at
/// little cost: with twelve, the same noise hides three times the loss.
pub const TOGETHER: usize = 16;

/// The nodes that are compared with each other, and every visit of each.
#[derive(Clone, Debug)]
pub struct Visited<'a> {
    /// How many nodes; every metric has as many lists of visits.
    pub nodes: usize,
    /// What was measured.
    pub metrics: Vec<VisitedMetric<'a>>,
    /// Nodes of the whole run, as in [`Fleet::run_nodes`].
    pub run_nodes: usize,
}

/// One metric of a fleet, visit by visit.
#[derive(Clone, Debug)]
pub struct VisitedMetric<'a> {
    /// Which metric.
    pub id: &'a MetricId,
    /// Which way it is better.
    pub direction: Direction,
    /// The part of the node it speaks for.
    pub component: Component,
    /// As in [`Metric::aggregated`].
    pub aggregated: bool,
    /// What earlier runs say this metric should be.
    pub frozen: Option<&'a Frozen>,
    /// The first visit of each node; `None` where nothing was measured, or where it cannot be judged because of foreign load.
    pub first: Vec<Option<&'a Sample>>,
    /// All visits of those nodes that had several, oldest first; `None` for a visit that cannot be judged.
    pub again: BTreeMap<usize, Vec<Option<&'a Sample>>>,
    /// Nodes where others were at work meanwhile: slowness that does not return was theirs.
    pub busy: BTreeSet<usize>,
}

/// What was decided over all visits.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// The decision, every node by as many visits as it had.
    pub decision: Decision,
    /// How many visits of each node the decision rests on, the most of its metrics; at least 1.
    pub visits: Vec<usize>,
    joined: BTreeMap<(usize, usize), Sample>,
}

/// Visits that a node was judged by: how many it had, and which of them could be judged.
type Pattern = Vec<bool>;

/// Decides by the first visit of every node, and again, for nodes that were visited again, by all their visits together,
/// against those peers that were visited as often. The chance of a false finding is halved with every further look, so that
/// all looks together keep within twice that of the first.
///
/// Whoever failed before is no healthy peer: where the others are closer to each other without it, they are judged without it.
/// In a dozen nodes a single slow one more than doubles the loss that is seen in the rest.
#[must_use]
pub fn decide_rounds(visited: &Visited<'_>, settings: &Settings) -> Rounds {
    let mut rounds = first(visited, settings);
    let mut patterns: BTreeMap<Pattern, BTreeSet<usize>> = BTreeMap::new();
    for (at, metric) in visited.metrics.iter().enumerate() {
        for pattern in metric.again.values().filter_map(|visits| pattern(visits)) {
            patterns.entry(pattern).or_default().insert(at);
        }
    }
    // Shorter patterns first: what is said after more visits stands.
    for (pattern, metrics) in patterns {
        rounds.again(visited, &pattern, &metrics.into_iter().collect::<Vec<_>>(), settings);
    }
    rounds
}

/// The pattern of a node whose first visit alone does not decide; `None` where it does, or where nothing could be judged.
fn pattern(visits: &[Option<&Sample>]) -> Option<Pattern> {
    let pattern: Pattern = visits.iter().map(Option::is_some).collect();
    (pattern.contains(&true) && pattern != [true]).then_some(pattern)
}

fn first(visited: &Visited<'_>, settings: &Settings) -> Rounds {
    let metrics = visited.metrics.iter().map(|of| with(of, of.first.clone())).collect();
    let fleet = Fleet { nodes: visited.nodes, metrics, run_nodes: visited.run_nodes };
    Rounds { decision: decide(&fleet, settings), visits: vec![1; visited.nodes], joined: BTreeMap::new() }
}

fn with<'s, 'a: 's>(of: &VisitedMetric<'a>, samples: Vec<Option<&'s Sample>>) -> Metric<'s> {
    Metric {
        id: of.id,
        direction: of.direction,
        component: of.component.clone(),
        aggregated: of.aggregated,
        samples,
        frozen: of.frozen,
    }
}

impl Rounds {
    /// The fleet that the decision is about: every node with the sample it was decided by.
    #[must_use]
    pub fn fleet<'s>(&'s self, visited: &Visited<'s>) -> Fleet<'s> {
        let mut metrics: Vec<Metric<'s>> = visited.metrics.iter().map(|of| with(of, of.first.clone())).collect();
        for ((at, node), sample) in &self.joined {
            metrics[*at].samples[*node] = Some(sample);
        }
        Fleet { nodes: visited.nodes, metrics, run_nodes: visited.run_nodes }
    }

    /// Decides `metrics` again for the nodes of `pattern`, against all nodes that have the same visits.
    fn again(&mut self, visited: &Visited<'_>, pattern: &Pattern, metrics: &[usize], settings: &Settings) {
        let joined: Vec<Vec<Option<Sample>>> =
            metrics.iter().map(|at| join(&visited.metrics[*at], visited.nodes, pattern)).collect();
        let of = metrics.iter().zip(&joined);
        let of = of.map(|(at, samples)| with(&visited.metrics[*at], samples.iter().map(Option::as_ref).collect()));
        let run_nodes = (0..visited.nodes).filter(|node| joined.iter().any(|samples| samples[*node].is_some())).count();
        let fleet = Fleet { nodes: visited.nodes, metrics: of.collect(), run_nodes };
        let share = share(pattern.len());
        let settings = Settings { fail: settings.fail * share, warn: settings.warn * share, ..*settings };
        let looks = Looks::of(fleet, &settings, &self.failed());
        let of_node = |node: usize| {
            let own = |at: usize| {
                let visits = visited.metrics[at].again.get(&node);
                visits.is_some_and(|visits| visits.iter().map(Option::is_some).eq(pattern.iter().copied()))
            };
            let mine: Vec<usize> = (0..metrics.len()).filter(|place| own(metrics[*place])).collect();
            (!mine.is_empty()).then_some((node, mine))
        };
        for (node, mine) in (0..visited.nodes).filter_map(of_node) {
            for place in &mine {
                if let Some(sample) = &joined[*place][node] {
                    self.joined.insert((metrics[*place], node), sample.clone());
                }
            }
            self.visits[node] = self.visits[node].max(pattern.iter().filter(|usable| **usable).count());
            for (at, places) in looks.all.metrics_of.iter().enumerate() {
                let own = mine.iter().filter(|place| places.contains(place));
                let again: Vec<usize> = places.iter().map(|place| metrics[*place]).collect();
                let later = Later { visited, pattern, node, metrics: &again };
                let decision = looks.finer(node, at);
                let (mut cells, mut component) = (
                    decision.cells.iter().map(|cells| cells[node]).collect(),
                    decision.nodes[node].components[at].clone(),
                );
                later.repeated((&mut cells, places), &mut component);
                let mut any = false;
                for place in own {
                    let cell = &mut self.decision.cells[metrics[*place]][node];
                    *cell = revisited(cell, cells[*place], visited.metrics[metrics[*place]].busy.contains(&node));
                    any = true;
                }
                if any {
                    self.take(node, &component, (&again, metrics, later.busy()));
                }
            }
        }
    }

    /// Nodes that failed so far.
    fn failed(&self) -> BTreeSet<usize> {
        let nodes = self.decision.nodes.iter().enumerate();
        nodes.filter(|(_, node)| node.state == State::Fail).map(|(at, _)| at).collect()
    }

    /// Puts a component as it was decided later, by the metrics `again`, in the place of the earlier one; metrics that were not
    /// measured again keep their say. What the component's metrics said together before is forgotten where others were at work.
    fn take(&mut self, node: usize, later: &ComponentDecision, (again, metrics, busy): (&[usize], &[usize], bool)) {
        let Decision { cells, nodes, metrics_of, .. } = &mut self.decision;
        let place = nodes[node].components.iter().position(|c| c.component == later.component);
        let Some(place) = place else { return };
        let kept = metrics_of[place].iter().filter(|at| !again.contains(at)).map(|at| cells[*at][node].state);
        let kept: Vec<State> = kept.filter(|state| *state > State::Pass).collect();
        let seen = again.iter().map(|at| cells[*at][node].state).max();
        let earlier = &mut nodes[node].components[place];
        let before = earlier.average.filter(|average| !busy && average.state == State::Fail);
        let average = later.average.or(before.map(warned));
        let states = kept.iter().copied().chain(seen).chain(average.map(|average| average.state));
        *earlier = ComponentDecision {
            state: states.fold(later.state, State::max),
            undecided: later.undecided || kept.contains(&State::Unknown),
            limiting: later.limiting.map(|of| Limiting { metric: metrics[of.metric], ..of }),
            average,
            ..later.clone()
        };
        let components = &nodes[node].components;
        let state = components.iter().map(|c| c.state).max().unwrap_or(State::NotRun);
        let undecided = components.iter().any(|c| c.undecided);
        (nodes[node].state, nodes[node].undecided) = (state, undecided);
    }
}

/// Share of the chance of a false verdict that is spent on a visit: half as much on each as on the one before.
fn share(visit: usize) -> f64 {
    0.5f64.powi(i32::try_from(visit).unwrap_or(i32::MAX) - 1)
}

/// Whether so many nodes failed before that the rest, without one more, cannot be called the healthy ones.
const fn are_many(failed: usize, nodes: usize) -> bool {
    3 * (failed + 1) > nodes
}

/// The same visits, decided among all nodes, and among those that have not failed before.
struct Looks {
    all: Decision,
    /// With the nodes that were left out; `None` where none was, or too many to call the rest healthy.
    rest: Option<(Decision, BTreeSet<usize>)>,
}

impl Looks {
    fn of(mut fleet: Fleet<'_>, settings: &Settings, failed: &BTreeSet<usize>) -> Self {
        let all = decide(&fleet, settings);
        let here: BTreeSet<usize> =
            failed.iter().copied().filter(|at| fleet.metrics.iter().any(|of| of.samples[*at].is_some())).collect();
        if here.is_empty() || are_many(here.len(), fleet.run_nodes) {
            return Self { all, rest: None };
        }
        for metric in &mut fleet.metrics {
            here.iter().for_each(|at| metric.samples[*at] = None);
        }
        Self { all, rest: Some((decide(&fleet, settings), here)) }
    }

    /// The look that sees the smaller loss in a component of `node`. What is seen depends on the other nodes alone, so this
    /// favours nobody. Where a part of all nodes is as slow, it stays in view.
    fn finer(&self, node: usize, component: usize) -> &Decision {
        let Some((rest, _)) = self.rest.as_ref().filter(|(_, failed)| !failed.contains(&node)) else {
            return &self.all;
        };
        let seen = |decision: &Decision| decision.nodes[node].components[component].resolution.unwrap_or(f64::INFINITY);
        let split = |place: &usize| {
            let why = self.all.cells[*place][node].why;
            matches!(why, Why::Contested | Why::TwoClusters)
        };
        let clear = !self.all.metrics_of[component].iter().any(split);
        if clear && seen(rest) < seen(&self.all) { rest } else { &self.all }
    }
}

/// A component of a node as it is after another visit.
struct Later<'l, 'a> {
    visited: &'l Visited<'a>,
    pattern: &'l Pattern,
    node: usize,
    /// The component's metrics that were measured again.
    metrics: &'l [usize],
}

impl Later<'_, '_> {
    /// Whether others were at work on the node meanwhile.
    fn busy(&self) -> bool {
        self.metrics.iter().any(|metric| self.visited.metrics[*metric].busy.contains(&self.node))
    }

    fn losses(&self, metric: usize, view: View) -> Losses {
        let of = &self.visited.metrics[metric];
        Losses::of(&visits(of, self.visited.nodes, self.pattern), of.direction, view)
    }

    /// Takes back what is not there on most visits: a joint value spreads a burst of one visit over all of them. `places` are
    /// those of the component's metrics in `cells`.
    fn repeated(&self, (cells, places): (&mut Vec<Cell>, &[usize]), component: &mut ComponentDecision) {
        let mut back = false;
        for (metric, place) in self.metrics.iter().zip(places) {
            let cell = &mut cells[*place];
            let busy = self.visited.metrics[*metric].busy.contains(&self.node);
            let says = cell.state == State::Fail || busy && cell.state == State::Warn && cell.why == Why::BeyondWarning;
            if !says {
                continue;
            }
            let why = match self.losses(*metric, cell.view).repeat(self.node, cell.loss) {
                Repeats::Yes => continue,
                Repeats::No => Why::NotEveryVisit,
                Repeats::OthersToo => Why::OthersInSomeVisits,
            };
            (cell.state, cell.why, back) = (State::Unknown, why, true);
        }
        if let Some(average) = &mut component.average
            && average.state == State::Fail
        {
            let all: Vec<Losses> = self.metrics.iter().map(|metric| self.losses(*metric, View::MedianStep)).collect();
            let all = Losses::mean(&all);
            if all.loss(self.node).is_some_and(|loss| all.repeat(self.node, loss) != Repeats::Yes) {
                (average.state, back) = (State::Warn, true);
            }
        }
        if back {
            let states = places.iter().map(|place| cells[*place].state).chain(component.average.map(|of| of.state));
            component.state = states.fold(State::Unknown, State::max);
            component.undecided = true;
        }
    }
}

/// What is said after another visit: that a node failed once, beyond chance, is worth a warning even if it never does again,
/// unless others were at work on it.
fn revisited(earlier: &Cell, later: Cell, busy: bool) -> Cell {
    if !busy && earlier.state == State::Fail && matches!(later.state, State::Pass | State::Unknown) {
        return Cell { state: State::Warn, why: Why::NotEveryVisit, ..*earlier };
    }
    later
}

fn warned(average: Average) -> Average {
    Average { state: State::Warn, ..average }
}

/// Per visit, the steps outside of slow stretches of those nodes that have one in some visits and not in all: the mean of a
/// disturbed visit and a calm one would still be slow, and a node that is slow for a while in every visit is slow.
fn calm(direction: Direction, visits: &[Vec<Option<&Sample>>]) -> Vec<Vec<Option<Sample>>> {
    let nodes = visits.first().map_or(0, Vec::len);
    let mut calm: Vec<Vec<Option<Sample>>> =
        visits.iter().map(|visit| visit.iter().map(|sample| outside((*sample)?, direction)).collect()).collect();
    for node in (0..nodes).filter(|node| calm.iter().all(|visit| visit[*node].is_some())).collect::<Vec<_>>() {
        calm.iter_mut().for_each(|visit| visit[node] = None);
    }
    calm
}

/// One sample per node of the visits in `pattern` that could be judged; `None` for nodes that lack one of them.
fn join(metric: &VisitedMetric<'_>, nodes: usize, pattern: &Pattern) -> Vec<Option<Sample>> {
    let visits = visits(metric, nodes, pattern);
    let calm = calm(metric.direction, &visits);
    let steps = visits.iter().zip(&calm).map(|(visit, calm)| {
        visit.iter().zip(calm).map(|(sample, calm): (_, &Option<Sample>)| calm.as_ref().or(*sample)).collect()
    });
    join_visits(&steps.collect::<Vec<_>>())
}

/// The visits in `pattern` that could be judged, of nodes that were visited as often.
fn visits<'a>(metric: &VisitedMetric<'a>, nodes: usize, pattern: &Pattern) -> Vec<Vec<Option<&'a Sample>>> {
    // Nodes that were visited once are no peers of those visited again: theirs was another hour.
    let of = |at: usize, node: usize| {
        let visits = metric.again.get(&node).filter(|visits| visits.len() >= pattern.len())?;
        visits[at]
    };
    let used = (0..pattern.len()).filter(|at| pattern[*at]);
    used.map(|at| (0..nodes).map(|node| of(at, node)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_was_visited_again_or_missed_the_first_visit_has_a_pattern() {
        let one = Sample::new(&[1.0]).unwrap();
        assert_eq!((pattern(&[Some(&one)]), pattern(&[None, None]), pattern(&[])), (None, None, None));
        assert_eq!(pattern(&[Some(&one), Some(&one)]), Some(vec![true, true]));
        assert_eq!(pattern(&[None, Some(&one)]), Some(vec![false, true]));
    }

    #[test]
    fn each_visit_spends_half_of_what_the_one_before_did_and_less_than_a_third_may_have_failed() {
        assert_eq!([1, 2, 3, 4].map(share), [1.0, 0.5, 0.25, 0.125]);
        assert_eq!(
            [(1, 5), (1, 6), (4, 15), (4, 14), (9, 30), (9, 29)].map(|(failed, nodes)| are_many(failed, nodes)),
            [true, false, false, true, false, true]
        );
    }

    /// Sixteen nodes, the last slower by `loss`, each with values around 100 that differ by `noise`, for each visit the levels
    /// of the hour.
    fn samples(nodes: usize, loss: f64, noise: f64, hour: f64, seed: u64) -> Vec<Sample> {
        let mut state = seed;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / f64::from(1u32 << 31) - 0.5
        };
        let mut node = |at: usize| {
            let slow = if at + 1 == nodes { 1.0 - loss } else { 1.0 };
            let own = hour * slow * (1.0 + noise * uniform());
            Sample::new(&(0..16).map(|_| 100.0 * own * (1.0 + 0.002 * uniform())).collect::<Vec<_>>()).unwrap()
        };
        (0..nodes).map(&mut node).collect()
    }

    fn rounds(visits: &[Vec<Sample>], of: &[usize]) -> Rounds {
        rounds_beside(visits, of, &[])
    }

    /// With others at work on the nodes `busy`.
    fn rounds_beside(visits: &[Vec<Sample>], of: &[usize], busy: &[usize]) -> Rounds {
        let id = MetricId::new("b", "m", "own");
        let again = of.iter().map(|node| (*node, visits.iter().map(|visit| Some(&visit[*node])).collect())).collect();
        let metric = VisitedMetric {
            id: &id,
            direction: Direction::HigherIsBetter,
            component: Component::Cpu,
            aggregated: false,
            frozen: None,
            first: visits[0].iter().map(Some).collect(),
            again,
            busy: busy.iter().copied().collect(),
        };
        let nodes = visits[0].len();
        decide_rounds(&Visited { nodes, metrics: vec![metric], run_nodes: nodes }, &Settings::default())
    }

    #[test]
    fn a_slow_node_is_still_slow_and_a_busy_hour_is_not_its_fault() {
        let calm = samples(16, 0.2, 0.004, 1.0, 1);
        let hour = samples(16, 0.2, 0.004, 0.6, 2);
        let found = rounds(&[calm, hour], &(6..16).collect::<Vec<_>>());
        assert_eq!(found.decision.cells[0][15].state, State::Fail);
        assert!(found.decision.nodes[..15].iter().all(|node| node.state == State::Pass));
        assert_eq!((found.visits[0], found.visits[15]), (1, 2));
    }

    #[test]
    fn a_node_that_was_slow_once_is_warned_of_and_a_doubt_that_does_not_return_is_gone() {
        let later = || [samples(16, 0.0, 0.004, 1.0, 2), samples(16, 0.0, 0.004, 1.0, 3)];
        let state = |loss: f64| {
            let [second, third] = later();
            let visits = [samples(16, loss, 0.004, 1.0, 1), second, third];
            let alone = rounds(&visits[..1], &[]).decision.cells[0][15].state;
            (alone, rounds(&visits, &(4..16).collect::<Vec<_>>()).decision.cells[0][15])
        };
        let (alone, found) = state(0.3);
        assert_eq!((alone, found.state, found.why), (State::Fail, State::Warn, Why::NotEveryVisit));
        let (alone, found) = state(0.035);
        assert!(alone < State::Fail && found.state == State::Pass, "{alone:?} {found:?}");
    }

    #[test]
    fn a_burst_in_one_of_two_visits_fails_nobody_and_asks_for_a_third() {
        let visits = [(0.5, 1), (0.0, 2), (0.0, 3)].map(|(loss, seed)| samples(16, loss, 0.004, 1.0, seed));
        let everyone = (0..16).collect::<Vec<_>>();
        for busy in [&[][..], &everyone] {
            let two = rounds_beside(&visits[..2], &everyone, busy).decision.nodes;
            assert!(two[15].state < State::Fail && two[15].undecided, "{:?}", two[15]);
            assert!(rounds_beside(&visits, &everyone, busy).decision.nodes[15].state < State::Fail);
        }
    }

    #[test]
    fn slowness_beside_others_work_that_does_not_return_was_theirs() {
        let visits = [(0.3, 1), (0.0, 2), (0.0, 3)].map(|(loss, seed)| samples(16, loss, 0.004, 1.0, seed));
        let found = rounds_beside(&visits, &(0..16).collect::<Vec<_>>(), &(0..16).collect::<Vec<_>>());
        assert_eq!(found.decision.nodes[15].state, State::Pass, "{:?}", found.decision.nodes[15]);
        let visits = [1, 2, 3].map(|seed| samples(16, 0.3, 0.004, 1.0, seed));
        let found = rounds_beside(&visits, &(0..16).collect::<Vec<_>>(), &(0..16).collect::<Vec<_>>());
        assert_eq!(found.decision.nodes[15].state, State::Fail);
    }

    #[test]
    fn a_node_that_failed_no_longer_hides_what_the_others_are() {
        let visits = [1, 2].map(|seed| samples(12, 0.5, 0.1, 1.0, seed));
        let alone = rounds(&visits[..1], &[]).decision;
        assert_eq!(alone.nodes[11].state, State::Fail);
        let hidden = |decision: &Decision| decision.nodes[..11].iter().filter(|node| node.undecided).count();
        assert_eq!(hidden(&alone), 11, "a slow node of twelve makes the rest undecided at this noise");
        let found = rounds(&visits, &(0..12).collect::<Vec<_>>()).decision;
        assert_eq!(found.nodes[11].state, State::Fail);
        assert!(found.nodes[..11].iter().all(|node| node.state == State::Pass && !node.undecided), "{:?}", found.nodes);
    }

    #[test]
    fn a_third_that_failed_is_not_left_out_of_the_comparison() {
        let mut nodes = samples(12, 0.0, 0.004, 1.0, 1);
        for node in &mut nodes[..4] {
            *node = Sample::new(&node.values().iter().map(|value| value * 0.7).collect::<Vec<_>>()).unwrap();
        }
        let fifth = Sample::new(&nodes[4].values().iter().map(|value| value * 0.7).collect::<Vec<_>>()).unwrap();
        let mut later = nodes.clone();
        later[4] = fifth;
        let found = rounds(&[nodes, later.clone(), later], &(0..12).collect::<Vec<_>>()).decision;
        assert!(found.nodes.iter().all(|node| node.state != State::Pass), "{:?}", found.nodes);
    }

    #[test]
    fn one_burst_among_three_visits_is_outvoted_where_the_first_visit_was_quiet() {
        let visits =
            [samples(16, 0.0, 0.004, 1.0, 1), samples(16, 0.3, 0.004, 1.0, 2), samples(16, 0.0, 0.004, 1.0, 3)];
        let found = rounds(&visits, &(4..16).collect::<Vec<_>>());
        assert_eq!(found.decision.cells[0][15].state, State::Pass, "{:?}", found.decision.cells[0][15]);
    }
    /// Sixteen nodes, of which the last is half as fast in the first `slow` of 32 steps.
    fn for_a_while(slow: usize, seed: u64) -> Vec<Sample> {
        let calm = samples(16, 0.0, 0.004, 1.0, seed);
        let steps = |sample: &Sample| sample.values().iter().chain(sample.values()).copied().collect::<Vec<_>>();
        let mut all: Vec<Vec<f64>> = calm.iter().map(steps).collect();
        all[15][..slow].iter_mut().for_each(|value| *value /= 2.0);
        all.iter().map(|steps| Sample::in_steps(steps).unwrap()).collect()
    }

    #[test]
    fn slow_for_a_while_is_gone_after_a_calm_visit_and_fails_if_every_visit_has_it() {
        let again: Vec<usize> = (4..16).collect();
        let state = |visits: &[Vec<Sample>]| rounds(visits, &again).decision.cells[0][15].state;
        assert_eq!(rounds(&[for_a_while(20, 1)], &[]).decision.cells[0][15].state, State::Warn);
        assert_eq!(state(&[for_a_while(20, 1), for_a_while(0, 2)]), State::Pass);
        assert_eq!(state(&[for_a_while(20, 1), for_a_while(18, 2)]), State::Fail);
        assert_eq!(state(&[for_a_while(20, 1), for_a_while(32, 2)]), State::Fail);
    }
}

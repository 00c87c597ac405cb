//! What the metrics of a run say of its nodes, group by group: criteria learned or applied, and the decision over all metrics.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::decide::{Fleet, Frozen, Settings};
use crate::findings::{
    ComponentState, Decided, Finding, Source, cell_sentence, metric_components, metric_findings, without_value,
};
use crate::{
    Learned, NodeVerdict, Observation, Rounds, Sample, State, Visited, VisitedMetric, absurd, compare, decide_rounds,
    learn_silently,
};
use muster_run::Run;
use muster_wire::{Component, Described, Direction, MetricId, MetricRole, Unit};

use super::assessment::{Basis, Judged};
use super::chart::Chart;
use super::context::Context;
use super::parallel::on_all_cores;
use super::trusted;
use crate::records::{self, Evidence, Measured, Turn};

/// What the metrics of a run say.
#[derive(Debug, Default)]
pub(super) struct OfMetrics {
    /// One per metric and group of nodes, in metric order.
    pub judged: Vec<Judged>,
    /// By node, in metric order.
    pub verdicts: BTreeMap<String, Vec<NodeVerdict>>,
    /// By node.
    pub findings: BTreeMap<String, Vec<Finding>>,
    /// By node.
    pub measured: BTreeMap<String, Vec<ComponentState>>,
}

/// One metric on the nodes of one group.
struct Of<'a> {
    id: &'a MetricId,
    unit: Unit,
    direction: Direction,
    described: &'a Described,
    frozen: Option<&'a Frozen>,
    criterion: Option<&'a str>,
    first: Vec<Option<Sample>>,
    again: BTreeMap<usize, Vec<Option<Sample>>>,
    busy: BTreeSet<usize>,
    /// Nodes that have no value of it, though their benchmark is done and others have one.
    without: BTreeSet<usize>,
}

impl Of<'_> {
    /// Of the nodes called `names`, to which `learned` gives the verdicts.
    fn chart(&self, learned: &Learned, names: &[Arc<str>]) -> Chart {
        let newest = |at: usize| self.again.get(&at).map_or(self.first[at].as_ref(), |visits| visits.last()?.as_ref());
        let mut rest = learned.verdicts.iter();
        // Both are in the order of the nodes.
        let own = |(at, name): (usize, &Arc<str>)| {
            let verdict = rest.as_slice().first().filter(|verdict| verdict.node == *name)?;
            rest.next();
            Some((verdict, newest(at)?))
        };
        Chart::of(&names.iter().enumerate().filter_map(own).collect::<Vec<_>>())
    }
}

/// The nodes of one group, with what they did.
struct Group<'a> {
    name: &'a str,
    /// Places in the run.
    members: Vec<usize>,
    names: Vec<Arc<str>>,
    /// By benchmark, then member: what holds for all metrics of a visit is looked up once.
    turns: HashMap<&'a str, Vec<Vec<Option<Turn<'a>>>>>,
    /// By benchmark and name of a metric, how many engines measured it.
    engines: HashMap<(&'a str, &'a str), usize>,
}

impl<'a> Group<'a> {
    /// Whether another engine took the place of this one on a node. A record holds thousands of metrics, so it is asked only where
    /// there is another one.
    fn is_elsewhere(&self, place: usize, metric: &MetricId) -> bool {
        let turns = self.turns.get(metric.benchmark.as_str());
        self.engines.get(&(metric.benchmark.as_str(), metric.name.as_str())).is_some_and(|engines| *engines > 1)
            && turns.is_some_and(|turns| records::by_another_engine(&turns[place], metric))
    }

    fn of(run: &Run, (name, groups): (&'a str, &[String]), all: &[Measured<'a>], evidence: &Evidence<'a>) -> Self {
        let members: Vec<usize> = (0..run.nodes.len()).filter(|at| groups[*at] == name).collect();
        let names: Vec<Arc<str>> = members.iter().map(|at| run.nodes[*at].as_str().into()).collect();
        let (mut turns, mut engines) = (HashMap::new(), HashMap::new());
        for of in all {
            *engines.entry((of.id.benchmark.as_str(), of.id.name.as_str())).or_default() += 1;
            let benchmark = of.id.benchmark.as_str();
            let of_nodes = || names.iter().map(|node| evidence.turns(node, benchmark)).collect();
            turns.entry(benchmark).or_insert_with(of_nodes);
        }
        Self { name, members, names, turns, engines }
    }
}

/// Decides on every node; `groups` names the group of each node of the run, in its order.
pub(super) fn decide(run: &Run, evidence: &Evidence<'_>, context: &Context, groups: &[String]) -> OfMetrics {
    let all = evidence.measured(run);
    let names: BTreeSet<&String> = groups.iter().collect();
    context.count.begin(all.len(), names.len());
    let mut found = OfMetrics::default();
    let mut by_metric: Vec<(usize, Learned, (Basis, Chart))> = Vec::new();
    for name in names {
        let group = Group::of(run, (name, groups), &all, evidence);
        let (mut places, mut learned, mut of) = (Vec::new(), Vec::new(), Vec::new());
        let each = on_all_cores(&all, |metric| {
            let one = of_metric(&group, context, metric);
            context.count.add();
            one
        });
        for (place, (criterion, samples)) in each.into_iter().enumerate().filter_map(|(at, one)| Some((at, one?))) {
            places.push(place);
            learned.push(criterion);
            of.push(samples);
        }
        let nodes: Vec<&str> = group.names.iter().map(|name| &**name).collect();
        let members = Members { group: name, nodes: &nodes, run_nodes: run.nodes.len(), of: &of };
        members.decide(&mut learned, &mut found);
        found.without_value(&nodes, &of);
        let nodes: Arc<BTreeSet<Arc<str>>> = Arc::new(group.names.iter().cloned().collect());
        for ((place, mut learned), of) in places.into_iter().zip(learned).zip(&of) {
            found.undone(&learned, &of.without.iter().map(|at| &*group.names[*at]).collect());
            if of.criterion.is_some() && of.frozen.is_none() && of.described.role == MetricRole::Judged {
                for finding in trusted::findings(&mut learned, name, &of.described.component) {
                    found.findings.entry(finding.node.clone()).or_default().push(finding);
                }
            }
            let basis = Basis { group: name.clone(), frozen: of.criterion.is_some(), nodes: nodes.clone() };
            let chart = of.chart(&learned, &group.names);
            by_metric.push((place, learned, (basis, chart)));
        }
    }
    by_metric.sort_by_key(|(place, ..)| *place);
    for (_, Learned { criterion, verdicts }, (basis, chart)) in by_metric {
        found.judged.push(Judged { criterion, basis, chart });
        for mut verdict in verdicts {
            if verdict.state > State::Pass && verdict.reason.is_empty() {
                // No visit of it could be weighed with the others'.
                verdict.reason = format!("{}: {} not decided", verdict.node, verdict.metric.path());
            }
            match found.verdicts.get_mut(&*verdict.node) {
                Some(own) => own.push(verdict),
                None => drop(found.verdicts.insert(verdict.node.to_string(), vec![verdict])),
            }
        }
    }
    found
}

/// What the nodes of a group have for one metric.
#[derive(Default)]
struct Has {
    /// Places in the group, ascending, and what is observed there.
    places: Vec<usize>,
    observed: Vec<(Arc<str>, Observation)>,
    first: Vec<Option<Sample>>,
    again: BTreeMap<usize, Vec<Option<Sample>>>,
    busy: BTreeSet<usize>,
    without: BTreeSet<usize>,
}

impl Has {
    fn of(group: &Group<'_>, metric: &Measured<'_>) -> Option<Self> {
        let turns = group.turns.get(metric.id.benchmark.as_str())?;
        let mut all = Self { first: vec![None; group.members.len()], ..Self::default() };
        let mut rest = metric.series.as_slice();
        for (place, at) in group.members.iter().enumerate() {
            rest = &rest[rest.partition_point(|(of, ..)| of < at)..];
            let own;
            (own, rest) = rest.split_at(rest.partition_point(|(of, ..)| of <= at));
            let observed = match records::of_metric(&turns[place], &metric.described.component, own) {
                Some(has) => all.take(place, has),
                None if records::is_done(&turns[place]) && !group.is_elsewhere(place, metric.id) => {
                    all.without.insert(place);
                    Observation::Missing("no value".into())
                }
                None => continue,
            };
            all.places.push(place);
            all.observed.push((group.names[place].clone(), observed));
        }
        all.drop_unexpected(metric.described.role);
        Some(all)
    }

    fn take(&mut self, place: usize, mut has: records::OfNode) -> Observation {
        self.busy.extend(has.busy.then_some(place));
        if has.visits.len() > 1 {
            self.first[place].clone_from(&has.visits[0]);
            self.again.insert(place, has.visits);
        } else {
            self.first[place] = has.visits.pop().flatten();
        }
        has.observed
    }

    /// A metric that is never judged, or that most of the nodes that did its benchmark lack, is not expected of any.
    fn drop_unexpected(&mut self, role: MetricRole) {
        let have = self.observed.iter().filter(|(_, of)| !matches!(of, Observation::Missing(_))).count();
        if role != MetricRole::Informational && have > 0 && have >= self.without.len() {
            return;
        }
        let without = std::mem::take(&mut self.without);
        let mut places = self.places.iter();
        self.observed.retain(|_| places.next().is_some_and(|place| !without.contains(place)));
        self.places.retain(|place| !without.contains(place));
    }
}

fn of_metric<'a>(group: &Group<'_>, context: &'a Context, metric: &'a Measured<'_>) -> Option<(Learned, Of<'a>)> {
    let Has { places, mut observed, mut first, mut again, busy, without } = Has::of(group, metric)?;
    // A metric that no node of the group measured is another group's.
    if observed.iter().all(|(_, observed)| matches!(observed, Observation::Missing(_))) {
        return None;
    }
    let series = metric.series.first()?.2;
    for (at, why) in absurd(&observed, series.unit, series.direction) {
        observed[at].1 = Observation::Failed(why);
        first[places[at]] = None;
        again.remove(&places[at]);
    }
    let params = &context.params;
    let criterion = context.criterion(group.name, metric.id);
    let learned = match criterion {
        Some(criterion) => compare(criterion, &observed, params),
        None => learn_silently((metric.id, series.unit, series.direction), &observed, params),
    };
    let of = Of {
        id: metric.id,
        unit: series.unit,
        direction: series.direction,
        described: &metric.described,
        frozen: context.frozen(group.name, metric.id),
        criterion: criterion.map(|criterion| criterion.id.as_str()),
        first,
        again,
        busy,
        without,
    };
    Some((learned, of))
}

/// The nodes that are compared with each other, and what they have.
struct Members<'a> {
    group: &'a str,
    nodes: &'a [&'a str],
    run_nodes: usize,
    of: &'a [Of<'a>],
}

impl Members<'_> {
    fn decide(&self, learned: &mut [Learned], found: &mut OfMetrics) {
        let places = |role: MetricRole| (0..self.of.len()).filter(move |at| self.of[*at].described.role == role);
        let mut judged: Vec<usize> = places(MetricRole::Judged).collect();
        let components: BTreeSet<_> = judged.iter().map(|at| &self.of[*at].described.component).collect();
        // A tail repeats nowhere: it may warn, and vouches for nothing; but where a component has nothing else, it is judged.
        let (tails, lone): (Vec<usize>, Vec<usize>) =
            places(MetricRole::Tail).partition(|at| components.contains(&self.of[*at].described.component));
        judged.extend(lone);
        self.judge(&judged, State::Fail, learned, found);
        self.judge(&tails, State::Warn, learned, found);
    }

    /// Whether half of the nodes or more have each component, in the order of a node's components: what only few have, such as a second
    /// disk, the others do not lack.
    fn common(&self, fleet: &Fleet<'_>, rounds: &Rounds) -> Vec<bool> {
        let have: Vec<usize> = fleet.metrics.iter().map(|of| of.samples.iter().flatten().count()).collect();
        let most = |metric: &usize| 2 * have[*metric] >= self.nodes.len();
        rounds.decision.metrics_of.iter().map(|metrics| metrics.iter().any(most)).collect()
    }

    /// Decides by the metrics at `places`; nothing is said that is graver than `most`.
    fn judge(&self, places: &[usize], most: State, learned: &mut [Learned], found: &mut OfMetrics) {
        if places.is_empty() {
            return;
        }
        let metrics: Vec<VisitedMetric<'_>> = places.iter().map(|at| visited(&self.of[*at])).collect();
        let visited = Visited { nodes: self.nodes.len(), metrics, run_nodes: self.run_nodes };
        let settings = Settings::default();
        let rounds: Rounds = decide_rounds(&visited, &settings);
        let fleet = rounds.fleet(&visited);
        let units: Vec<Unit> = places.iter().map(|at| self.of[*at].unit).collect();
        let criteria: Vec<Option<&str>> = places.iter().map(|at| self.of[*at].criterion).collect();
        let decided = |at: usize| Decided {
            nodes: self.nodes,
            group: self.group,
            fleet: &fleet,
            units: &units,
            criteria: &criteria,
            decision: &rounds.decision,
            visits: rounds.visits[at],
        };
        let common = self.common(&fleet, &rounds);
        for (at, node) in self.nodes.iter().enumerate() {
            let mut findings = metric_findings(&decided(at), at);
            if most == State::Warn {
                findings.retain(|finding| finding.state >= State::Warn);
                findings.iter_mut().for_each(|finding| finding.state = State::Warn);
            } else {
                let known = metric_components(&decided(at), at).into_iter().zip(&common);
                let known = known.filter(|(known, common)| **common || known.state != State::NotRun);
                found.measured.entry((*node).to_owned()).or_default().extend(known.map(|(known, _)| known));
            }
            found.findings.entry((*node).to_owned()).or_default().extend(findings);
        }
        for (place, cells) in rounds.decision.cells.iter().enumerate() {
            let mut verdicts = learned[places[place]].verdicts.iter_mut();
            for (at, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.state != State::NotRun) {
                // Both are in the order of the nodes.
                let Some(verdict) = verdicts.by_ref().find(|verdict| *verdict.node == *self.nodes[at]) else { break };
                revise(verdict, cell.alone(&settings).min(most), || cell_sentence(&decided(at), place, at));
            }
        }
    }
}

fn visited<'s>(of: &'s Of<'_>) -> VisitedMetric<'s> {
    VisitedMetric {
        id: of.id,
        direction: of.direction,
        component: of.described.component.clone(),
        aggregated: of.described.aggregated,
        frozen: of.frozen,
        first: of.first.iter().map(Option::as_ref).collect(),
        again: of.again.iter().map(|(at, visits)| (*at, visits.iter().map(Option::as_ref).collect())).collect(),
        busy: of.busy.clone(),
    }
}

/// The verdict of a metric as the decision has it; where the benchmark itself failed, that stands.
fn revise(verdict: &mut NodeVerdict, state: State, sentence: impl FnOnce() -> String) {
    if verdict.state == State::Fail && verdict.similarity.is_none() {
        return;
    }
    verdict.state = state;
    verdict.reason = if state > State::Pass { format!("{}: {}", verdict.node, sentence()) } else { String::new() };
}

impl OfMetrics {
    /// Findings of metrics without a value on nodes of which most others have one: one per node and component. `of` are the
    /// metrics of the nodes called `names`.
    fn without_value(&mut self, names: &[&str], of: &[Of<'_>]) {
        let mut missing: BTreeMap<(usize, &Component), Vec<&MetricId>> = BTreeMap::new();
        for metric in of {
            for at in &metric.without {
                missing.entry((*at, &metric.described.component)).or_default().push(metric.id);
            }
        }
        for ((at, component), metrics) in missing {
            let found = without_value(names[at], component, &metrics);
            self.findings.entry(names[at].to_owned()).or_default().push(found);
        }
    }

    /// Findings of what was not measured, or not validly: one per node and benchmark, but for the nodes that are only `without` a
    /// value of this metric.
    fn undone(&mut self, learned: &Learned, without: &BTreeSet<&str>) {
        let metric = &learned.criterion.metric;
        let told = |verdict: &&NodeVerdict| verdict.similarity.is_none() && !without.contains(&*verdict.node);
        for verdict in learned.verdicts.iter().filter(told) {
            let state = match verdict.state {
                State::Fail => State::Fail,
                State::NotRun => State::NotRun,
                _ => continue,
            };
            let known = self.findings.entry(verdict.node.to_string()).or_default();
            let source = Source::Benchmark(metric.benchmark.clone());
            if !known.iter().any(|finding| finding.source == source && finding.state == state) {
                known.push(undone(verdict, source, state));
            }
        }
    }
}

fn undone(verdict: &NodeVerdict, source: Source, state: State) -> Finding {
    let component = crate::records::works::component(&verdict.metric.benchmark);
    let next = if state == State::Fail { "run the benchmark on it by hand" } else { "run it again" };
    Finding::new(&verdict.node, component, source, state, verdict.reason.clone()).next(next)
}

//! From what metrics decide to findings with their sentences: one per component and severity, so that a node that is slow in
//! thirteen CPU metrics is one finding and not thirteen.

use std::mem::discriminant;

use muster_wire::{Component, ComponentKind, Direction, MetricId, Unit};

use super::names::{count, some};
use super::{Compared, ComponentState, Effect, Finding, Source, change, next};
use crate::decide::{
    Average, Cell, ComponentDecision, Decision, Fleet, Limiting, Settings, SlowerRun, View as Look, Why,
};
use crate::{Sample, State};

/// Metrics too noisy to judge that a remark names at most.
const REMARKED: usize = 5;

/// How much longer a node takes than its peers where an undecided component says so: a quarter, and three spreads.
const CLEARLY: f64 = 0.25;
const SPREADS: f64 = 3.0;

/// A decided fleet with the names of what is in it.
#[derive(Clone, Copy, Debug)]
pub struct Decided<'a> {
    /// Names of the nodes, in the order of the fleet.
    pub nodes: &'a [&'a str],
    /// Which nodes these are, such as `cpu=EPYC 9654`; empty where it is all nodes.
    pub group: &'a str,
    /// What was decided upon.
    pub fleet: &'a Fleet<'a>,
    /// Unit of each metric.
    pub units: &'a [Unit],
    /// Identity of the frozen criterion of each metric that has one.
    pub criteria: &'a [Option<&'a str>],
    /// What was decided.
    pub decision: &'a Decision,
    /// How often the nodes were measured for it.
    pub visits: usize,
}

/// What the metrics of node number `node` say, as findings. Linear in its metrics, and in the nodes where some are alike.
#[must_use]
pub fn metric_findings(decided: &Decided<'_>, node: usize) -> Vec<Finding> {
    let own = &decided.decision.nodes[node];
    let view = View { decided, node };
    let mut found = Vec::new();
    for (component, metrics) in own.components.iter().zip(&decided.decision.metrics_of) {
        let part = Part { of: &component.component, metrics: view.measured(metrics) };
        for state in [State::Fail, State::Warn, State::Unknown] {
            found.extend(view.of_cells(&part, state));
        }
        found.extend(component.average.as_ref().and_then(|average| view.of_average(&part, average)));
        if component.state == State::Pass {
            found.extend(view.remark(&part));
        }
        let limiting = component.limiting.filter(|_| component.undecided);
        found.extend(limiting.and_then(|of| view.too_noisy(&part, of)));
    }
    for kind in &own.kinds {
        let slow = |state: State| own.components.iter().any(|c| c.component.kind() == kind.kind && c.state >= state);
        let average = kind.average.as_ref().filter(|average| !slow(average.state));
        found.extend(average.map(|average| view.of_kind(kind.kind, average)));
    }
    found.extend(decided.decision.slower_runs.iter().filter_map(|run| view.of_run(run)));
    found
}

/// What the metrics of node number `node` say of each of its components; a node's own kinds of many instances (its cores
/// together) are among them.
#[must_use]
pub fn metric_components(decided: &Decided<'_>, node: usize) -> Vec<ComponentState> {
    let own = &decided.decision.nodes[node];
    let state = |c: &ComponentDecision| ComponentState {
        component: c.component.clone(),
        state: c.state,
        undecided: c.undecided,
        resolution: c.resolution,
    };
    own.components.iter().map(state).collect()
}

/// One sentence for one metric of node number `node`, without the node's name.
#[must_use]
pub fn cell_sentence(decided: &Decided<'_>, metric: usize, node: usize) -> String {
    View { decided, node }.cell(metric)
}

/// What a node shows by the view of its steps that decided, in the metric's own unit.
fn lost(direction: Direction, cell: &Cell) -> Option<f64> {
    let left = 1.0 - cell.loss;
    let value = match direction {
        Direction::HigherIsBetter => cell.centre * left,
        Direction::LowerIsBetter => cell.centre / left,
    };
    value.is_finite().then_some(value)
}

/// What a node showed once, compared with `others`.
fn once(path: &str, direction: Direction, cell: &Cell, others: &str) -> String {
    let seen = lost(direction, cell).unwrap_or(f64::NAN);
    format!("{path} was {} {others} in one visit only", change(seen, cell.centre))
}

/// In how many metrics of a component nodes are slower, those among them of which less is better.
fn also(slow: usize, of: usize, component: &Component) -> String {
    if of == 1 { String::new() } else { format!(", slower in {slow} of {of} {component} metrics") }
}

/// One component of the node, and the metrics that were measured on it.
struct Part<'a> {
    of: &'a Component,
    metrics: Vec<usize>,
}

/// One node in its fleet.
struct View<'a> {
    decided: &'a Decided<'a>,
    node: usize,
}

impl<'a> View<'a> {
    fn at(&self, metric: usize) -> &'a Cell {
        &self.decided.decision.cells[metric][self.node]
    }

    fn measured(&self, metrics: &[usize]) -> Vec<usize> {
        metrics.iter().copied().filter(|at| self.at(*at).state != State::NotRun).collect()
    }

    fn id(&self, metric: usize) -> &'a MetricId {
        self.decided.fleet.metrics[metric].id
    }

    fn effect(&self, metric: usize) -> Option<Effect> {
        let (cell, of) = (self.at(metric), &self.decided.fleet.metrics[metric]);
        let value = self.value(metric, self.node)?;
        let (metric, unit) = (of.id.clone(), self.decided.units[metric]);
        Some(Effect { metric, unit, direction: of.direction, value, usual: cell.centre, scale: cell.scale })
            .filter(|effect| effect.usual.is_finite())
    }

    /// What a node has of a metric, as far as it was compared.
    fn value(&self, metric: usize, node: usize) -> Option<f64> {
        let (cell, of) = (&self.decided.decision.cells[metric][node], &self.decided.fleet.metrics[metric]);
        let median = of.samples[node]?.median();
        Some(if cell.view == Look::MedianStep { median } else { lost(of.direction, cell).unwrap_or(median) })
    }

    /// The frozen criterion of a metric, in words.
    fn criterion(&self, metric: usize) -> String {
        match self.decided.criteria[metric] {
            Some(criterion) => format!("the frozen criterion {criterion}"),
            None => "the frozen criterion".to_owned(),
        }
    }

    /// Whom a metric of the node was compared with.
    fn others(&self, metric: usize) -> String {
        let cell = self.at(metric);
        if cell.frozen { self.criterion(metric) } else { count(cell.peers as usize, "peer") }
    }

    /// How many of the node's steps did no work, where its mean step decided: a mean over them is none.
    fn zeros(&self, metric: usize) -> String {
        let of = &self.decided.fleet.metrics[metric];
        let Some(steps) = of.samples[self.node].map(Sample::values) else { return String::new() };
        let zeros = steps.partition_point(|value| *value <= 0.0);
        if self.at(metric).view != Look::MeanStep || of.direction == Direction::LowerIsBetter || zeros == 0 {
            return String::new();
        }
        format!(" ({zeros} of {} are zero)", steps.len())
    }

    fn finding(&self, component: &Component, metrics: &[usize], state: State, said: &str) -> Finding {
        let name = self.decided.nodes[self.node];
        let mut ids: Vec<MetricId> = metrics.iter().map(|at| self.id(*at).clone()).collect();
        let source = if ids.len() == 1 { Source::Metric(ids.remove(0)) } else { Source::Metrics(ids) };
        let mut finding = Finding::new(name, component.clone(), source, state, format!("{name}: {said}"));
        if let Some(worst) = metrics.first() {
            finding.effect = self.effect(*worst);
            finding.compared = Some(Compared {
                group: self.decided.group.to_owned(),
                peers: self.at(*worst).peers as usize,
                criterion: self.decided.criteria[*worst].map(str::to_owned),
            });
        }
        finding
    }

    /// What single metrics of a component say at one severity: the worst of them, and how many more.
    fn of_cells(&self, part: &Part<'_>, state: State) -> Option<Finding> {
        let mut metrics: Vec<usize> = part.metrics.iter().copied().filter(|at| self.at(*at).state == state).collect();
        let excess = |at: usize| self.at(at).loss / self.at(at).limit;
        metrics.sort_by(|a, b| excess(*b).total_cmp(&excess(*a)));
        self.largest_first(&mut metrics, state);
        let worst = *metrics.first()?;
        let of = part.metrics.len();
        let said = match self.alike(worst, state) {
            Some(alike) => self.group(&alike, worst, (metrics.len(), of), part.of),
            None if metrics.len() == 1 => self.cell(worst),
            None => {
                let more = if metrics.len() == of {
                    format!("all {of} {} metrics", part.of)
                } else {
                    format!("{} of {of} {} metrics", metrics.len(), part.of)
                };
                format!("{}; the same in {more}", self.cell(worst))
            }
        };
        let next = match self.at(worst).why {
            Why::Contested | Why::TwoClusters => next::CONTESTED,
            Why::WholeRunSlow => next::WHOLE_RUN,
            Why::TooFewNodes | Why::NoReference => next::TOO_FEW,
            _ if state == State::Fail => next::for_slow(part.of.kind()),
            _ => next::AGAIN,
        };
        // Those that disagree about what is normal will do so again.
        let again = !matches!(
            self.at(worst).why,
            Why::Contested
                | Why::TwoClusters
                | Why::TooFewNodes
                | Why::NoReference
                | Why::NotMeasured
                | Why::WholeRunSlow
        );
        Some(self.finding(part.of, &metrics, state, &said).next(next).again(again))
    }

    /// Of metrics that warn by the same rule as the first, the one with the largest loss goes first: their limits do not compare.
    fn largest_first(&self, metrics: &mut [usize], state: State) {
        let Some(first) = metrics.first().filter(|_| state == State::Warn) else { return };
        let rule = discriminant(&self.at(*first).why);
        let same = (0..metrics.len()).filter(|at| discriminant(&self.at(metrics[*at]).why) == rule);
        // Of equal losses the first one stays.
        let largest = same.rev().max_by(|a, b| self.at(metrics[*a]).loss.total_cmp(&self.at(metrics[*b]).loss));
        metrics[..=largest.unwrap_or(0)].rotate_right(1);
    }

    /// The nodes that are as slow as this one in `metric`, itself among them, where there are others and it fails or warns. Of two
    /// camps both are told instead.
    fn alike(&self, metric: usize, state: State) -> Option<Vec<usize>> {
        let cells = &self.decided.decision.cells[metric];
        let own = &cells[self.node];
        let alone = matches!(
            own.why,
            Why::Contested | Why::TwoClusters | Why::SlowForAWhile { .. } | Why::SlowSteps | Why::WholeRunSlow
        );
        if state < State::Warn || own.alike == 0 || alone {
            return None;
        }
        let like = |cell: &Cell| (cell.state, cell.frozen, cell.view) == (state, own.frozen, own.view);
        let mut slow: Vec<usize> = (0..cells.len()).filter(|at| like(&cells[*at]) && cells[*at].alike > 0).collect();
        slow.sort_by(|a, b| cells[*a].loss.total_cmp(&cells[*b].loss));
        let close = |a: &usize, b: &usize| {
            let (a, b) = (&cells[*a], &cells[*b]);
            b.loss - a.loss <= (a.limit / 2.0).max(a.loss / 5.0)
        };
        let mut alike = slow.chunk_by(close).find(|group| group.contains(&self.node))?.to_vec();
        alike.sort_unstable();
        (alike.len() > 1).then_some(alike)
    }

    /// One sentence for all of a group, the same for each of them.
    fn group(&self, alike: &[usize], metric: usize, (slow, of): (usize, usize), component: &Component) -> String {
        let samples = &self.decided.fleet.metrics[metric].samples;
        let names: Vec<&str> = alike.iter().map(|at| self.decided.nodes[*at]).collect();
        let own = middle(alike.iter().filter_map(|at| self.value(metric, *at)).collect());
        let (cell, unit) = (self.at(metric), self.decided.units[metric]);
        let (whom, usual) = if cell.frozen {
            (self.criterion(metric), cell.centre)
        } else if cell.view == Look::MedianStep {
            let rest = (0..samples.len()).filter(|at| !alike.contains(at));
            ("the others".to_owned(), middle(rest.filter_map(|at| Some(samples[at]?.median())).collect()))
        } else {
            ("the others".to_owned(), cell.centre)
        };
        let all = samples.iter().flatten().count();
        format!(
            "{} of {all} nodes alike ({}): {} {}, {} {whom} (median {}){}{}; if they are another model, label them",
            alike.len(),
            some(&names),
            self.id(metric).path(),
            unit.show(own),
            change(own, usual),
            unit.show(usual),
            by(cell.view),
            also(slow, of, component),
        )
    }

    /// What one metric says of the node.
    fn cell(&self, metric: usize) -> String {
        let cell = self.at(metric);
        let path = self.id(metric).path();
        let against = match self.effect(metric) {
            Some(effect) => {
                let (usual, by, zeros) = (effect.unit.show(effect.usual), by(cell.view), self.zeros(metric));
                format!("{path} {} {} (median {usual}){by}{zeros}", effect.words(), self.others(metric))
            }
            None => path.clone(),
        };
        let again =
            if self.decided.visits > 1 { format!(", measured {} times", self.decided.visits) } else { String::new() };
        match cell.why {
            Why::AsPeers if cell.alone(&Settings::default()) == State::Unknown => {
                format!("{against}{again}: too noisy to judge, {}", unseen(cell.resolution))
            }
            Why::AsPeers | Why::Beyond | Why::BeyondFrozen => format!("{against}{again}"),
            Why::BeyondWarning => format!("{against}{again}: more than chance explains, too little to fail it"),
            Why::NotMeasured => format!("{path} not measured"),
            Why::TooFewNodes => {
                format!("{path} not decided: {} to compare, 4 are needed", count(cell.peers as usize + 1, "node"))
            }
            Why::NoReference => format!("{path} not decided: the peers' median is zero"),
            Why::Contested | Why::TwoClusters => self.contested(metric),
            Why::TailOfFleet => {
                format!("{against}: other nodes come close to it, it may be the slow end of a wide fleet")
            }
            Why::PeersDisagree => {
                format!("{against}: slower than some of its peers only, too few nodes to say which are normal")
            }
            Why::FewSteps { witnesses, needed } => format!(
                "{against}: too few values to exclude a stall ({witnesses} of {needed} metrics needed are that slow)"
            ),
            Why::WholeRunSlow => format!("{against}: so is nearly the whole run"),
            Why::NotEveryVisit => once(&path, self.decided.fleet.metrics[metric].direction, cell, &self.others(metric)),
            Why::SlowForAWhile { from, to, slow, steps } if to - from + 1 == slow => {
                format!("{against}: slow from step {from} to {to} of {steps} only")
            }
            Why::SlowForAWhile { from, to, slow, steps } => {
                format!("{against}: slow in {slow} of {steps} steps only, between steps {from} and {to}")
            }
            Why::OthersInSomeVisits => {
                format!("{against}{again}: not decided, as other nodes were as slow in some visits")
            }
            Why::SlowSteps => self.slow_steps(metric),
        }
    }

    /// Some steps are far slower than any of the peers': told with the typical step of both.
    fn slow_steps(&self, metric: usize) -> String {
        let (of, unit) = (&self.decided.fleet.metrics[metric], self.decided.units[metric]);
        let median = |node: usize| Some(of.samples[node]?.median());
        let others = (0..of.samples.len()).filter(|node| *node != self.node);
        let (own, usual) = (median(self.node).unwrap_or(f64::NAN), middle(others.filter_map(median).collect()));
        format!(
            "{} {}, {} {} (median {}): some of its steps are far slower than any of theirs",
            of.id.path(),
            unit.show(own),
            change(own, usual),
            self.others(metric),
            unit.show(usual),
        )
    }

    /// Two camps: the same sentence for every node, since it cannot be said which of them is normal.
    fn contested(&self, metric: usize) -> String {
        let of = &self.decided.fleet.metrics[metric];
        let mut nodes: Vec<(f64, &str)> = of
            .samples
            .iter()
            .zip(self.decided.nodes)
            .filter_map(|(sample, name)| Some((speed(sample.as_ref()?.median(), of.direction), *name)))
            .collect();
        nodes.sort_by(|a, b| a.0.total_cmp(&b.0));
        // The widest relative step of the sorted speeds parts the camps.
        let gap = |at: &usize| nodes[*at].0 / nodes[at - 1].0;
        let cut = (1..nodes.len()).max_by(|a, b| gap(a).total_cmp(&gap(b))).unwrap_or(0);
        let (slow, fast) = nodes.split_at(cut);
        let names = |camp: &[(f64, &'a str)]| {
            let mut names: Vec<&str> = camp.iter().map(|(_, name)| *name).collect();
            names.sort_unstable();
            format!("{} ({})", count(names.len(), "node"), some(&names))
        };
        let level = |camp: &[(f64, &str)]| speed(middle(camp.iter().map(|(speed, _)| *speed).collect()), of.direction);
        let (path, unit) = (of.id.path(), self.decided.units[metric]);
        format!(
            "{path} contested: {} at {}, {} at {}; too many to tell which are normal",
            names(slow),
            unit.show(level(slow)),
            names(fast),
            unit.show(level(fast))
        )
    }

    /// Several metrics of a component together, where none of them says it alone.
    fn of_average(&self, part: &Part<'_>, average: &Average) -> Option<Finding> {
        if part.metrics.iter().any(|at| self.at(*at).state >= average.state) {
            return None;
        }
        let peers = part.metrics.iter().map(|at| self.at(*at).peers as usize).max().unwrap_or(0);
        let said = self.together(&part.of.to_string(), average, peers);
        let step = if average.state == State::Fail { next::for_slow(part.of.kind()) } else { next::AGAIN };
        let mut metrics = part.metrics.clone();
        metrics.sort_by(|a, b| self.at(*b).loss.total_cmp(&self.at(*a).loss));
        Some(self.finding(part.of, &metrics, average.state, &said).next(step).again(true))
    }

    fn of_kind(&self, kind: ComponentKind, average: &Average) -> Finding {
        let (what, component) = match kind {
            ComponentKind::Core => ("core", Component::Cpu),
            _ => ("gpu", Component::Gpus),
        };
        let said = self.together(what, average, self.decided.nodes.len().saturating_sub(1));
        let step = if average.state == State::Fail { next::for_slow(kind) } else { next::AGAIN };
        let of = &self.decided.fleet.metrics;
        let metrics: Vec<usize> = (0..of.len()).filter(|at| of[*at].component.kind() == kind).collect();
        self.finding(&component, &metrics, average.state, &said).next(step).again(true)
    }

    fn together(&self, what: &str, average: &Average, peers: usize) -> String {
        let alike = if average.alike > 0 { format!(", as are {} other nodes", average.alike) } else { String::new() };
        format!(
            "{} {what} metrics together {:.1} % below the speed of {}{alike}",
            average.metrics,
            average.loss * 100.0,
            count(peers, "peer")
        )
    }

    /// Metrics too noisy to judge of a component that others vouch for: it passes, and not by them.
    fn remark(&self, part: &Part<'_>) -> Option<Finding> {
        let settings = Settings::default();
        let noisy = |at: &usize| self.at(*at).state == State::Pass && self.at(*at).alone(&settings) == State::Unknown;
        let noisy: Vec<usize> = part.metrics.iter().copied().filter(noisy).collect();
        if noisy.is_empty() {
            return None;
        }
        let paths: Vec<String> = noisy.iter().map(|at| self.id(*at).path()).collect();
        // Without numbers, so that the nodes of a noisy fleet say the same.
        let paths = some(&paths.iter().map(String::as_str).collect::<Vec<_>>());
        let said = format!("{paths} too noisy to judge; the other metrics of {} pass", part.of);
        // As many as the sentence names: it is kept for every node.
        let named = &noisy[..noisy.len().min(REMARKED)];
        Some(self.finding(part.of, named, State::Pass, &said))
    }

    /// A component that nothing speaks against and nothing vouches for.
    fn too_noisy(&self, part: &Part<'_>, limiting: Limiting) -> Option<Finding> {
        if part.metrics.iter().any(|at| self.at(*at).state > State::Pass) {
            return None;
        }
        let Limiting { metric, scale, resolution, nodes } = limiting;
        let said = format!(
            "{} not decided: with {} and a spread of up to {} % between peers ({}), {}{}",
            part.of,
            count(nodes, "node"),
            up(scale * 100.0),
            self.id(metric).path(),
            unseen(resolution),
            self.clearly_slower(part),
        );
        Some(self.finding(part.of, &[metric], State::Unknown, &said).next(next::TOO_NOISY).again(true))
    }

    /// What this node has of the metric in which it is furthest behind, where that is far beyond the spread of its peers.
    fn clearly_slower(&self, part: &Part<'_>) -> String {
        let clearly = |at: &usize| is_clearly_slower(self.at(*at).loss, self.at(*at).scale) && !self.at(*at).frozen;
        let metrics = part.metrics.iter().copied().filter(clearly);
        let Some(worst) = metrics.max_by(|a, b| self.at(*a).loss.total_cmp(&self.at(*b).loss)) else {
            return String::new();
        };
        let Some(effect) = self.effect(worst) else { return String::new() };
        let (path, unit) = (self.id(worst).path(), effect.unit);
        format!("; {path} {} here, {} at its peers", unit.show(effect.value), unit.show(effect.usual))
    }

    /// A run that is slower than earlier ones as a whole; said once, where the node's own metric does not say it already.
    fn of_run(&self, run: &SlowerRun) -> Option<Finding> {
        let of = &self.decided.fleet.metrics[run.metric];
        let own = of.samples[self.node]?.median();
        // A node that reaches the criterion is no part of it.
        let reaches = 1.0 - speed(own, of.direction) / speed(run.centre, of.direction) < run.limit / 2.0;
        if reaches || self.at(run.metric).why == Why::WholeRunSlow {
            return None;
        }
        let unit = self.decided.units[run.metric];
        let level = speed(speed(run.centre, of.direction) * (1.0 - run.loss), of.direction);
        let said = format!(
            "the whole run's {} is {} the frozen criterion (median {}, {})",
            of.id.path(),
            change(level, run.centre),
            unit.show(run.centre),
            count(of.frozen.map_or(1, |frozen| frozen.runs), "earlier run"),
        );
        let mut finding = self.finding(&of.component, &[run.metric], State::Warn, &said).next(next::WHOLE_RUN);
        let (metric, direction, usual) = (of.id.clone(), of.direction, run.centre);
        finding.effect = Some(Effect { metric, unit, direction, value: own, usual, scale: run.scale });
        Some(finding)
    }
}

/// By what of its steps a node was compared, where it is not the median one.
const fn by(view: Look) -> &'static str {
    match view {
        Look::MedianStep => "",
        Look::MeanStep => ", by the mean step",
        Look::SlowestSteps => ", by the slowest hundredth of its steps",
    }
}

/// Whether who lost this share of speed takes longer than its peers by far more than their spread; a NaN is not.
fn is_clearly_slower(loss: f64, scale: f64) -> bool {
    1.0 / (1.0 - loss) - 1.0 > (SPREADS * scale).max(CLEARLY)
}

/// What would have stayed unseen where a loss of `resolution` is the least that is not.
fn unseen(resolution: f64) -> String {
    if resolution < 0.99 {
        format!("a node less than {}x slower might not be detected", up(1.0 / (1.0 - resolution)))
    } else {
        "a slow node might not be detected".to_owned()
    }
}

/// The next of few round numbers, so that nodes that say nearly the same say it in the same words.
fn up(value: f64) -> f64 {
    let decade = 10f64.powf(value.max(1.0).log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 5.0, 10.0];
    steps.into_iter().map(|step| step * decade).find(|step| *step >= value).unwrap_or(10.0 * decade)
}

fn speed(value: f64, direction: muster_wire::Direction) -> f64 {
    match direction {
        muster_wire::Direction::HigherIsBetter => value,
        muster_wire::Direction::LowerIsBetter => 1.0 / value,
    }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    if values.is_empty() { f64::NAN } else { crate::sample::median_of_sorted(&values) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_that_doubled_is_twice_and_not_half_of_its_peers() {
        let cell = Cell {
            state: State::Warn,
            why: Why::NotEveryVisit,
            view: Look::MedianStep,
            peers: 5,
            alike: 0,
            loss: 0.5,
            centre: 100.0,
            scale: 0.01,
            limit: 0.1,
            warn_limit: 0.05,
            resolution: 0.1,
            frozen: false,
        };
        let said = |direction| once("x/y", direction, &cell, "5 peers");
        assert_eq!(said(Direction::LowerIsBetter), "x/y was 100.0 % above 5 peers in one visit only");
        assert_eq!(said(Direction::HigherIsBetter), "x/y was 50 % below 5 peers in one visit only");
        assert_eq!(also(5, 5, &Component::Memory), ", slower in 5 of 5 memory metrics");
        assert_eq!(also(1, 1, &Component::Memory), "");
    }

    #[test]
    fn far_behind_is_a_quarter_and_three_spreads() {
        assert!(is_clearly_slower(1.0 - 258.0 / 690.0, 0.1));
        assert!(!is_clearly_slower(0.15, 0.01) && !is_clearly_slower(0.4, 0.5));
        assert!(!is_clearly_slower(-1.0, 0.1) && !is_clearly_slower(f64::NAN, 0.1));
    }
}

//! Results of runs older than the ones on the screen: for each node and metric the verdict and the median, nothing else.
//!
//! A fleet has millions of verdicts, so neither samples nor sentences of an earlier run are kept: 32 bytes per verdict.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use muster_analysis::history::{Noise, Showed};
use muster_analysis::{Criterion, State};
use muster_run::Run;
use muster_tui::snapshot::EarlierRun;
use muster_wire::{MetricId, Unit};

use crate::judge::{Assessment, ByMetric};

/// The newest earlier result of each node and metric.
#[derive(Debug, Default)]
pub struct Earlier {
    metrics: HashMap<MetricId, u32>,
    /// What a verdict was judged by: unit and scatter.
    criteria: Vec<(Unit, Option<Noise>)>,
    runs: Vec<Arc<EarlierRun>>,
    /// By node, in the order of the metrics' numbers.
    nodes: HashMap<String, Vec<Kept>>,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    value: Option<f64>,
    metric: u32,
    criterion: u32,
    run: u16,
    state: State,
}

/// An earlier result of a node and metric.
#[derive(Clone, Copy, Debug)]
pub struct Then<'a> {
    /// The run it is from.
    pub from: &'a Arc<EarlierRun>,
    /// State and value.
    pub showed: Showed,
    /// Unit of its value.
    pub unit: Unit,
}

impl<'a> Then<'a> {
    /// A result of the run `from`, which was judged by `criterion`.
    #[must_use]
    pub fn new(from: &'a Arc<EarlierRun>, (state, value): (State, Option<f64>), criterion: &Criterion) -> Self {
        Self { from, showed: Showed { state, value, noise: Noise::of(criterion) }, unit: criterion.unit }
    }
}

impl Earlier {
    /// Keeps the results of `run` for the nodes that `wanted` lists by benchmark. Runs must be added newest first.
    pub fn add(&mut self, (run, at_ms): (&Run, u64), said: &Assessment, wanted: &HashMap<&str, BTreeSet<&str>>) {
        let Ok(place) = u16::try_from(self.runs.len()) else { return };
        self.runs.push(Arc::new(EarlierRun { id: run.id.clone(), at_ms }));
        let (judged, first) = (ByMetric::of(said), self.criteria.len());
        self.criteria.extend(said.judged.iter().map(|one| (one.criterion.unit, Noise::of(&one.criterion))));
        for of in &said.nodes {
            let told = of.verdicts.iter().filter(|v| v.state != State::NotRun);
            let asked = |benchmark: &str| wanted.get(benchmark).is_some_and(|nodes| nodes.contains(of.node.as_str()));
            for verdict in told.filter(|v| asked(&v.metric.benchmark)) {
                let Some(by) = judged.place(&verdict.metric, &of.node) else { continue };
                let (value, state, metric) = (verdict.value, verdict.state, self.number(&verdict.metric));
                let kept = Kept { value, metric, criterion: (first + by) as u32, run: place, state };
                match self.nodes.get_mut(&of.node) {
                    Some(own) => own.push(kept),
                    None => _ = self.nodes.insert(of.node.clone(), vec![kept]),
                }
            }
        }
        for own in self.nodes.values_mut() {
            // Stable: of the same metric the newest run, which came first, stays first and alone.
            own.sort_by_key(|kept| kept.metric);
            own.dedup_by_key(|kept| kept.metric);
        }
    }

    /// Whether it holds no result.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn number(&mut self, metric: &MetricId) -> u32 {
        let next = self.metrics.len() as u32;
        *self.metrics.entry(metric.clone()).or_insert(next)
    }

    /// The newest result of `metric` on `node` from before `before_ms`.
    #[must_use]
    pub fn of(&self, node: &str, metric: &MetricId, before_ms: u64) -> Option<Then<'_>> {
        let (own, number) = (self.nodes.get(node)?, self.metrics.get(metric)?);
        let kept = own[own.binary_search_by_key(number, |kept| kept.metric).ok()?];
        let from = &self.runs[usize::from(kept.run)];
        let (unit, noise) = self.criteria[kept.criterion as usize];
        let then = Then { from, showed: Showed { state: kept.state, value: kept.value, noise }, unit };
        Some(then).filter(|then| then.from.at_ms < before_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Basis, Chart, Judged};
    use muster_analysis::{Observation, Params, learn};
    use muster_playbook::report::NodeFindings;
    use muster_run::RunState;
    use muster_tui::snapshot::Before;
    use muster_wire::{Direction, Profile};

    fn run(id: &str) -> Run {
        Run {
            id: id.to_owned(),
            playbook: "cbd".to_owned(),
            profile: Profile::Smoke,
            started_ms: 0,
            ended_ms: None,
            nodes: Vec::new(),
            plan: Vec::new(),
            state: RunState::Finished,
        }
    }

    fn id(name: &str) -> MetricId {
        MetricId::new("cpu-gemm", name, "own")
    }

    /// Eight nodes that give `level` in each of `metrics`.
    fn said(metrics: &[&str], level: f64) -> Assessment {
        let observed: Vec<(Arc<str>, Observation)> =
            (1..=8).map(|n| (format!("n{n}").into(), Observation::from_values(&[level; 32]))).collect();
        let basis = Basis {
            group: String::new(),
            frozen: false,
            nodes: Arc::new(observed.iter().map(|(node, _)| node.clone()).collect()),
        };
        let of =
            |(node, _): &(Arc<str>, Observation)| NodeFindings { node: node.to_string(), ..NodeFindings::default() };
        let mut nodes: Vec<NodeFindings> = observed.iter().map(of).collect();
        let judged = metrics.iter().map(|name| {
            let params = Params::default();
            let learned = learn(&id(name), Unit::FlopPerSec, Direction::HigherIsBetter, &observed, &params);
            nodes.iter_mut().zip(learned.verdicts).for_each(|(node, verdict)| node.verdicts.push(verdict));
            Judged { criterion: learned.criterion, basis: basis.clone(), chart: Chart::default() }
        });
        let judged = judged.collect();
        Assessment { judged, nodes, ..Assessment::default() }
    }

    #[test]
    fn of_each_node_and_metric_the_newest_of_the_wanted_runs_stays() {
        let mut earlier = Earlier::default();
        let of = |nodes: &[&'static str]| HashMap::from([("cpu-gemm", nodes.iter().copied().collect())]);
        earlier.add((&run("r3"), 300), &said(&["a"], 3.0), &of(&["n1", "n2"]));
        earlier.add((&run("r2"), 200), &said(&["b", "a"], 2.0), &of(&["n1", "n3"]));
        let told = |node: &str, name: &str| {
            let then = earlier.of(node, &id(name), 1_000)?;
            Some((then.from.id.as_str(), then.showed.value.unwrap(), then.showed.noise.is_some()))
        };
        assert_eq!(told("n1", "a"), Some(("r3", 3.0, true)));
        assert_eq!(told("n1", "b"), Some(("r2", 2.0, true)));
        assert_eq!(told("n3", "a"), Some(("r2", 2.0, true)));
        assert_eq!((told("n2", "b"), told("n8", "a"), told("n1", "c")), (None, None, None));
        assert!(earlier.of("n1", &id("a"), 300).is_none(), "a run is not before itself");
    }

    #[test]
    fn a_verdict_of_an_earlier_run_takes_as_little_room_as_it_says() {
        assert!(size_of::<Kept>() <= 32, "{}", size_of::<Kept>());
        // And as little more in the row of the verdict.
        assert!(size_of::<Option<Before>>() <= 32, "{}", size_of::<Option<Before>>());
    }
}

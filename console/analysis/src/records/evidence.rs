//! From the records of a run to what every node has for every metric, visit by visit.

use std::collections::{BTreeMap, HashMap};

use crate::{Observation, Sample};
use muster_run::{Record, Run};
use muster_wire::{
    BUSY, Component, Datum, Described, FOREIGN_CPU, Fact, MetricId, Outcome, Series, clean, describe_in, fact_of,
};

/// What is said of a metric that a node has not come to.
pub const NOT_REACHED: &str = "it did not get that far";

/// The last record of each piece of work of each node.
pub type Latest<'a> = BTreeMap<(&'a str, &'a str), &'a Record>;

/// What the nodes of a run did, oldest first.
pub struct Evidence<'a> {
    /// The last record of each piece of work.
    pub latest: Latest<'a>,
    visits: BTreeMap<(&'a str, &'a str), Vec<Option<&'a Record>>>,
    /// Foreign load during each benchmark that is usual in this run.
    usual: HashMap<&'a str, f64>,
}

/// One metric, on the nodes that have it.
pub struct Measured<'a> {
    /// Its identity.
    pub id: &'a MetricId,
    /// What it is of, and how it is judged.
    pub described: Described,
    /// Its series: place of the node in the run, visit, values; in this order.
    pub series: Vec<(usize, usize, &'a Series)>,
}

impl<'a> Measured<'a> {
    /// Its series of the node at `place`.
    pub fn of_node(&self, place: usize) -> &[(usize, usize, &'a Series)] {
        let from = self.series.partition_point(|(of, ..)| *of < place);
        let own = self.series[from..].partition_point(|(of, ..)| *of == place);
        &self.series[from..from + own]
    }
}

/// What one node has for one metric.
pub struct OfNode {
    /// What the criterion is learned from: the last visit.
    pub observed: Observation,
    /// Every visit; `None` for one that cannot be judged.
    pub visits: Vec<Option<Sample>>,
    /// Whether others were at work in a visit that is judged all the same, since all nodes of the run had them.
    pub busy: bool,
}

/// One visit of a node for one benchmark, and what holds for all that was measured in it.
pub struct Turn<'a> {
    record: &'a Record,
    /// Why nothing of it is judged.
    load: Option<String>,
    /// Others were at work.
    busy: bool,
    /// Who else computed on which GPU.
    shared: Vec<(u32, String)>,
}

/// Visits that are told apart.
const VISITS: usize = 16;
/// Nodes from which on a load that all of them have is the same for all, and no reason not to compare them.
const SHARED: usize = 4;

impl<'a> Evidence<'a> {
    /// Puts the records of a run in order.
    pub fn new(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut visits: BTreeMap<(&str, &str), Vec<Option<&Record>>> = BTreeMap::new();
        for record in records {
            let own = visits.entry((&record.node, record.benchmark())).or_default();
            let visit = record.visit().min(VISITS);
            own.resize(own.len().max(visit), None);
            own[visit - 1] = Some(record);
        }
        let latest = visits.iter().filter_map(|(key, own)| Some((*key, *own.iter().flatten().next_back()?))).collect();
        let mut loads: HashMap<&str, Vec<f64>> = HashMap::new();
        for ((_, work), own) in &visits {
            loads.entry(work).or_default().extend(own.iter().flatten().filter_map(|record| foreign_share(record)));
        }
        let usual = loads.into_iter().filter(|(_, shares)| shares.len() >= SHARED);
        let usual = usual.map(|(work, shares)| (work, median(shares))).collect();
        Self { latest, visits, usual }
    }

    /// Every visit of a node for one piece of work, oldest first; `None` where it took no part in one.
    pub fn visits<'s>(&'s self, node: &'s str, work: &'s str) -> &'s [Option<&'a Record>] {
        self.visits.get(&(node, work)).map_or(&[], Vec::as_slice)
    }

    /// Everything a node did, work by work, its last records.
    pub fn of_node<'s>(&'s self, node: &'s str) -> impl Iterator<Item = &'a Record> + use<'a, 's> {
        self.latest.range((node, "")..).take_while(move |((of, _), _)| *of == node).map(|(_, record)| *record)
    }

    /// Everything a node did, work by work, every visit of it, oldest first.
    pub fn every<'s>(&'s self, node: &'s str) -> impl Iterator<Item = &'a Record> + use<'a, 's> {
        let own = self.visits.range((node, "")..).take_while(move |((of, _), _)| *of == node);
        own.flat_map(|(_, visits)| visits.iter().flatten().copied())
    }

    /// Every metric that a node of the run measured. One pass over all records: a file of SuperBench has millions of series.
    pub fn measured(&self, run: &Run) -> Vec<Measured<'a>> {
        let places: HashMap<&str, usize> = run.nodes.iter().enumerate().map(|(at, node)| (node.as_str(), at)).collect();
        let mut found: HashMap<&MetricId, Measured<'a>> = HashMap::new();
        for ((node, work), own) in &self.visits {
            // What a node measured that is not in the run is nobody's.
            let Some(at) = places.get(node) else { continue };
            for (visit, record) in own.iter().enumerate().filter_map(|(visit, record)| Some((visit, (*record)?))) {
                for series in record.series.iter().filter(|series| series.metric.benchmark == *work) {
                    let described = || describe_in(&record.facts, &series.metric);
                    let new = || Measured { id: &series.metric, described: described(), series: Vec::new() };
                    found.entry(&series.metric).or_insert_with(new).series.push((*at, visit, series));
                }
            }
        }
        let mut all: Vec<Measured<'a>> = found.into_values().collect();
        for of in &mut all {
            of.series.sort_by_key(|(at, visit, _)| (*at, *visit));
            of.series.shrink_to_fit();
        }
        all.sort_unstable_by_key(|of| of.id);
        all
    }

    /// Every visit of a node for one benchmark, oldest first; `None` where it took no part in one.
    pub fn turns(&self, node: &str, benchmark: &str) -> Vec<Option<Turn<'a>>> {
        let turn = |record: &&'a Record| Turn {
            record,
            load: self.load(record),
            busy: company(record).is_some(),
            shared: record.facts.iter().filter_map(shared_gpu).collect(),
        };
        self.visits(node, benchmark).iter().map(|record| record.as_ref().map(turn)).collect()
    }

    /// Foreign load that makes a record worthless: far more than the other nodes of the run had, since a busy node is not a
    /// slow one, and no peer either. A load that all nodes share is in the values of all.
    pub fn load(&self, record: &Record) -> Option<String> {
        let share = foreign_share(record)?;
        let usual = self.usual.get(record.benchmark()).copied().unwrap_or(0.0);
        (share > BUSY && share > usual + BUSY).then(|| foreign_load(record, share))
    }
}

/// Foreign load during a measurement, where it was above what a measurement bears.
#[must_use]
pub fn company(record: &Record) -> Option<String> {
    foreign_share(record).filter(|share| *share > BUSY).map(|share| foreign_load(record, share))
}

fn foreign_load(record: &Record, share: f64) -> String {
    let name = match fact(record, "foreign.0.comm") {
        Some(Datum::Text(comm)) => format!(", most of it '{}'", clean(comm, 32)),
        _ => String::new(),
    };
    format!("foreign CPU load {:.0} %{name}", share * 100.0)
}

/// Share of the node's CPUs that others used meanwhile.
fn foreign_share(record: &Record) -> Option<f64> {
    match fact(record, FOREIGN_CPU) {
        Some(Datum::Number(share)) if share.is_finite() => Some(*share),
        _ => None,
    }
}

fn fact<'a>(record: &'a Record, key: &str) -> Option<&'a Datum> {
    record.facts.iter().find(|fact| fact.key == key).and_then(|fact| fact.reading.value())
}

/// A GPU that others computed on meanwhile, and who.
fn shared_gpu(fact: &Fact) -> Option<(u32, String)> {
    let (Component::Gpu(gpu), "company") = fact_of(&fact.key)? else { return None };
    match fact.reading.value()? {
        Datum::Text(who) => Some((gpu, format!("other processes computed on this GPU ({})", clean(who, 96)))),
        _ => None,
    }
}

/// What a node has for a metric of `component`, from all of its visits and its series of this metric (place of the node, visit,
/// values); nothing where another engine measured it, it cannot apply, or the benchmark is done and gave no value
/// ([`is_done`]).
pub fn of_metric(
    turns: &[Option<Turn<'_>>],
    component: &Component,
    series: &[(usize, usize, &Series)],
) -> Option<OfNode> {
    let (mut last, mut busy) = (None, false);
    let mut visits = Vec::with_capacity(turns.len());
    let mut rest = series;
    for (visit, turn) in turns.iter().enumerate() {
        let own;
        (own, rest) = rest.split_at(rest.partition_point(|(_, of, _)| *of <= visit));
        let Some(turn) = turn else {
            visits.push(None);
            continue;
        };
        let observed = turn.observed(component, own);
        visits.push(match &observed {
            Some(Observation::Sample(sample)) => {
                busy |= turn.busy;
                Some(sample.clone())
            }
            _ => None,
        });
        // A later visit without a value does not undo an earlier one with it.
        last = observed.or(last);
    }
    if turns.is_empty() {
        last = Some(Observation::Missing(NOT_REACHED.into()));
    }
    Some(OfNode { observed: last?, visits, busy })
}

/// Whether a node of which [`of_metric`] has nothing did the benchmark, which applies to it.
#[must_use]
pub fn is_done(turns: &[Option<Turn<'_>>]) -> bool {
    turns.iter().flatten().any(|turn| matches!(turn.record.outcome, Outcome::Done))
}

/// Whether another engine measured `metric` there.
#[must_use]
pub fn by_another_engine(turns: &[Option<Turn<'_>>], metric: &MetricId) -> bool {
    turns.iter().flatten().any(|turn| turn.by_another_engine(metric))
}

impl Turn<'_> {
    fn by_another_engine(&self, metric: &MetricId) -> bool {
        let same = |of: &MetricId| (&of.benchmark, &of.name) == (&metric.benchmark, &metric.name);
        self.record.series.iter().any(|series| same(&series.metric))
    }

    fn observed(&self, component: &Component, series: &[(usize, usize, &Series)]) -> Option<Observation> {
        let joined: Vec<f64>;
        let values = match series {
            [(.., one)] => one.values.as_slice(),
            all => {
                joined = all.iter().flat_map(|(.., series)| &series.values).copied().collect();
                joined.as_slice()
            }
        };
        observation(self.record, values, || self.load.as_deref().or_else(|| self.on_gpu(component)))
    }

    /// Who else computed on the GPU that a metric is of.
    fn on_gpu(&self, component: &Component) -> Option<&str> {
        let Component::Gpu(gpu) = component else { return None };
        self.shared.iter().find(|(shared, _)| shared == gpu).map(|(_, who)| who.as_str())
    }
}

/// What one record says of a metric.
fn observation<'l>(record: &Record, values: &[f64], load: impl FnOnce() -> Option<&'l str>) -> Option<Observation> {
    if !values.is_empty() {
        let observed = Observation::from_steps(values);
        return Some(match load() {
            Some(why) => observed.disturbed(why),
            None => observed,
        });
    }
    match &record.outcome {
        Outcome::Done | Outcome::NotApplicable(_) => None,
        Outcome::Failed(why) | Outcome::Denied(why) | Outcome::NotRun(why) => Some(Observation::Missing(why.clone())),
    }
}

/// What every node of `run` has for `metric`, in the run's order.
#[must_use]
pub fn observations(run: &Run, records: &[Record], metric: &MetricId) -> Vec<(String, Observation)> {
    let evidence = Evidence::new(records.iter().filter(|record| record.benchmark() == metric.benchmark));
    let all = evidence.measured(run);
    let measured = all.iter().find(|of| of.id == metric);
    let component = measured.map_or(Component::Node, |of| of.described.component.clone());
    let own = |at: usize| measured.map_or(&[][..], |of| of.of_node(at));
    let of_node = |(at, node): (usize, &String)| {
        let turns = evidence.turns(node, &metric.benchmark);
        Some((node.clone(), of_metric(&turns, &component, own(at))?.observed))
    };
    run.nodes.iter().enumerate().filter_map(of_node).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use muster_wire::Reading;

    use super::*;

    fn record(node: &str, at_ms: u64, foreign: f64, facts: &[(&str, &str)]) -> Record {
        let text = |(key, text): &(&str, &str)| Fact {
            key: (*key).to_owned(),
            reading: Reading::Value(Datum::Text((*text).to_owned())),
            unit: None,
        };
        let share = Fact { key: FOREIGN_CPU.into(), reading: Reading::Value(Datum::Number(foreign)), unit: None };
        Record {
            run: "r".into(),
            node: node.into(),
            work: "gpu-stream".into(),
            outcome: Outcome::Done,
            at_ms,
            elapsed_ns: 1,
            series: Vec::new(),
            facts: facts.iter().map(text).chain([share]).collect(),
        }
    }

    #[test]
    fn a_load_that_all_nodes_share_is_no_reason_not_to_compare_them() {
        let records: Vec<Record> = (0..6).map(|at| record(&format!("n{at}"), 1, 0.5, &[])).collect();
        let evidence = Evidence::new(&records);
        assert!(records.iter().all(|record| evidence.load(record).is_none()));
        let mut one = vec![record("n9", 1, 0.9, &[("foreign.0.comm", "train\u{1b}[2J")])];
        one.extend(records);
        let evidence = Evidence::new(&one);
        assert_eq!(evidence.load(&one[0]).unwrap(), "foreign CPU load 90 %, most of it 'train'");
        assert!(evidence.load(&one[1]).is_none());
    }

    #[test]
    fn a_gpu_that_others_compute_on_is_not_judged_and_the_others_of_its_node_are() {
        let shared = record("n1", 1, 0.0, &[("gpu.3.company", "77 train\u{1b}[2J")]);
        let records = [shared];
        let turns = Evidence::new(&records).turns("n1", "gpu-stream");
        let who = |gpu: u32| turns[0].as_ref().unwrap().on_gpu(&Component::Gpu(gpu));
        assert_eq!(who(3).unwrap(), "other processes computed on this GPU (77 train)");
        assert_eq!(who(4), None);
    }

    #[test]
    fn a_benchmark_that_is_done_owes_the_values_that_its_engine_gives() {
        let series = |name: &str| Series {
            metric: MetricId::new("gpu-stream", name, "own"),
            unit: muster_wire::Unit::BytesPerSec,
            direction: muster_wire::Direction::HigherIsBetter,
            values: vec![1.0],
            warmup: 0,
            started_ns: 0,
        };
        let done = Record { series: vec![series("copy:0")], ..record("n1", 1, 0.0, &[]) };
        let absent = Outcome::NotApplicable("no GPU".to_owned());
        let records = [done, Record { outcome: absent, ..record("n2", 1, 0.0, &[]) }, record("n3", 1, 0.0, &[])];
        let evidence = Evidence::new(&records);
        let owes = |node: &str, name: &str, engine: &str| {
            let metric = MetricId::new("gpu-stream", name, engine);
            let turns = evidence.turns(node, "gpu-stream");
            of_metric(&turns, &Component::Gpu(1), &[]).is_none()
                && is_done(&turns)
                && !by_another_engine(&turns, &metric)
        };
        assert!(owes("n1", "copy:1", "own") && owes("n3", "copy:1", "own"));
        assert!(!owes("n1", "copy:0", "nvbandwidth"), "another engine measured it");
        assert!(!owes("n2", "copy:1", "own") && !owes("n4", "copy:1", "own"), "it cannot apply, or was never begun");
    }

    #[test]
    fn a_later_visit_without_a_value_does_not_undo_the_first() {
        let records = [record("n1", 1, 0.0, &[]), Record { work: "gpu-stream#2".into(), ..record("n1", 2, 0.0, &[]) }];
        let turns = Evidence::new(&records).turns("n1", "gpu-stream");
        let first = Series {
            metric: MetricId::new("gpu-stream", "copy:0", "own"),
            unit: muster_wire::Unit::BytesPerSec,
            direction: muster_wire::Direction::HigherIsBetter,
            values: vec![1.0, 2.0, 3.0],
            warmup: 0,
            started_ns: 0,
        };
        let has = of_metric(&turns, &Component::Gpu(0), &[(0, 0, &first)]).unwrap();
        assert_eq!(has.observed.sample().map(Sample::median), Some(2.0));
        assert_eq!(has.visits.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn visits_are_in_the_order_they_were_made() {
        let third = Record { work: "gpu-stream#3".into(), ..record("n1", 9, 0.0, &[]) };
        let records = [third, record("n1", 3, 0.6, &[])];
        let evidence = Evidence::new(&records);
        let visits = evidence.visits("n1", "gpu-stream");
        let seen: Vec<Option<u64>> = visits.iter().map(|record| record.map(|record| record.at_ms)).collect();
        assert_eq!((seen, evidence.latest[&("n1", "gpu-stream")].at_ms), (vec![Some(3), None, Some(9)], 9));
        assert!(evidence.load(&records[1]).is_some() && evidence.visits("n2", "gpu-stream").is_empty());
    }
}

//! From the records of a run to what every node has for every metric, visit by visit.

use std::collections::{BTreeMap, HashMap};

use muster_analysis::{Observation, Sample};
use muster_store::{Record, Run};
use muster_wire::{BUSY, Datum, Described, FOREIGN_CPU, MetricId, Outcome, Series, clean, describe_in};

/// The last record of each piece of work of each node.
pub(super) type Latest<'a> = BTreeMap<(&'a str, &'a str), &'a Record>;

/// What the nodes of a run did, oldest first.
pub(super) struct Evidence<'a> {
    /// The last record of each piece of work.
    pub latest: Latest<'a>,
    visits: BTreeMap<(&'a str, &'a str), Vec<Option<&'a Record>>>,
    /// Foreign load during each benchmark that is usual in this run.
    usual: HashMap<&'a str, f64>,
}

/// One metric, on the nodes that have it.
pub(super) struct Measured<'a> {
    pub id: &'a MetricId,
    pub described: Described,
    /// Its series: place of the node in the run, visit, values; in this order.
    pub series: Vec<(usize, usize, &'a Series)>,
}

/// What one node has for one metric.
pub(super) struct OfNode {
    /// What the criterion is learned from: the last visit.
    pub observed: Observation,
    /// Every visit; `None` for one that cannot be judged.
    pub visits: Vec<Option<Sample>>,
    /// Whether others were at work in a visit that is judged all the same, since all nodes of the run had them.
    pub busy: bool,
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
        all.iter_mut().for_each(|of| of.series.sort_by_key(|(at, visit, _)| (*at, *visit)));
        all.sort_unstable_by_key(|of| of.id);
        all
    }

    /// What `node` has for `metric`, from its series there; nothing where another engine measured it or it cannot apply.
    pub fn of_metric(&self, node: &str, metric: &MetricId, series: &[(usize, usize, &Series)]) -> Option<OfNode> {
        let records = self.visits(node, &metric.benchmark);
        let values = |visit: usize| -> Vec<f64> {
            let own = series.iter().filter(|(_, of, _)| *of == visit);
            own.flat_map(|(_, _, series)| &series.values).copied().collect()
        };
        let (mut last, mut busy) = (None, false);
        let mut visits = Vec::with_capacity(records.len());
        for (visit, record) in records.iter().enumerate() {
            let Some(record) = record else {
                visits.push(None);
                continue;
            };
            let load = || self.load(record).or_else(|| gpu_load(record, metric));
            let observed = observation(record, &values(visit), load);
            visits.push(match &observed {
                Some(Observation::Sample(sample)) => {
                    busy |= company(record).is_some();
                    Some(sample.clone())
                }
                _ => None,
            });
            last = observed;
        }
        if records.is_empty() {
            last = Some(Observation::Missing("it did not get that far".into()));
        }
        Some(OfNode { observed: last?, visits, busy })
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

/// Who else computed on the GPU that a metric is of.
fn gpu_load(record: &Record, metric: &MetricId) -> Option<String> {
    let muster_wire::Component::Gpu(gpu) = describe_in(&record.facts, metric).component else { return None };
    match fact(record, &format!("gpu.{gpu}.company"))? {
        Datum::Text(who) => Some(format!("other processes computed on this GPU ({})", clean(who, 96))),
        _ => None,
    }
}

/// What one record says of a metric.
fn observation(record: &Record, values: &[f64], load: impl FnOnce() -> Option<String>) -> Option<Observation> {
    if !values.is_empty() {
        let observed = Observation::from_steps(values);
        return Some(match load() {
            Some(why) => observed.disturbed(&why),
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
    let series = all.iter().find(|of| of.id == metric).map_or(&[][..], |of| &of.series);
    let own = |at: usize| {
        let (start, end) = (series.partition_point(|(of, ..)| *of < at), series.partition_point(|(of, ..)| *of <= at));
        &series[start..end]
    };
    let of_node =
        |(at, node): (usize, &String)| Some((node.clone(), evidence.of_metric(node, metric, own(at))?.observed));
    run.nodes.iter().enumerate().filter_map(of_node).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use muster_wire::{Fact, Reading};

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
        let who = |name: &str| gpu_load(&shared, &MetricId::new("gpu-stream", name, "own"));
        assert_eq!(who("copy:3").unwrap(), "other processes computed on this GPU (77 train)");
        assert_eq!(who("copy:4"), None);
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

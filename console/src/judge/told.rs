//! One run as it was judged, with the records that it rests on.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use muster_analysis::{NodeVerdict, State};
use muster_playbook::{PAIRS, report};
use muster_run::{Record, Run, is_work};
use muster_wire::{MetricId, Outcome, benchmark};

use super::assess::assess_with_pairs;
use super::pairs::is_pair;
use super::visits::Visits;
use super::{Assessment, Judging, Pairs};
use muster_analysis::records::leaves;

/// A node and a benchmark or collector.
pub type Asked = (String, String);

/// What one run says.
#[derive(Debug)]
pub struct Told {
    /// The run.
    pub run: Run,
    /// What was found.
    pub assessment: Assessment,
    /// Number of records that it was judged by.
    pub results: usize,
    /// Its pairs of nodes, if it measured any.
    pub pairs: Option<Arc<Pairs>>,
    /// Nodes that have left the run: they were lost, or left out of later steps.
    pub gone: HashSet<String>,
    /// How often each node was measured.
    pub visits: Visits,
    records: HashMap<String, Vec<Arc<Record>>>,
    works: HashMap<String, BTreeSet<String>>,
    places: HashMap<String, usize>,
    at_ms: u64,
}

impl Told {
    /// Judges a run by its records.
    #[must_use]
    pub fn judge(run: Run, all: &[Arc<Record>], judging: &Judging) -> Self {
        let (assessment, found) = assess_with_pairs(&run, all.iter().map(Arc::as_ref), judging);
        let pairs = found.map(|found| Arc::new(Pairs::of_run(&run, all, found, &judging.context.params)));
        Self::new(run, all, assessment, pairs)
    }

    /// A run of which the assessment is known, by its records, which need no series; `None` of pairs, whose picture needs them.
    #[must_use]
    pub fn known(run: Run, all: &[Arc<Record>], assessment: Assessment) -> Option<Self> {
        (!all.iter().any(|record| is_pair(record))).then(|| Self::new(run, all, assessment, None))
    }

    fn new(run: Run, all: &[Arc<Record>], assessment: Assessment, pairs: Option<Arc<Pairs>>) -> Self {
        let places = assessment.nodes.iter().enumerate().map(|(place, found)| (found.node.clone(), place)).collect();
        let (mut records, mut works) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, BTreeSet<_>>::new());
        for record in all.iter().filter(|record| is_work(&record.work)) {
            records.entry(record.node.clone()).or_default().push(record.clone());
            if is_result(record) {
                works.entry(record.node.clone()).or_default().insert(record.benchmark().to_owned());
            }
        }
        let gone = gone(all);
        let visits = Visits::new(all.iter().map(Arc::as_ref));
        let at_ms = run.ended_ms.or(all.iter().map(|record| record.at_ms).max()).unwrap_or(run.started_ms);
        Self { run, assessment, results: all.len(), pairs, gone, visits, records, works, places, at_ms }
    }

    /// When it ended, or its last result came; milliseconds since 1970 UTC.
    #[must_use]
    pub fn at_ms(&self) -> u64 {
        self.at_ms
    }

    /// When `benchmark` last gave a result on `node`; that of the run where its records are let go, or named otherwise.
    #[must_use]
    pub fn measured_ms(&self, node: &str, benchmark: &str) -> u64 {
        let own = self.records(node).iter().filter(|record| record.benchmark() == benchmark && is_result(record));
        own.map(|record| record.at_ms).max().unwrap_or(self.at_ms)
    }

    /// What it says of `node`; `None` where the node took no part.
    #[must_use]
    pub fn of<'t>(&'t self, node: &str) -> Option<report::Told<'t>> {
        static NONE: BTreeSet<String> = BTreeSet::new();
        let findings = &self.assessment.nodes[*self.places.get(node)?];
        Some(report::Told { at_ms: self.at_ms, findings, works: self.works.get(node).unwrap_or(&NONE) })
    }

    /// Results of `node`, oldest first.
    #[must_use]
    pub fn records(&self, node: &str) -> &[Arc<Record>] {
        self.records.get(node).map_or(&[], Vec::as_slice)
    }

    /// Results of all nodes, in no order.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.records.values().flatten()
    }

    /// What it decided on of work that always measures the same; what an import holds is told apart by its metrics alone.
    pub fn settled(&self) -> impl Iterator<Item = Asked> + '_ {
        self.works.keys().filter_map(|node| Some((node, self.of(node)?))).flat_map(|(node, told)| {
            let known = |work: &&str| benchmark(work).is_some() || work.starts_with("collect/") || *work == PAIRS;
            report::settled(&told)
                .into_iter()
                .filter(known)
                .map(|work| (node.clone(), work.to_owned()))
                .collect::<Vec<_>>()
        })
    }

    /// Whether something of what it says still stands beside what the `newer` runs say of the same nodes.
    #[must_use]
    pub fn stands_beside(&self, newer: &[Arc<Self>]) -> bool {
        let over = |newer: State, own: State| match own {
            State::Warn | State::Fail => !matches!(newer, State::Unknown | State::NotRun),
            _ => newer != State::NotRun,
        };
        self.works.iter().any(|(node, works)| {
            let Some(own) = self.of(node) else { return false };
            let told: Vec<report::Told<'_>> = newer.iter().filter_map(|newer| newer.of(node)).collect();
            let verdicts = told.iter().flat_map(|told| &told.findings.verdicts);
            let states: HashMap<&MetricId, State> = verdicts.map(|v| (&v.metric, v.state)).rev().collect();
            let replaced = |v: &NodeVerdict| states.get(&v.metric).is_some_and(|newer| over(*newer, v.state));
            let alone = |work: &String| !told.iter().any(|told| told.works.contains(work));
            works.iter().any(alone) || own.findings.verdicts.iter().any(|verdict| !replaced(verdict))
        })
    }

    /// Drops the series of all records that nothing else holds. They take more memory than the verdicts, and the database has
    /// them.
    pub fn drop_series(&mut self) {
        for record in self.records.values_mut().flatten().filter_map(Arc::get_mut) {
            record.series = Vec::new();
        }
    }

    /// Lets go of samples that newer runs stand for, so that many runs cost little more memory than one.
    pub fn forget(&mut self, newer: &HashSet<Asked>) {
        for (node, records) in &mut self.records {
            records.retain(|record| !newer.contains(&(node.clone(), record.benchmark().to_owned())));
        }
    }
}

/// What is known of `node`, and which runs its places mean.
#[must_use]
pub fn known_of<'t>(runs: &'t [Arc<Told>], node: &str) -> Option<(Vec<usize>, report::Known<'t>)> {
    let own: Vec<(usize, report::Told<'_>)> =
        runs.iter().enumerate().filter_map(|(at, told)| Some((at, told.of(node)?))).collect();
    let told: Vec<report::Told<'_>> = own.iter().map(|(_, told)| *told).collect();
    (!own.is_empty()).then(|| (own.iter().map(|(at, _)| *at).collect(), report::known(node, &told)))
}

/// Nodes with a record that says that they take no further part, and no result after it: a run that is resumed tries them again.
fn gone(all: &[Arc<Record>]) -> HashSet<String> {
    let mut left: HashMap<&str, u64> = HashMap::new();
    for record in all.iter().filter(|record| leaves(record)) {
        left.insert(&record.node, record.at_ms);
    }
    for record in all.iter().filter(|record| is_work(&record.work)) {
        if left.get(record.node.as_str()).is_some_and(|at| *at < record.at_ms) {
            left.remove(record.node.as_str());
        }
    }
    left.into_keys().map(str::to_owned).collect()
}

/// Whether a record holds a result, rather than the reason why nothing was run.
#[must_use]
pub fn is_result(record: &Record) -> bool {
    !matches!(record.outcome, Outcome::NotRun(_))
}

#[cfg(test)]
mod tests {
    use muster_run::{RunState, noted};
    use muster_wire::{Direction, Profile, Series, Unit};

    use super::*;

    /// A run in which nodes have a sample of each of these metrics of one import.
    fn told(id: &str, nodes: &[&str], metrics: &[&str]) -> Arc<Told> {
        let run = Run {
            id: id.to_owned(),
            playbook: "import/csv".to_owned(),
            profile: Profile::Standard,
            started_ms: 1,
            ended_ms: Some(2),
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            plan: vec!["csv".to_owned()],
            state: RunState::Finished,
        };
        let series = |nr: usize, metric: &&str| Series {
            metric: MetricId::new("bench", *metric, "own"),
            unit: Unit::BytesPerSec,
            direction: Direction::HigherIsBetter,
            values: (0..16).map(|step| 1e9 * (1.0 + 1e-3 * ((step * 5 + nr) % 7) as f64)).collect(),
            warmup: 0,
            started_ns: 0,
        };
        let record = |(nr, node): (usize, &String)| {
            let series = metrics.iter().map(|metric| series(nr, metric)).collect();
            Arc::new(Record { outcome: Outcome::Done, series, ..noted(id, node, "bench", vec![], 2) })
        };
        let records: Vec<_> = run.nodes.iter().enumerate().map(record).collect();
        Arc::new(Told::judge(run, &records, &Judging::default()))
    }

    #[test]
    fn a_run_of_which_all_is_measured_again_no_longer_stands() {
        let all = ["n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"];
        let old = told("old", &all, &["read", "write"]);
        assert!(old.stands_beside(&[]));
        assert!(!old.stands_beside(&[told("new", &all, &["read", "write"])]));
        assert!(old.stands_beside(&[told("new", &all, &["read"])]), "write is the old one's alone");
        assert!(old.stands_beside(&[told("new", &all[1..], &["read", "write"])]), "n1 has nothing newer");
        assert!(!old.stands_beside(&[told("newest", &all, &["read"]), told("new", &all, &["write", "more"])]));
    }
}

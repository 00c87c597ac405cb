//! From the records of a run to what is said of each node. Recomputed from raw samples every time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use muster_run::{OUT_OF_TURN, PAIRS, Record, Run};
use muster_wire::{MetricId, Outcome};

use super::chart::Chart;
use super::context::{Context, group_of};
use super::metrics;
use crate::findings::{ComponentState, Finding, NodeFindings, Source};
use crate::network::PairsReport;
use crate::records::pairs::kept::receiving_node;
use crate::records::pairs::{Found, is_pair, judge_pairs, network};
use crate::records::{Dropped, Evidence, checks, cores, digests, golden, hardware, left, names, works};
use crate::{Criterion, Learned, NodeVerdict, State};

/// What is said of a run.
#[derive(Debug, Default)]
pub struct Assessment {
    /// What was judged: one per metric and group of nodes, in metric order.
    pub judged: Vec<Judged>,
    /// One per node, in the run's order.
    pub nodes: Vec<NodeFindings>,
    /// What the pairs of nodes point at, once all were measured.
    pub network: Option<PairsReport>,
    /// By what else than at its time the run is judged; `None` where it is the same.
    pub rejudged: Option<String>,
    /// Nodes that were left out of later steps.
    pub dropped: Vec<Dropped>,
}

/// A metric of some nodes, and what they were judged by.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Its criterion.
    pub criterion: Criterion,
    /// Of whom, and where the criterion is from.
    pub basis: Basis,
    /// Where the samples lie.
    pub chart: Chart,
}

/// Who was judged by a criterion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Basis {
    /// Which nodes, in words.
    pub group: String,
    /// By a frozen criterion, not by what these nodes show themselves.
    pub frozen: bool,
    /// The nodes of the group.
    pub nodes: Arc<BTreeSet<Arc<str>>>,
}

impl Assessment {
    /// Every criterion with the verdicts of those that were judged by it.
    pub fn into_learned(self) -> impl Iterator<Item = (Learned, Basis)> {
        let mut all: HashMap<MetricId, Vec<NodeVerdict>> = HashMap::new();
        for verdict in self.nodes.into_iter().flat_map(|node| node.verdicts) {
            all.entry(verdict.metric.clone()).or_default().push(verdict);
        }
        self.judged.into_iter().map(move |Judged { criterion, basis, .. }| {
            let left = all.remove(&criterion.metric).unwrap_or_default();
            let (verdicts, others) = left.into_iter().partition(|verdict| basis.nodes.contains(&verdict.node));
            all.insert(criterion.metric.clone(), others);
            (Learned { criterion, verdicts }, basis)
        })
    }
}

/// What was judged, by metric.
pub struct ByMetric<'a> {
    judged: &'a [Judged],
    places: HashMap<&'a MetricId, Vec<usize>>,
}

impl<'a> ByMetric<'a> {
    /// Of everything that was judged.
    #[must_use]
    pub fn of(assessment: &'a Assessment) -> Self {
        let mut places: HashMap<&MetricId, Vec<usize>> = HashMap::new();
        for (place, judged) in assessment.judged.iter().enumerate() {
            places.entry(&judged.criterion.metric).or_default().push(place);
        }
        Self { judged: &assessment.judged, places }
    }

    /// The nodes of a metric that groups of them were judged in separately; `None` where all of them were judged together.
    #[must_use]
    pub fn apart<'j>(&self, judged: &'j Judged) -> Option<&'j BTreeSet<Arc<str>>> {
        (self.places.get(&judged.criterion.metric)?.len() > 1).then_some(&*judged.basis.nodes)
    }

    /// Place in [`Assessment::judged`] of what the metric was judged by on `node`.
    #[must_use]
    pub fn place(&self, metric: &MetricId, node: &str) -> Option<usize> {
        let own = |place: &&usize| self.apart(&self.judged[**place]).is_none_or(|nodes| nodes.contains(node));
        self.places.get(metric)?.iter().find(own).copied()
    }

    /// The criterion that the metric was judged by on `node`.
    #[must_use]
    pub fn criterion(&self, metric: &MetricId, node: &str) -> Option<&'a Criterion> {
        self.place(metric, node).map(|place| &self.judged[place].criterion)
    }
}

/// Judges a run from its records, in `context`; and what its pairs of nodes come to, so that nobody has to look for it twice.
#[must_use]
pub fn assess<'a>(
    run: &Run,
    records: impl IntoIterator<Item = &'a Record>,
    context: &Context,
) -> (Assessment, Option<Found>) {
    let records = believed(records.into_iter().collect());
    let (pairs, records): (Vec<&Record>, Vec<&Record>) = records.into_iter().partition(|record| is_pair(record));
    let evidence = Evidence::new(records);
    let groups = groups(run, &evidence, context);
    // Somebody waits for thousands of nodes: what is no metric is looked at meanwhile.
    let (mut metrics, mut beside, mut checked) = std::thread::scope(|scope| {
        let others =
            scope.spawn(|| (beside(run, &evidence, context, &groups), checks::examine(&run.nodes, &groups, &evidence)));
        let metrics = metrics::decide(run, &evidence, context, &groups);
        let (beside, checked) = others.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (metrics, beside, checked)
    });
    let of_node = |node: &String| {
        let mut findings = metrics.findings.remove(node).unwrap_or_default();
        findings.extend(beside.remove(node).unwrap_or_default());
        quiet_repeats(&mut findings);
        let mut measured = metrics.measured.remove(node).unwrap_or_default();
        measured.extend(ran(node, &evidence, &measured));
        NodeFindings {
            node: node.clone(),
            findings,
            measured,
            verdicts: metrics.verdicts.remove(node).unwrap_or_default(),
            checks: checked.remove(node.as_str()).unwrap_or_default(),
        }
    };
    let mut nodes: Vec<NodeFindings> = run.nodes.iter().map(of_node).collect();
    let pairs_found = network(run, pairs.iter().copied(), None, &context.params);
    let whole = pairs_found.as_ref().filter(|_| pairs.iter().any(|record| record.work == PAIRS));
    let network = whole.map(|found| {
        judge_pairs(&found.report, &pairs, &mut nodes);
        found.report.clone()
    });
    let dropped = left(&evidence.latest);
    (Assessment { judged: metrics.judged, nodes, network, dropped, rejudged: None }, pairs_found)
}

/// The records without what a node said that speaks out of turn: nobody is compared with it, nor judged by its word.
fn believed(mut records: Vec<&Record>) -> Vec<&Record> {
    let liars: BTreeSet<&str> =
        records.iter().filter(|record| record.work == OUT_OF_TURN).map(|record| record.node.as_str()).collect();
    if !liars.is_empty() {
        let said = |record: &Record| muster_run::is_work(&record.work) && liars.contains(record.node.as_str());
        let of = |record: &Record| receiving_node(record).is_some_and(|node| liars.contains(node));
        records.retain(|record| !said(record) && !of(record));
    }
    records
}

/// Group of each node of the run, in its order: by the labels that the run was begun with, else by what the hardware says of itself.
#[must_use]
pub fn groups(run: &Run, evidence: &Evidence<'_>, context: &Context) -> Vec<String> {
    if !context.groups.is_empty() {
        return run.nodes.iter().map(|node| context.group(run.profile, node)).collect();
    }
    let hardware = hardware::groups(&run.nodes, evidence);
    hardware.iter().map(|labels| group_of(run.profile, labels)).collect()
}

/// What is found beside the metrics, by node: how work ended, cores, digests, the past of GPUs.
fn beside(run: &Run, evidence: &Evidence<'_>, context: &Context, groups: &[String]) -> BTreeMap<String, Vec<Finding>> {
    // What was wrong in one visit was wrong: bits are looked at in every visit.
    let records = || run.nodes.iter().flat_map(|node| evidence.every(node));
    let widespread = works::widespread(run, evidence);
    let of_node = run.nodes.iter().map(String::as_str).zip(groups.iter().map(String::as_str)).collect();
    let ended = run.nodes.iter().flat_map(|node| works::findings(node, evidence, &widespread));
    let mut found: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    for finding in ended
        .chain(names::findings(&run.nodes, evidence))
        .chain(cores::findings(&run.nodes, evidence))
        .chain(digests::findings(records(), &of_node))
        .chain(golden::findings(records()))
        .chain(context.cards.findings(run, records()))
    {
        found.entry(finding.node.clone()).or_default().push(finding);
    }
    found
}

/// A node that was lost, or is not believed, says so once, and not of every benchmark that it did not get to; nor does a
/// benchmark say twice how it ended.
fn quiet_repeats(findings: &mut [Finding]) {
    let lost = findings.iter().any(|finding| matches!(finding.source, Source::Link | Source::OutOfTurn));
    let said: Vec<Source> = findings
        .iter()
        .filter(|finding| finding.state > State::NotRun && matches!(finding.source, Source::Benchmark(_)))
        .map(|finding| finding.source.clone())
        .collect();
    for finding in findings.iter_mut().filter(|finding| finding.state == State::NotRun) {
        if lost || said.contains(&finding.source) {
            finding.sentence.clear();
        }
    }
}

/// Components that a benchmark without judged metrics looked at and found in order.
fn ran(node: &str, evidence: &Evidence<'_>, measured: &[ComponentState]) -> Vec<ComponentState> {
    let mut found: Vec<ComponentState> = Vec::new();
    for record in evidence.of_node(node) {
        let done = record.outcome == Outcome::Done && muster_wire::benchmark(record.benchmark()).is_some();
        let component = works::component(record.benchmark());
        let known = measured.iter().chain(&found).any(|known| known.component == component);
        if done && record.series.is_empty() && !known {
            found.push(ComponentState { component, state: State::Pass, undecided: false, resolution: None });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_run::{RunState, noted};
    use muster_wire::{Datum, Direction, FOREIGN_CPU, Fact, MetricId, Profile, Reading, Series, Unit};

    fn record(node: &str, level: f64, foreign: f64) -> Record {
        let series = |name: &str| Series {
            metric: MetricId::new("cpu-gemm", name, "own"),
            unit: Unit::FlopPerSec,
            direction: Direction::HigherIsBetter,
            values: (0..32).map(|i| level * (1.0 + 0.001 * f64::from(i % 7))).collect(),
            warmup: 0,
            started_ns: 0,
        };
        let fact = |key: &str, datum| Fact { key: key.into(), reading: Reading::Value(datum), unit: None };
        Record {
            run: "r".into(),
            node: node.into(),
            work: "cpu-gemm".into(),
            outcome: Outcome::Done,
            at_ms: 1,
            elapsed_ns: 1,
            series: ["a", "b", "c", "d"].map(series).to_vec(),
            facts: vec![
                fact(FOREIGN_CPU, Datum::Number(foreign)),
                fact("foreign.0.comm", Datum::Text("train\u{1b}[2J".into())),
            ],
        }
    }

    /// A run of `cpu-gemm`.
    fn gemm(nodes: Vec<String>) -> Run {
        Run {
            id: "r".into(),
            playbook: "demo".into(),
            profile: Profile::Smoke,
            started_ms: 0,
            ended_ms: None,
            nodes,
            plan: vec!["cpu-gemm".into()],
            state: RunState::Running,
        }
    }

    #[test]
    fn nothing_counts_of_a_node_that_speaks_out_of_turn() {
        let nodes: Vec<String> = (1..=6).map(|n| format!("n{n}")).collect();
        let mut records: Vec<Record> = nodes.iter().map(|n| record(n, 100.0, 0.05)).collect();
        let run = gemm(nodes);
        records[5] = record("n6", 1e300, 0.05);
        let told = noted("r", "n6", OUT_OF_TURN, Vec::new(), 2);
        records.push(Record { outcome: Outcome::Failed("said hello twice".to_owned()), ..told });
        let found = assess(&run, &records, &Context::default()).0;
        let states: Vec<State> = found.nodes.iter().map(|node| node.state().state).collect();
        assert_eq!((&states[..5], states[5]), (&[State::Pass; 5][..], State::Fail));
        assert!(found.nodes[5].verdicts.iter().all(|verdict| verdict.value.is_none()));
        let said: Vec<&str> =
            found.nodes[5].findings.iter().map(|f| f.sentence.as_str()).filter(|s| !s.is_empty()).collect();
        assert_eq!(said, ["n6: speaks out of turn: said hello twice"]);
    }

    fn state_of_n6(foreign: f64) -> NodeFindings {
        let nodes: Vec<String> = (1..=6).map(|n| format!("n{n}")).collect();
        let records: Vec<Record> =
            nodes.iter().map(|n| if n == "n6" { record(n, 40.0, foreign) } else { record(n, 100.0, 0.05) }).collect();
        let run = gemm(nodes);
        assess(&run, &records, &Context::default()).0.nodes.remove(5)
    }

    #[test]
    fn a_metric_that_most_others_have_is_owed_and_one_that_few_have_is_not() {
        let nodes: Vec<String> = (1..=8).map(|n| format!("n{n}")).collect();
        let mut records: Vec<Record> = nodes.iter().map(|n| record(n, 100.0, 0.05)).collect();
        records[5].series.retain(|series| series.metric.name != "c");
        records[6].outcome = Outcome::NotApplicable("no such unit".to_owned());
        records[6].series.clear();
        let extra = Series { metric: MetricId::new("cpu-gemm", "e", "own"), ..records[0].series[0].clone() };
        records[..3].iter_mut().for_each(|record| record.series.push(extra.clone()));
        let run = gemm(nodes);
        let found = assess(&run, &records, &Context::default()).0.nodes;
        let missing = &found[5];
        assert_eq!((missing.state().state, missing.state().undecided), (State::Unknown, true));
        let reasons = missing.reasons(&missing.all(), &missing.state());
        assert_eq!(reasons, ["n6: cpu-gemm/c not measured: no value, though other nodes have one"]);
        let verdict = missing.verdicts.iter().find(|verdict| verdict.metric.name == "c").unwrap();
        assert_eq!((verdict.state, verdict.value), (State::NotRun, None));
        assert!(found[6].findings.is_empty(), "{:?}", found[6].findings);
        let extra = |node: &NodeFindings| node.verdicts.iter().any(|verdict| verdict.metric.name == "e");
        assert_eq!(found.iter().filter(|node| extra(node)).count(), 3);
        assert!([3, 4, 7].iter().all(|at| found[*at].state().state == State::Pass));
    }

    #[test]
    fn a_busy_node_is_not_a_slow_node() {
        let slow = state_of_n6(0.05);
        assert_eq!(slow.state().state, State::Fail);
        assert!(slow.findings[0].sentence.starts_with("n6: cpu-gemm/"), "{:?}", slow.findings);
        let busy = state_of_n6(0.5);
        assert_eq!(busy.state().state, State::Unknown);
        assert!(busy.verdicts.iter().all(|v| v.state == State::Unknown && v.value.is_some()));
        let why = &busy.findings.iter().find(|finding| finding.source == Source::Load).unwrap().sentence;
        assert!(why.starts_with("n6: cpu-gemm not judged: foreign CPU load 50 %"), "{why}");
        assert!(why.contains("'train") && !why.contains('\u{1b}'), "{why}");
    }

    /// Nodes of a training, each with the words of its digest facts.
    fn trained(nodes: &[(&str, &[&str])]) -> Vec<NodeFindings> {
        let records: Vec<Record> = nodes
            .iter()
            .map(|(node, digests)| {
                let fact = |text: &&str| Fact {
                    key: "digest.gpt2-nano_fp32_train_loss".into(),
                    reading: Reading::Value(Datum::Text((*text).into())),
                    unit: None,
                };
                let facts = digests.iter().map(fact).collect();
                Record { work: "train-gpt2".into(), facts, series: Vec::new(), ..record(node, 1.0, 0.0) }
            })
            .collect();
        let run = Run {
            id: "r".into(),
            playbook: "training".into(),
            profile: Profile::Smoke,
            started_ms: 0,
            ended_ms: None,
            nodes: nodes.iter().map(|(node, _)| (*node).to_owned()).collect(),
            plan: vec!["train-gpt2".into()],
            state: RunState::Running,
        };
        assess(&run, &records, &Context::default()).0.nodes
    }

    fn accused<'a>(nodes: &'a [NodeFindings]) -> Vec<(&'a str, State, &'a str)> {
        assert!(nodes.iter().all(|node| node.findings.len() <= 1));
        let said = |n: &'a NodeFindings| n.findings.iter().map(|f| (n.node.as_str(), f.state, f.sentence.as_str()));
        nodes.iter().flat_map(said).collect()
    }

    #[test]
    fn a_node_that_trains_to_other_losses_fails_with_the_first_step_that_differs() {
        let right = &["40a00000 40900000 40800000"][..];
        let mut nodes: Vec<(&str, &[&str])> = vec![("n1", right), ("n2", right), ("n3", right)];
        assert_eq!(accused(&trained(&nodes)), []);
        nodes.push(("n4", &["40a00000 40900000 40800001"]));
        let why = "n4: train-gpt2 computes wrongly: gpt2-nano_fp32_train_loss differs from 3 of 4 nodes from step 3 on";
        assert_eq!(accused(&trained(&nodes)), [("n4", State::Fail, why)]);
        let both: &[&str] = &["40a00000", "40a00001"];
        let own = "n4: train-gpt2 does not repeat: gpt2-nano_fp32_train_loss gives other bits each time";
        nodes[3] = ("n4", both);
        assert_eq!(accused(&trained(&nodes)), [("n4", State::Fail, own)]);
    }

    #[test]
    fn two_nodes_that_differ_are_both_undecided_and_words_that_are_no_digest_accuse_nobody() {
        let two = trained(&[("n1", &["a b"]), ("n2", &["a c"])]);
        assert!(accused(&two).iter().all(|(_, state, why)| *state == State::Unknown && why.contains("from step 2 on")));
        assert_eq!(accused(&two).len(), 2);
        let noise = trained(&[("n1", &["a"]), ("n2", &["a"]), ("n3", &["\u{1b}[2J"]), ("n4", &[""])]);
        assert_eq!(accused(&noise), []);
    }
}

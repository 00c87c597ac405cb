//! From the records of a run to what is said of each node. Recomputed from raw samples every time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use muster_analysis::{Learned, NodeState, Observation, State, compare, convict, gpu, learn};
use muster_playbook::report::{Dropped, NodeFindings, PairsReport};
use muster_store::{Record, Run};
use muster_wire::{BUSY, Datum, FOREIGN_CPU, MetricId, Outcome, Series, clean};

use super::cores::{WORK, odd_cores};
use super::{Judging, LINK, digests, golden, health, is_pair, judge_pairs};

/// What is said of a run.
#[derive(Debug, Default)]
pub struct Assessment {
    /// One per metric and group of nodes, in metric order.
    pub learned: Vec<Learned>,
    /// What each of them was judged by.
    pub basis: Vec<Basis>,
    /// One per node, in the run's order.
    pub nodes: Vec<NodeFindings>,
    /// What the pairs of nodes point at, once all were measured.
    pub network: Option<PairsReport>,
    /// By what else than at its time the run is judged; `None` where it is the same.
    pub rejudged: Option<String>,
    /// Nodes that were left out of later steps.
    pub dropped: Vec<Dropped>,
}

/// What a metric of some nodes was judged by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Basis {
    /// Which nodes.
    pub group: String,
    /// By a frozen criterion, not by what these nodes show themselves.
    pub frozen: bool,
}

/// The last record of each piece of work of each node.
pub(super) type Latest<'a> = BTreeMap<(&'a str, &'a str), &'a Record>;

/// Judges a run from its records.
#[must_use]
pub fn assess<'a>(run: &Run, records: impl IntoIterator<Item = &'a Record>, judging: &Judging) -> Assessment {
    let (pairs, records): (Vec<&Record>, Vec<&Record>) = records.into_iter().partition(|record| is_pair(record));
    let latest: Latest<'_> = records.into_iter().map(|r| ((r.node.as_str(), r.work.as_str()), r)).collect();
    let groups: Vec<String> = run.nodes.iter().map(|node| judging.group(run.profile, node)).collect();
    let params = &judging.terms.params;
    let (learned, basis) = learned(run, &latest, (judging, &groups));
    let mut judged: BTreeMap<String, NodeState> =
        convict(&learned).into_iter().map(|state| (state.node.clone(), state)).collect();
    for learned in learned.iter().zip(&basis).filter(|(_, basis)| basis.frozen).map(|(learned, _)| learned) {
        uphold(learned, &mut judged);
    }
    let widespread = widespread(run, &latest);
    let dropped = health::left(&latest);
    let of_node = run.nodes.iter().map(String::as_str).zip(groups.iter().map(String::as_str)).collect();
    let mut wrong = digests::findings(latest.values().copied(), &of_node);
    let mut contradicted = golden::findings(latest.values().copied().filter(|record| run.nodes.contains(&record.node)));
    let mut cards =
        judging.cards.findings(run, latest.values().copied().filter(|record| run.nodes.contains(&record.node)));
    let mut checked = health::examine(&run.nodes, &groups, &latest);
    let by_core: Vec<&Record> = run.nodes.iter().filter_map(|n| latest.get(&(n.as_str(), WORK)).copied()).collect();
    let mut cores = odd_cores(&by_core);
    let finding = |node: &String| {
        let own = cores.remove(node.as_str()).unwrap_or_default();
        let checks = checked.remove(node.as_str()).unwrap_or_default();
        let mut finding = NodeFindings { checks, ..finding(node, (judged.remove(node), own), &latest, &widespread) };
        finding.troubles.extend(wrong.remove(node).unwrap_or_default());
        finding.troubles.extend(contradicted.remove(node).unwrap_or_default());
        finding.troubles.extend(cards.troubles.remove(node).unwrap_or_default());
        finding.notices = cards.notices.remove(node).unwrap_or_default();
        finding
    };
    let mut nodes: Vec<NodeFindings> = run.nodes.iter().map(finding).collect();
    let network = judge_pairs(run, &pairs, &mut nodes, params);
    Assessment { learned, basis, nodes, network, dropped, rejudged: judging.rejudged.clone() }
}

/// What each metric says of each group, and by what it was judged.
fn learned(run: &Run, latest: &Latest<'_>, (judging, groups): (&Judging, &[String])) -> (Vec<Learned>, Vec<Basis>) {
    let params = &judging.terms.params;
    let (mut learned, mut basis) = (Vec::new(), Vec::new());
    for (metric, series) in measured(run, latest) {
        let (unit, direction) = (series[0].1.unit, series[0].1.direction);
        let mut by_group: BTreeMap<&String, Vec<(String, Observation)>> = BTreeMap::new();
        let mut rest = series.as_slice();
        for (at, (node, group)) in run.nodes.iter().zip(groups).enumerate() {
            let own;
            (own, rest) = rest.split_at(rest.partition_point(|(of, _)| *of <= at));
            let values: Vec<f64> = own.iter().flat_map(|(_, series)| &series.values).copied().collect();
            let record = latest.get(&(node.as_str(), metric.benchmark.as_str())).copied();
            let Some(observed) = observation(record, metric, &values) else { continue };
            by_group.entry(group).or_default().push((node.clone(), observed));
        }
        for (group, observed) in by_group {
            let frozen = judging.criterion(group, metric);
            learned.push(match frozen {
                Some(criterion) => compare(criterion, &observed, params),
                None => learn(metric, unit, direction, &observed, params),
            });
            basis.push(Basis { group: group.clone(), frozen: frozen.is_some() });
        }
    }
    (learned, basis)
}

/// Every metric with its series, each with the place of its node in the run, ascending. One pass over all records: a file
/// of SuperBench has millions of series.
fn measured<'a>(run: &Run, latest: &Latest<'a>) -> BTreeMap<&'a MetricId, Vec<(usize, &'a Series)>> {
    let places: HashMap<&str, usize> = run.nodes.iter().enumerate().map(|(at, node)| (node.as_str(), at)).collect();
    let mut found: HashMap<&MetricId, Vec<(usize, &Series)>> = HashMap::new();
    for record in latest.values() {
        // What a node measured that is not in the run is nobody's.
        let at = places.get(record.node.as_str()).copied().unwrap_or(usize::MAX);
        for series in record.series.iter().filter(|series| record.work == series.metric.benchmark) {
            found.entry(&series.metric).or_default().push((at, series));
        }
    }
    found.values_mut().for_each(|series| series.sort_by_key(|(at, _)| *at));
    found.into_iter().collect()
}

/// What a frozen criterion accuses of stays accused: peers that are as bad are no excuse.
fn uphold(learned: &Learned, judged: &mut BTreeMap<String, NodeState>) {
    for verdict in learned.verdicts.iter().filter(|v| v.state == State::Fail && v.similarity.is_some()) {
        let Some(node) = judged.get_mut(&verdict.node) else { continue };
        let own = node.verdicts.iter_mut().filter(|v| v.metric == verdict.metric && v.state != State::Fail);
        for softened in own {
            *softened = verdict.clone();
            softened.reason = format!("{}; by the frozen criterion {}", verdict.reason, learned.criterion.id);
            if node.state != State::Fail {
                (node.state, node.reasons) = (State::Fail, Vec::new());
            }
            node.reasons.push(softened.reason.clone());
        }
    }
}

/// What every node of `run` has for `metric`, in the run's order.
#[must_use]
pub fn observations(run: &Run, records: &[Record], metric: &MetricId) -> Vec<(String, Observation)> {
    let latest: Latest<'_> = records.iter().map(|r| ((r.node.as_str(), r.work.as_str()), r)).collect();
    let of_node = |node: &String| {
        let record = latest.get(&(node.as_str(), metric.benchmark.as_str())).copied();
        let values = record.map(|record| record.values_of(metric)).unwrap_or_default();
        Some((node.clone(), observation(record, metric, &values)?))
    };
    run.nodes.iter().filter_map(of_node).collect()
}

/// What a node has for a metric, from the record of its benchmark and the values there; nothing where another engine
/// measured it or it cannot apply.
fn observation(record: Option<&Record>, metric: &MetricId, values: &[f64]) -> Option<Observation> {
    let Some(record) = record else {
        return Some(Observation::Missing("it did not get that far".into()));
    };
    if !values.is_empty() {
        let observed = Observation::from_values(values);
        return Some(match company(record).or_else(|| gpu_company(record, metric)) {
            Some(why) => observed.disturbed(&why),
            None => observed,
        });
    }
    match &record.outcome {
        Outcome::Done | Outcome::NotApplicable(_) => None,
        Outcome::Failed(why) | Outcome::Denied(why) | Outcome::NotRun(why) => Some(Observation::Missing(why.clone())),
    }
}

/// Who kept the node busy while this was measured: a busy node is not a slow one, and no peer either.
#[must_use]
pub fn company(record: &Record) -> Option<String> {
    let fact = |key: &str| record.facts.iter().find(|f| f.key == key).and_then(|f| f.reading.value());
    let number = |key: &str| match fact(key) {
        Some(Datum::Number(share)) => Some(*share),
        _ => None,
    };
    let share = number(FOREIGN_CPU).filter(|share| *share > BUSY)?;
    let name = match fact("foreign.0.comm") {
        Some(Datum::Text(comm)) => format!(", most of it '{}'", clean(comm, 32)),
        _ => String::new(),
    };
    Some(format!("others used {:.0} % of its CPUs meanwhile{name}", share * 100.0))
}

/// Who else computed on the GPU that a metric is of.
fn gpu_company(record: &Record, metric: &MetricId) -> Option<String> {
    let key = format!("gpu.{}.company", metric.name.rsplit_once(':')?.1);
    match record.facts.iter().find(|fact| fact.key == key)?.reading.value()? {
        Datum::Text(who) => Some(format!("others computed on this GPU meanwhile ({})", clean(who, 96))),
        _ => None,
    }
}

/// Work that failed on at least half of the nodes that tried: then the work is suspect, not the nodes.
fn widespread<'a>(run: &Run, latest: &Latest<'a>) -> BTreeSet<&'a str> {
    let mut tried: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for record in latest.values().filter(|r| health::is_work(&r.work) && run.nodes.contains(&r.node)) {
        let count = tried.entry(record.work.as_str()).or_default();
        count.0 += 1;
        count.1 += usize::from(matches!(record.outcome, Outcome::Failed(_)));
    }
    tried.into_iter().filter(|(_, (all, failed))| *failed > 1 && failed * 2 >= *all).map(|(work, _)| work).collect()
}

/// What is said of a node, given what its metrics and its cores said.
fn finding(
    node: &str,
    (judged, mut troubles): (Option<NodeState>, Vec<(State, String)>),
    latest: &Latest<'_>,
    widespread: &BTreeSet<&str>,
) -> NodeFindings {
    for record in of_node(latest, node) {
        // A link that failed and later carried results is history.
        let overtaken =
            record.work == LINK && of_node(latest, node).any(|r| health::is_work(&r.work) && r.at_ms > record.at_ms);
        troubles.extend(sentence(node, record, widespread).filter(|_| !overtaken));
        troubles.extend(gpu_parts(node, record));
    }
    troubles.extend(disturbance(node, latest));
    troubles.extend(of_node(latest, node).find_map(|record| gpu_disturbance(node, record)));
    let Some(mut judged) = judged else {
        return NodeFindings { node: node.to_owned(), troubles, ..NodeFindings::default() };
    };
    if !troubles.is_empty() && judged.state != State::Fail {
        // The trouble says why; sentences about the gaps it left would bury it.
        judged.reasons.clear();
    }
    let (state, reasons) = (judged.state, judged.reasons);
    NodeFindings {
        node: node.to_owned(),
        troubles,
        judged: Some((state, reasons)),
        verdicts: judged.verdicts,
        ..NodeFindings::default()
    }
}

/// Parts of GPUs that a record proves faulty.
fn gpu_parts(node: &str, record: &Record) -> Vec<(State, String)> {
    let texts = record.facts.iter().filter_map(|fact| match fact.reading.value() {
        Some(Datum::Text(text)) => Some((fact.key.as_str(), text.as_str())),
        _ => None,
    });
    let found = gpu::findings(texts);
    found.iter().map(|part| (State::Fail, format!("{node}: {}: {part}", record.work))).collect()
}

/// One sentence for all benchmarks during which others kept the node busy.
fn disturbance(node: &str, latest: &Latest<'_>) -> Option<(State, String)> {
    let busy: Vec<(&str, String)> =
        of_node(latest, node).filter_map(|record| Some((record.work.as_str(), company(record)?))).collect();
    let (first, why) = busy.first()?;
    let (what, verb) =
        if busy.len() == 1 { ((*first).to_owned(), "is") } else { (format!("{} benchmarks", busy.len()), "are") };
    Some((State::Unknown, format!("{node}: {what} {verb} not judged, {why}: measure again")))
}

/// One sentence for the first benchmark during which others computed on GPUs.
fn gpu_disturbance(node: &str, record: &Record) -> Option<(State, String)> {
    let gpu = |key: &str| key.strip_prefix("gpu.")?.strip_suffix(".company")?.parse::<u32>().ok();
    let gpus: Vec<String> = record.facts.iter().filter_map(|fact| gpu(&fact.key)).map(|n| n.to_string()).collect();
    let (verb, work) = (if gpus.len() == 1 { "is" } else { "are" }, &record.work);
    let why =
        format!("{node}: GPU {} {verb} not judged by {work}, others computed there: measure again", gpus.join(", "));
    (!gpus.is_empty()).then_some((State::Unknown, why))
}

pub(super) fn of_node<'a>(latest: &Latest<'a>, node: &str) -> impl Iterator<Item = &'a Record> {
    let of_this = latest.range((node, "")..).take_while(|((n, _), _)| *n == node).map(|(_, record)| *record);
    of_this.collect::<Vec<_>>().into_iter()
}

fn sentence(node: &str, record: &Record, widespread: &BTreeSet<&str>) -> Option<(State, String)> {
    let work = record.work.as_str();
    if work == LINK {
        return match &record.outcome {
            Outcome::Failed(why) => Some((State::Unknown, why.clone())),
            _ => None,
        };
    }
    let collected = work.starts_with("collect/");
    match &record.outcome {
        // A look that is denied or absent is no judgement on the node.
        _ if collected => None,
        Outcome::Done | Outcome::NotApplicable(_) => None,
        Outcome::Failed(why) if widespread.contains(work) => {
            Some((State::Unknown, format!("{node}: {work} failed here and on most other nodes: {why}")))
        }
        Outcome::Failed(why) => Some((State::Fail, format!("{node}: {work} failed: {why}"))),
        Outcome::Denied(why) => Some((State::Unknown, format!("{node}: {work} is not permitted: {why}"))),
        Outcome::NotRun(why) => Some((State::Unknown, format!("{node}: {work} did not run: {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_store::RunState;
    use muster_wire::{Direction, Fact, Profile, Reading, Unit};

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

    fn state_of_n6(foreign: f64) -> NodeFindings {
        let nodes: Vec<String> = (1..=6).map(|n| format!("n{n}")).collect();
        let records: Vec<Record> =
            nodes.iter().map(|n| if n == "n6" { record(n, 40.0, foreign) } else { record(n, 100.0, 0.05) }).collect();
        let run = Run {
            id: "r".into(),
            playbook: "demo".into(),
            profile: Profile::Smoke,
            started_ms: 0,
            ended_ms: None,
            nodes,
            plan: vec!["cpu-gemm".into()],
            state: RunState::Running,
        };
        assess(&run, &records, &Judging::default()).nodes.remove(5)
    }

    #[test]
    fn a_busy_node_is_not_a_slow_node() {
        let (state, _) = state_of_n6(0.05).judged.unwrap();
        assert_eq!(state, State::Fail);
        let busy = state_of_n6(0.5);
        assert_eq!(busy.judged.unwrap().0, State::Unknown);
        assert!(busy.verdicts.iter().all(|v| v.state == State::Unknown && v.value.is_some()));
        let (state, why) = &busy.troubles[0];
        assert_eq!(*state, State::Unknown);
        assert!(why.starts_with("n6: cpu-gemm is not judged, others used 50 % of its CPUs"), "{why}");
        assert!(why.contains("'train") && !why.contains('\u{1b}'), "{why}");
    }

    #[test]
    fn a_gpu_that_others_compute_on_is_not_judged_and_the_others_of_its_node_are() {
        let mut shared = record("n1", 100.0, 0.0);
        let who = Datum::Text("77 train\u{1b}[2J".into());
        shared.facts.push(Fact { key: "gpu.3.company".into(), reading: Reading::Value(who), unit: None });
        let observed = |name: &str| observation(Some(&shared), &MetricId::new("gpu-stream", name, "own"), &[1.0; 32]);
        let Some(Observation::Disturbed(_, why)) = observed("copy:3") else { panic!() };
        assert_eq!(why, "others computed on this GPU meanwhile (77 train)");
        assert!(matches!(observed("copy:4"), Some(Observation::Sample(_))));
        let (_, why) = gpu_disturbance("n1", &shared).unwrap();
        assert_eq!(why, "n1: GPU 3 is not judged by cpu-gemm, others computed there: measure again");
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
        assess(&run, &records, &Judging::default()).nodes
    }

    fn accused(nodes: &[NodeFindings]) -> Vec<(&str, State, &str)> {
        let said = |node: &'_ NodeFindings| node.troubles.clone();
        assert!(nodes.iter().all(|node| said(node).len() <= 1));
        nodes.iter().flat_map(|n| n.troubles.iter().map(|(s, why)| (n.node.as_str(), *s, why.as_str()))).collect()
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

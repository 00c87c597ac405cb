//! What a run found, as the `muster.run` document (assets/schemas/muster.run.json).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use muster_analysis::checks::Severity;
use muster_analysis::{Criterion, NodeVerdict, State, Status};
use muster_wire::{MetricId, Profile, Unit, clean, limits};
use serde::{Deserialize, Serialize};

use super::alarms::alarms;
use super::node::{ComponentReport, FindingReport};
use super::{CriterionReport, PairsReport, Summary, rfc3339};
use super::{Dropped, NodeFindings};

/// Name of the document.
pub const RUN_SCHEMA: &str = "muster.run";

/// The `muster.run` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// [`RUN_SCHEMA`].
    pub schema: String,
    /// Version of the document; 1.
    pub version: u32,
    /// Which run.
    pub run: RunInfo,
    /// How many nodes ended how.
    pub summary: Summary,
    /// In the order given.
    pub nodes: Vec<NodeReport>,
    /// In the order given.
    pub criteria: Vec<CriterionReport>,
    /// What the pairs of nodes point at; absent where none were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<PairsReport>,
    /// Checks that so many nodes fail that the check or the last roll-out is to be suspected first: one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alarms: Vec<String>,
    /// Nodes that were left out of later steps, in the order they left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<Dropped>,
    /// By what else than at its time the run is judged here; left out where the verdicts are those of its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejudged: Option<String>,
    /// Written by the demo fleet alone; the analysis never reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demo: Option<Demo>,
    /// What a demo of virtual nodes cost the console's side; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// What a metric of some nodes was judged by.
#[derive(Clone, Copy, Debug)]
pub struct Basis<'a> {
    /// Its criterion.
    pub criterion: &'a Criterion,
    /// Which nodes, such as `profile=quick,sku=h100`; empty for all.
    pub group: &'a str,
    /// By a frozen criterion, not by what these nodes show themselves.
    pub frozen: bool,
    /// Their names; `None` for all that have the metric.
    pub nodes: Option<&'a BTreeSet<Arc<str>>>,
}

impl Basis<'_> {
    fn judges(&self, node: &str) -> bool {
        self.nodes.is_none_or(|nodes| nodes.contains(node))
    }
}

/// Which run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Run id.
    pub id: String,
    /// Name of the playbook.
    pub playbook: String,
    /// Its profile.
    pub profile: Profile,
    /// RFC 3339, UTC.
    pub started: String,
    /// RFC 3339, UTC; null while the run has not ended.
    pub ended: Option<String>,
}

impl RunInfo {
    /// Times are milliseconds since 1970 UTC.
    pub fn new(id: &str, playbook: &str, profile: Profile, started_ms: u64, ended_ms: Option<u64>) -> Self {
        Self {
            id: id.to_owned(),
            playbook: playbook.to_owned(),
            profile,
            started: rfc3339(started_ms),
            ended: ended_ms.map(rfc3339),
        }
    }
}

/// What the demo did to its own nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demo {
    /// Nodes that were slowed down.
    pub slowed: Vec<String>,
}

/// What a run cost the console's side: the process that connects, stores and judges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time from the start of the process to the verdicts, seconds.
    pub cpu_s: f64,
    /// Most memory resident at one time, MB of 10^6 bytes.
    pub rss_mb: f64,
    /// Time from the begin of the run to the verdicts, seconds.
    pub wall_s: f64,
    /// Time from the last that a node said to the verdicts, seconds.
    pub verdict_s: f64,
    /// Bytes of all connections, both ways, SSH included.
    pub bytes: u64,
}

/// What is said about one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Node name.
    pub node: String,
    /// The worst of its components.
    pub state: State,
    /// Something that was asked for could not be decided, whatever the state.
    #[serde(default)]
    pub undecided: bool,
    /// Why it is not a pass, worst first: one sentence each. Remarks on a pass.
    pub reasons: Vec<String>,
    /// State of every component that was looked at.
    #[serde(default)]
    pub components: Vec<ComponentReport>,
    /// What was found, worst first.
    #[serde(default)]
    pub findings: Vec<FindingReport>,
    /// One per metric.
    pub verdicts: Vec<VerdictReport>,
    /// One per check that was asked for.
    #[serde(default)]
    pub checks: Vec<CheckReport>,
}

/// What one check says about one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// Check.
    pub id: String,
    /// How much a bad answer weighs.
    pub severity: Severity,
    /// Answer.
    pub state: State,
    /// The evidence in one sentence.
    pub said: String,
    /// What to do; left out where there is nothing to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next: String,
}

/// What is said about one node and one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerdictReport {
    /// What was judged and by what, which many verdicts share.
    #[serde(flatten)]
    pub of: Arc<MetricReport>,
    /// Judgement.
    pub state: State,
    /// One-sided similarity to the criterion; null when either is missing.
    pub similarity: Option<f64>,
    /// Median of the node's sample; null without one.
    pub value: Option<f64>,
}

/// A metric, and what it is judged by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricReport {
    /// `benchmark/name`.
    pub metric: String,
    /// Unit of the values; null when there is no criterion to take it from.
    pub unit: Option<Unit>,
    /// What measured it.
    pub engine: String,
    /// The criterion's threshold.
    pub alpha: Option<f64>,
    /// The criterion's tail floor.
    pub tau: Option<f64>,
    /// What it was compared with; null when there is nothing.
    pub criterion: Option<CriterionRef>,
}

/// The criterion behind a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CriterionRef {
    /// Content identity.
    pub id: String,
    /// Nodes it was learned from.
    pub n: usize,
    /// How far it may be trusted.
    pub status: Status,
}

impl RunReport {
    /// Puts the document together. A node's state is the worst of its findings; one without any is unknown.
    /// Texts are cleaned of control characters here, since names and reasons may come from nodes.
    #[must_use]
    pub fn new(run: RunInfo, nodes: &[NodeFindings], basis: &[Basis<'_>]) -> Self {
        let mut report = Gathered::of(basis);
        nodes.iter().for_each(|node| report.add(node));
        report.report(run)
    }
}

/// A report while its nodes come one after another, so that not all that is said of them is in memory twice.
pub struct Gathered<'a> {
    basis: &'a [Basis<'a>],
    reports: NodeReports<'a>,
    outside: HashMap<MetricId, Vec<NodeVerdict>>,
    nodes: Vec<NodeReport>,
}

impl<'a> Gathered<'a> {
    /// Of nodes that are judged by `basis`.
    #[must_use]
    pub fn of(basis: &'a [Basis<'a>]) -> Self {
        Self { basis, reports: NodeReports::of(basis), outside: HashMap::new(), nodes: Vec::new() }
    }

    /// Adds the next node.
    pub fn add(&mut self, node: &NodeFindings) {
        for verdict in node.verdicts.iter().filter(|verdict| matches!(verdict.state, State::Fail | State::Warn)) {
            self.outside.entry(verdict.metric.clone()).or_default().push(verdict.clone());
        }
        self.nodes.push(self.reports.report(node));
    }

    /// The report of `run`.
    #[must_use]
    pub fn report(self, run: RunInfo) -> RunReport {
        let Self { basis, outside, nodes, .. } = self;
        let criterion = |basis: &Basis<'_>| {
            let own = outside.get(&basis.criterion.metric).map_or(&[][..], Vec::as_slice);
            let verdicts = own.iter().filter(|verdict| basis.judges(&verdict.node));
            let (group, frozen) = (clean(basis.group, limits::TEXT_BYTES), basis.frozen);
            CriterionReport { group, frozen, ..CriterionReport::new(basis.criterion, verdicts) }
        };
        let criteria = basis.iter().map(criterion).collect();
        RunReport {
            schema: RUN_SCHEMA.to_owned(),
            version: 1,
            run,
            summary: Summary::of(nodes.iter().map(|node| (node.state, node.undecided))),
            criteria,
            alarms: alarms(&nodes, &BTreeMap::new()),
            nodes,
            network: None,
            dropped: Vec::new(),
            rejudged: None,
            demo: None,
            cost: None,
        }
    }
}

/// Makes the report of one node after another.
pub struct NodeReports<'a>(Known<'a>);

impl<'a> NodeReports<'a> {
    /// Of nodes that are judged by `basis`.
    #[must_use]
    pub fn of(basis: &[Basis<'a>]) -> Self {
        Self(Known::of(basis))
    }

    /// What is said of a node.
    #[must_use]
    pub fn report(&self, node: &NodeFindings) -> NodeReport {
        node_report(node, &self.0)
    }
}

/// What judges a metric, and how it is told.
type Judge<'a> = (Basis<'a>, Arc<MetricReport>);

/// What every metric is judged by.
struct Known<'a> {
    metrics: Vec<(&'a MetricId, Vec<Judge<'a>>)>,
    places: HashMap<&'a MetricId, usize>,
}

impl<'a> Known<'a> {
    fn of(basis: &[Basis<'a>]) -> Self {
        let (mut metrics, mut places) = (Vec::new(), HashMap::new());
        for basis in basis {
            let criterion = basis.criterion;
            let report = Arc::new(metric_report(&criterion.metric, Some(criterion)));
            let place = *places.entry(&criterion.metric).or_insert_with(|| {
                metrics.push((&criterion.metric, Vec::new()));
                metrics.len() - 1
            });
            metrics[place].1.push((*basis, report));
        }
        Self { metrics, places }
    }

    /// By what `verdict` was judged; the last of several, which is the newest. Its metric is looked for at `place` first, which becomes
    /// the one behind it: verdicts of a node mostly stand in the order of the metrics, and a fleet has millions.
    fn by(&self, verdict: &NodeVerdict, place: &mut usize) -> Arc<MetricReport> {
        let at = |place: usize| self.metrics.get(place).filter(|(metric, _)| **metric == verdict.metric);
        let found = at(*place).or_else(|| {
            *place = *self.places.get(&verdict.metric)?;
            at(*place)
        });
        *place += 1;
        match found.map_or(&[][..], |(_, all)| all.as_slice()) {
            [(_, only)] => only.clone(),
            all => {
                let own = all.iter().rev().find(|(basis, _)| basis.judges(&verdict.node));
                own.map_or_else(|| Arc::new(metric_report(&verdict.metric, None)), |(_, report)| report.clone())
            }
        }
    }
}

fn metric_report(metric: &MetricId, criterion: Option<&Criterion>) -> MetricReport {
    MetricReport {
        metric: clean(&metric.path(), limits::TEXT_BYTES),
        unit: criterion.map(|c| c.unit),
        engine: clean(&metric.engine, limits::NAME_BYTES),
        alpha: criterion.map(|c| c.alpha),
        tau: criterion.map(|c| c.tau),
        criterion: criterion.filter(|c| c.n > 0).map(|c| CriterionRef {
            id: clean(&c.id, limits::TEXT_BYTES),
            n: c.n,
            status: c.status,
        }),
    }
}

fn node_report(findings: &NodeFindings, known: &Known<'_>) -> NodeReport {
    let all = findings.all();
    let decided = findings.state();
    let node = clean(&findings.node, limits::TEXT_BYTES);
    let mut place = 0;
    let verdict = |verdict: &NodeVerdict| VerdictReport {
        of: known.by(verdict, &mut place),
        state: verdict.state,
        similarity: verdict.similarity.filter(|value| value.is_finite()),
        value: verdict.value.filter(|value| value.is_finite()),
    };
    NodeReport {
        node,
        state: decided.state,
        undecided: decided.undecided,
        reasons: findings.reasons(&all, &decided),
        components: decided.components.iter().map(ComponentReport::from).collect(),
        findings: all.iter().filter(|f| f.state > State::Pass).map(FindingReport::from).collect(),
        verdicts: findings.verdicts.iter().map(verdict).collect(),
        checks: findings.checks.iter().map(super::checks::report).collect(),
    }
}

/// What pairs of nodes say where one uplink is surely slow.
#[cfg(test)]
pub(crate) fn slow_uplink() -> PairsReport {
    use muster_analysis::network::localise::{Kind, Suspect};
    use muster_analysis::network::{Of, topology::Source};

    let found = Suspect {
        kind: Kind::Uplink,
        element: "leaf2-spine1".to_owned(),
        effect: 0.43,
        interval: [0.42, 0.44],
        pairs: 30,
        slow: 30,
        confidence: 1.0,
    };
    PairsReport { suspects: vec![Of { metric: "throughput".to_owned(), found }], ..PairsReport::new(Source::Csv) }
}

/// A report made by the real analysis: n3 at half speed, n8 unreachable, the others fine.
#[cfg(test)]
pub(crate) fn sample() -> RunReport {
    use muster_analysis::findings::{ComponentState, Finding, Source};
    use muster_analysis::{Observation, Params, learn};
    use muster_wire::{Component, Direction};

    let params = Params::default();
    let mut nodes: Vec<NodeFindings> =
        (1..=7).map(|n| NodeFindings { node: format!("n{n}"), ..NodeFindings::default() }).collect();
    let mut criteria = Vec::new();
    for (name, level) in [("triad", 40e9), ("copy", 50e9)] {
        let observed: Vec<(String, Observation)> = (1..=7)
            .map(|n| {
                let level = if n == 3 { level / 2.0 } else { level };
                let values: Vec<f64> = (0..64).map(|i| level * (1.0 + f64::from((i * 7 + n) % 13) * 1e-4)).collect();
                (format!("n{n}"), Observation::from_values(&values))
            })
            .collect();
        let id = MetricId::new("cpu-stream", name, "own");
        let learned = learn(&id, Unit::BytesPerSec, Direction::HigherIsBetter, &observed, &params);
        for (node, verdict) in nodes.iter_mut().zip(&learned.verdicts) {
            let (component, source) = (Component::Memory, Source::Metric(id.clone()));
            if verdict.state > State::Pass {
                node.findings.push(Finding::new(&node.node, component, source, verdict.state, verdict.reason.clone()));
            } else {
                let state = verdict.state;
                node.measured.push(ComponentState { component, state, undecided: false, resolution: Some(0.05) });
            }
            node.verdicts.push(verdict.clone());
        }
        criteria.push(learned);
    }
    let why = "n8: cannot connect to 10.0.0.8:22: no route to host".to_owned();
    nodes.push(NodeFindings {
        node: "n8".to_owned(),
        findings: vec![Finding::new("n8", Component::Node, Source::Link, State::Unknown, why)],
        ..NodeFindings::default()
    });
    let info = RunInfo::new("r1", "cbd", Profile::Quick, 1_795_271_408_000, Some(1_795_271_500_000));
    let basis: Vec<Basis<'_>> = criteria
        .iter()
        .map(|learned| Basis { criterion: &learned.criterion, group: "", frozen: false, nodes: None })
        .collect();
    RunReport::new(info, &nodes, &basis)
}

#[cfg(test)]
mod tests {
    use muster_analysis::findings::{ComponentState, Finding, Source};
    use muster_wire::Component;

    use super::*;

    fn findings(states: &[(State, &str)]) -> NodeFindings {
        let finding =
            |(state, why): &(State, &str)| Finding::new("n1", Component::Node, Source::Link, *state, (*why).to_owned());
        let findings = states.iter().map(finding).collect();
        NodeFindings { node: "n1".to_owned(), findings, ..NodeFindings::default() }
    }

    fn one(findings: NodeFindings) -> NodeReport {
        let info = RunInfo::new("r", "cbd", Profile::Quick, 0, None);
        RunReport::new(info, &[findings], &[]).nodes.remove(0)
    }

    #[test]
    fn the_slow_node_fails_with_its_evidence_and_the_silent_one_is_unknown() {
        let report = sample();
        assert_eq!(report.summary, Summary { pass: 6, warn: 0, fail: 1, unknown: 1, undecided: 0 });
        let slow = &report.nodes[2];
        assert_eq!((slow.node.as_str(), slow.state), ("n3", State::Fail));
        assert!(slow.reasons[0].starts_with("n3 is 50 % slower than 6 peers (cpu-stream/"), "{:?}", slow.reasons);
        let verdict = &slow.verdicts[0];
        assert_eq!((verdict.of.metric.as_str(), verdict.of.engine.as_str()), ("cpu-stream/triad", "own"));
        assert!(verdict.similarity.is_some_and(|s| s < 0.95) && verdict.of.alpha == Some(0.95));
        assert_eq!(verdict.of.criterion.as_ref().map(|c| (c.n, c.status)), Some((7, Status::Ok)));
        assert!(report.nodes[0].reasons.is_empty());
        assert_eq!(report.criteria[0].defects.iter().map(|d| d.node.as_str()).collect::<Vec<_>>(), ["n3"]);
    }

    #[test]
    fn a_node_is_as_bad_as_its_worst_finding_and_says_that_first_and_remarks_last() {
        let node = one(findings(&[(State::Pass, "moved"), (State::Warn, "doubt"), (State::Fail, "broken")]));
        assert_eq!((node.state, node.reasons.join(", ")), (State::Fail, "broken, doubt, moved".to_owned()));
        assert_eq!(node.findings.len(), 2);
    }

    #[test]
    fn a_node_of_which_nothing_is_known_never_passes() {
        let node = one(findings(&[]));
        assert_eq!((node.state, node.reasons), (State::Unknown, vec!["n1: nothing was measured".to_owned()]));
        let node = one(findings(&[(State::NotApplicable, "no GPU")]));
        assert_eq!((node.state, node.reasons.len()), (State::NotApplicable, 1));
    }

    #[test]
    fn work_that_did_not_run_keeps_a_node_from_passing() {
        assert_eq!(one(findings(&[(State::Pass, "fine"), (State::NotRun, "busy")])).state, State::NotRun);
    }

    #[test]
    fn the_components_decide_and_the_worst_is_said_first() {
        let cpu = |state| ComponentState { component: Component::Cpu, state, undecided: false, resolution: Some(0.07) };
        let mut slow = findings(&[(State::Warn, "n1: disk is nearly full")]);
        let sentence = "n1: cpu-gemm/fp32 50 % below 6 peers".to_owned();
        slow.findings.push(Finding::new("n1", Component::Cpu, Source::Cores, State::Fail, sentence));
        let node = one(slow);
        assert_eq!(
            (node.state, node.reasons.join("; ")),
            (State::Fail, "n1: cpu-gemm/fp32 50 % below 6 peers; n1: disk is nearly full".to_owned())
        );
        // A verdict that is undecided where the component as a whole is vouched for does not keep a node from passing.
        let mut fine = NodeFindings { verdicts: sample_verdicts(State::Unknown), ..findings(&[]) };
        fine.measured.push(cpu(State::Pass));
        let node = one(fine.clone());
        assert_eq!((node.state, node.undecided, node.verdicts[0].state), (State::Pass, false, State::Unknown));
        assert_eq!(node.components[0].resolution, Some(0.07));
        fine.findings.push(Finding::new("n1", Component::Node, Source::Link, State::Unknown, "n1: link lost".into()));
        let node = one(fine);
        assert_eq!((node.state, node.undecided), (State::Unknown, true));
    }

    fn sample_verdicts(state: State) -> Vec<NodeVerdict> {
        let metric = MetricId::new("disk", "read", "own");
        let reason = "undecided".to_owned();
        vec![NodeVerdict { node: "n1".into(), metric, state, similarity: None, value: None, reason }]
    }

    #[test]
    fn escapes_from_a_node_do_not_reach_the_report() {
        let node = one(findings(&[(State::Fail, "n1: \u{1b}[2Jgone\u{7}")]));
        assert_eq!(node.reasons, ["n1: gone"]);
    }

    #[test]
    fn the_document_is_read_back_as_it_was_written() {
        let mut report = sample();
        report.demo = Some(Demo { slowed: vec!["n3".to_owned()] });
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<RunReport>(&text).unwrap(), report);
        assert!(!serde_json::to_string(&sample()).unwrap().contains("\"demo\""));
    }
}

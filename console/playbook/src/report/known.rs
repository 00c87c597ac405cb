//! What is known of a node over several runs: the newest answer to everything that it was ever asked.
//!
//! An answer stands until the same is measured again. A failure or a warning stands until a newer run has decided on what it
//! rests on: a visit that decides nothing takes nothing back. What a newer run could not decide is said all the same.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use muster_analysis::findings::{ComponentState, Finding, Source};
use muster_analysis::{NodeVerdict, State};
use muster_wire::{Component, MetricId, describe};

use super::{NodeFindings, rfc3339};
use crate::PAIRS;

/// The work whose results are one per core.
const CORES: &str = "cpu-core";

/// What one run says of a node.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// When the run ended or its last result came, milliseconds since 1970 UTC.
    pub at_ms: u64,
    /// What was found.
    pub findings: &'a NodeFindings,
    /// Benchmarks and collectors that gave an answer of whatever kind.
    pub works: &'a BTreeSet<String>,
}

/// A node over several runs.
#[derive(Clone, Debug, Default)]
pub struct Known<'a> {
    /// What stands of all of them.
    pub found: Cow<'a, NodeFindings>,
    /// Which run each of its verdicts is from, by its place; in their order.
    pub verdicts: Vec<usize>,
    /// What each of its verdicts was in the newest run before that; in their order, and empty where there is one run only.
    pub before: Vec<Option<Earlier>>,
}

/// What an older run says of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Earlier {
    /// Place of the run.
    pub place: usize,
    /// The verdict.
    pub state: State,
    /// Median of the node's sample.
    pub value: Option<f64>,
}

impl Known<'_> {
    /// What the verdict at `place` was in the newest run before its own.
    #[must_use]
    pub fn before(&self, place: usize) -> Option<Earlier> {
        self.before.get(place).copied().flatten()
    }
}

/// What is known of `node` from `runs`, the newest first.
#[must_use]
pub fn known<'a>(node: &str, runs: &[Told<'a>]) -> Known<'a> {
    if let [only] = runs {
        let verdicts = vec![0; only.findings.verdicts.len()];
        return Known { found: Cow::Borrowed(only.findings), verdicts, before: Vec::new() };
    }
    let past = Past { settled: runs.iter().map(settled).collect(), runs };
    let (verdicts, before): (Vec<_>, Vec<_>) = past.verdicts().into_iter().unzip();
    let findings = past.findings();
    let measured = past.components(&verdicts, &findings);
    let found = NodeFindings {
        node: node.to_owned(),
        findings: findings.into_iter().map(|(place, finding)| past.dated(place, finding)).collect(),
        measured,
        verdicts: verdicts.iter().map(|(_, verdict)| (*verdict).clone()).collect(),
        checks: past.checks(),
    };
    Known { found: Cow::Owned(found), verdicts: verdicts.iter().map(|(place, _)| *place).collect(), before }
}

/// Whether something was decided, one way or the other.
const fn decided(state: State) -> bool {
    !matches!(state, State::Unknown | State::NotRun)
}

/// Works of a run that it decided on.
#[must_use]
pub fn settled<'a>(told: &Told<'a>) -> BTreeSet<&'a str> {
    let open = told.findings.verdicts.iter().filter(|verdict| !decided(verdict.state));
    let open: BTreeSet<&str> = open.map(|verdict| verdict.metric.benchmark.as_str()).collect();
    let findings = told.findings.findings.iter().filter(|finding| !decided(finding.state));
    let doubtful: BTreeSet<&str> = findings.flat_map(|finding| finding.source.benchmarks()).collect();
    let works = told.works.iter().map(String::as_str);
    works.filter(|work| !open.contains(work) && !doubtful.contains(work)).collect()
}

struct Past<'a> {
    runs: &'a [Told<'a>],
    settled: Vec<BTreeSet<&'a str>>,
}

impl<'a> Past<'a> {
    /// The verdicts that stand, each with the one before it.
    fn verdicts(&self) -> Vec<((usize, &'a NodeVerdict), Option<Earlier>)> {
        let mut all: BTreeMap<&MetricId, Vec<(usize, &NodeVerdict)>> = BTreeMap::new();
        for (place, told) in self.runs.iter().enumerate() {
            for verdict in &told.findings.verdicts {
                all.entry(&verdict.metric).or_default().push((place, verdict));
            }
        }
        let told = |(place, verdict): &(usize, &NodeVerdict)| {
            verdict.state != State::NotRun && self.runs[*place].works.contains(&verdict.metric.benchmark)
        };
        let stands = |own: Vec<(usize, &'a NodeVerdict)>| {
            let newest = newest(&own, told, |verdict| verdict.state)?;
            let before = own.iter().find(|one| one.0 > newest.0 && told(one));
            let before = before.map(|(place, v)| Earlier { place: *place, state: v.state, value: v.value });
            Some((newest, before))
        };
        all.into_values().filter_map(stands).collect()
    }

    fn checks(&self) -> Vec<muster_analysis::checks::CheckResult> {
        let mut all: BTreeMap<&str, Vec<(usize, &muster_analysis::checks::CheckResult)>> = BTreeMap::new();
        for (place, told) in self.runs.iter().enumerate() {
            for result in &told.findings.checks {
                all.entry(result.check.id).or_default().push((place, result));
            }
        }
        let told = |(_, result): &(usize, &muster_analysis::checks::CheckResult)| result.found.state != State::NotRun;
        let newest = all.into_values().filter_map(|own| newest(&own, told, |result| result.found.state));
        newest.map(|(_, result)| result.clone()).collect()
    }

    /// Findings that no newer run has answered.
    fn findings(&self) -> Vec<(usize, &'a Finding)> {
        let runs = self.runs.iter().enumerate();
        let all = runs.flat_map(|(place, told)| told.findings.findings.iter().map(move |finding| (place, finding)));
        all.filter(|(place, finding)| self.stands(*place, finding)).collect()
    }

    fn stands(&self, place: usize, finding: &Finding) -> bool {
        let names = match &finding.source {
            // A later run in which the node answers is the answer.
            Source::Link => return self.runs[..place].iter().all(|told| told.works.is_empty()),
            Source::OutOfTurn => return self.settled[..place].iter().all(BTreeSet::is_empty),
            Source::Cores => vec![CORES],
            Source::Pairs => vec![PAIRS],
            Source::Metric(id) => return self.metrics_stand(place, finding, std::slice::from_ref(id)),
            Source::Metrics(ids) => return self.metrics_stand(place, finding, ids),
            source => source.benchmarks(),
        };
        let own = self.runs[place].works;
        // What a run did not get to is open only as long as no run has got to it.
        if finding.state == State::NotRun && names.iter().any(|name| !own.contains(*name)) {
            return names.iter().all(|name| self.runs.iter().all(|told| !told.works.contains(*name)));
        }
        let names = if names.is_empty() { own.iter().map(String::as_str).collect() } else { names };
        let again = |name: &&str| match decided(finding.state) {
            true => self.settled[..place].iter().any(|settled| settled.contains(name)),
            false => self.runs[..place].iter().any(|told| told.works.contains(*name)),
        };
        place == 0 || !names.iter().all(again)
    }

    /// Whether a newer run lacks an answer on some of the metrics that the finding rests on.
    fn metrics_stand(&self, place: usize, finding: &Finding, ids: &[MetricId]) -> bool {
        let told = |told: &Told<'a>, id: &MetricId| {
            let verdict = told.findings.verdicts.iter().find(|verdict| verdict.metric == *id);
            verdict.map(|verdict| verdict.state).filter(|state| *state != State::NotRun)
        };
        // What a run did not get to is open only as long as no run has got to it.
        if finding.state == State::NotRun && ids.iter().any(|id| told(&self.runs[place], id).is_none()) {
            return ids.iter().all(|id| self.runs.iter().all(|run| told(run, id).is_none()));
        }
        let again = |id: &MetricId| {
            let mut newer = self.runs[..place].iter().filter_map(|run| told(run, id));
            newer.any(|state| decided(state) || !decided(finding.state))
        };
        place == 0 || !ids.iter().all(again)
    }

    /// A component is known by its newest measurement; what an older one left open of it stays open as long as some metric
    /// is known from there alone.
    fn components(&self, verdicts: &[(usize, &NodeVerdict)], findings: &[(usize, &Finding)]) -> Vec<ComponentState> {
        let of = |verdict: &NodeVerdict| describe(&verdict.metric).component;
        let mut in_force: BTreeMap<(usize, Component), bool> = BTreeMap::new();
        for (place, verdict) in verdicts {
            *in_force.entry((*place, of(verdict))).or_default() |= !decided(verdict.state);
        }
        let judged = |told: &Told<'a>| told.findings.verdicts.iter().map(of).collect::<BTreeSet<Component>>();
        let mut known: BTreeMap<Component, ComponentState> = BTreeMap::new();
        for (place, told) in self.runs.iter().enumerate() {
            let judged = judged(told);
            for measured in &told.findings.measured {
                let state = || {
                    let own = findings.iter().filter(|(of, f)| *of == place && f.component == measured.component);
                    own.map(|(_, finding)| finding.state).max().unwrap_or(State::Pass)
                };
                let open = in_force.get(&(place, measured.component.clone()));
                match (known.get_mut(&measured.component), open) {
                    (Some(newer), Some(open)) => {
                        newer.state = newer.state.max(state());
                        newer.undecided |= open;
                        newer.resolution = newer.resolution.into_iter().chain(measured.resolution).reduce(f64::max);
                    }
                    (None, None) if judged.contains(&measured.component) => {}
                    (None, _) => {
                        known.insert(measured.component.clone(), measured.clone());
                    }
                    (Some(_), None) => {}
                }
            }
        }
        known.into_values().collect()
    }

    /// The finding, with the time of its run where that is not the newest.
    fn dated(&self, place: usize, finding: &Finding) -> Finding {
        let mut finding = finding.clone();
        if place > 0 && !finding.sentence.is_empty() {
            let at = rfc3339(self.runs[place].at_ms);
            let day_and_time = at.get(..16).unwrap_or(&at).replace('T', " ");
            finding.sentence = format!("{} (measured {day_and_time} UTC)", finding.sentence);
        }
        finding
    }
}

/// The newest answer in `all`; an undecided one does not clear an older failure or warning.
fn newest<'a, T>(
    all: &[(usize, &'a T)],
    told: impl Fn(&(usize, &'a T)) -> bool,
    state: impl Fn(&T) -> State,
) -> Option<(usize, &'a T)> {
    let newest = all.iter().find(|one| told(one)).or(all.first())?;
    let before = || all.iter().filter(|one| told(one)).find(|(_, one)| decided(state(one)));
    let alarm = || before().filter(|(_, one)| state(one) >= State::Warn);
    let stands = if decided(state(newest.1)) { None } else { alarm() };
    Some(*stands.unwrap_or(newest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that measured `metrics` with these states.
    fn run(metrics: &[(&str, State)]) -> (NodeFindings, BTreeSet<String>) {
        let mut found = NodeFindings { node: "n1".to_owned(), ..NodeFindings::default() };
        let mut works = BTreeSet::new();
        for (benchmark, state) in metrics {
            let id = MetricId::new(*benchmark, "a", "own");
            let component = describe(&id).component;
            let reason = format!("n1: {benchmark} is {state:?}");
            found.verdicts.push(NodeVerdict {
                node: "n1".into(),
                metric: id.clone(),
                state: *state,
                similarity: decided(*state).then_some(0.9),
                value: Some(1.0),
                reason: reason.clone(),
            });
            if *state > State::Pass {
                let source = Source::Metric(id);
                found.findings.push(Finding::new("n1", component.clone(), source, *state, reason));
            }
            found.measured.retain(|known| known.component != component);
            let (state, undecided) = (State::Pass, !decided(*state));
            found.measured.push(ComponentState { component, state, undecided, resolution: Some(0.05) });
            if *metrics.iter().find(|(name, _)| name == benchmark).map_or(&State::NotRun, |(_, s)| s) != State::NotRun {
                works.insert((*benchmark).to_owned());
            }
        }
        (found, works)
    }

    fn over(runs: &[(NodeFindings, BTreeSet<String>)]) -> Known<'static> {
        let told: Vec<Told<'_>> =
            runs.iter().map(|(findings, works)| Told { at_ms: 1_763_700_000_000, findings, works }).collect();
        let Known { found, verdicts, before } = known("n1", &told);
        Known { found: Cow::Owned(found.into_owned()), verdicts, before }
    }

    fn state(runs: &[(NodeFindings, BTreeSet<String>)]) -> State {
        over(runs).found.state().state
    }

    const ALL: [State; 5] = [State::Pass, State::NotRun, State::Unknown, State::Warn, State::Fail];

    #[test]
    fn one_run_says_what_it_says() {
        for (a, b) in ALL.into_iter().flat_map(|a| ALL.map(|b| (a, b))) {
            let one = run(&[("cpu-gemm", a), ("disk", b)]);
            assert_eq!(over(std::slice::from_ref(&one)).found.state(), one.0.state());
        }
    }

    #[test]
    fn measuring_one_thing_again_hides_no_other() {
        for older in ALL {
            for newer in ALL {
                let found = over(&[run(&[("cpu-gemm", newer)]), run(&[("cpu-gemm", State::Fail), ("disk", older)])]);
                let disk = found.found.verdicts.iter().position(|v| v.metric.benchmark == "disk").unwrap();
                assert_eq!((found.found.verdicts[disk].state, found.verdicts[disk]), (older, 1));
                let said = found.found.findings.iter().any(|f| f.sentence.contains("disk"));
                assert_eq!(said, older > State::Pass, "{older:?} {newer:?}");
            }
        }
    }

    #[test]
    fn what_one_work_measured_is_told_apart_by_its_metrics() {
        let id = |name: &str| MetricId::new("csv", name, "imported");
        let imported = |metrics: &[(&str, State)]| {
            let mut found = NodeFindings { node: "n1".to_owned(), ..NodeFindings::default() };
            for (name, state) in metrics {
                let reason = format!("n1: {name} is {state:?}");
                found.verdicts.push(NodeVerdict {
                    node: "n1".into(),
                    metric: id(name),
                    state: *state,
                    similarity: Some(0.9),
                    value: Some(1.0),
                    reason,
                });
            }
            let bad = metrics.iter().filter(|(_, state)| *state == State::Fail).map(|(name, _)| id(name));
            let source = Source::Metrics(bad.collect());
            if source != Source::Metrics(Vec::new()) {
                let component = describe(&id("a")).component;
                found.findings.push(Finding::new("n1", component, source, State::Fail, "n1: slow".to_owned()));
            }
            (found, BTreeSet::from(["csv".to_owned()]))
        };
        let older = || imported(&[("a", State::Fail), ("b", State::Fail)]);
        assert_eq!(state(&[imported(&[("c", State::Pass)]), older()]), State::Fail);
        assert_eq!(state(&[imported(&[("a", State::Pass)]), older()]), State::Fail, "b was not measured again");
        let repaired = over(&[imported(&[("a", State::Pass), ("b", State::Pass)]), older()]);
        assert!(repaired.found.findings.is_empty());
    }

    #[test]
    fn a_repair_that_is_measured_passes_and_one_that_is_not_decided_takes_nothing_back() {
        let broken = || run(&[("cpu-gemm", State::Fail), ("disk", State::Pass)]);
        assert_eq!(state(&[run(&[("cpu-gemm", State::Pass)]), broken()]), State::Pass);
        for open in [State::Unknown, State::NotRun] {
            let known = over(&[run(&[("cpu-gemm", open)]), broken()]);
            assert_eq!(known.found.state().state, State::Fail, "{open:?}");
            let gemm = &known.found.verdicts[0];
            assert_eq!((gemm.state, known.verdicts[0]), (State::Fail, 1));
        }
        let known = over(&[run(&[("cpu-gemm", State::Unknown)]), broken()]);
        assert!(known.found.state().undecided, "the newer doubt is told as well");
        let why = &known.found.findings.iter().find(|f| f.state == State::Fail).unwrap().sentence;
        assert_eq!(why, "n1: cpu-gemm is Fail (measured 2025-11-21 04:40 UTC)");
    }

    #[test]
    fn a_pass_that_could_not_be_confirmed_is_undecided_and_one_that_was_not_reached_stands() {
        let sound = || run(&[("cpu-gemm", State::Pass)]);
        assert_eq!(state(&[run(&[("cpu-gemm", State::Unknown)]), sound()]), State::Unknown);
        assert_eq!(state(&[run(&[("cpu-gemm", State::NotRun)]), sound()]), State::Pass);
    }

    #[test]
    fn nothing_older_is_better_than_what_a_newer_run_has_found() {
        for newer in ALL {
            for older in ALL {
                let runs = [run(&[("cpu-gemm", newer)]), run(&[("cpu-gemm", older)])];
                let both = state(&runs);
                if decided(newer) {
                    assert_eq!(both, state(&runs[..1]), "{newer:?} after {older:?}");
                } else {
                    assert!(both >= older.min(State::Pass), "{newer:?} after {older:?}");
                }
            }
        }
    }

    #[test]
    fn each_verdict_knows_the_newest_run_before_its_own_that_has_an_answer() {
        let gemm = |state| run(&[("cpu-gemm", state)]);
        let known = over(&[gemm(State::Fail), gemm(State::NotRun), run(&[("disk", State::Warn)]), gemm(State::Pass)]);
        let told: Vec<_> = known.found.verdicts.iter().zip(&known.verdicts).zip(&known.before).collect();
        assert_eq!(told.len(), 2);
        for ((verdict, place), before) in told {
            let expected = Earlier { place: 3, state: State::Pass, value: Some(1.0) };
            let (at, before_it) = if verdict.metric.benchmark == "disk" { (2, None) } else { (0, Some(expected)) };
            assert_eq!((*place, *before), (at, before_it), "{}", verdict.metric);
        }
        // A failure that a newer run could not decide on stands, and what was before it is older than the failure.
        let known = over(&[gemm(State::Unknown), gemm(State::Fail), gemm(State::Warn)]);
        assert_eq!((known.verdicts[0], known.before(0).unwrap().place), (1, 2));
        assert_eq!(over(&[gemm(State::Pass)]).before(0), None);
    }

    #[test]
    fn a_node_that_was_lost_and_answers_again_is_lost_no_more() {
        let mut lost = run(&[]);
        let sentence = "n1: link lost".to_owned();
        lost.0.findings.push(Finding::new("n1", Component::Node, Source::Link, State::Unknown, sentence));
        let sound = || run(&[("cpu-gemm", State::Pass)]);
        assert_eq!(state(&[sound(), lost.clone()]), State::Pass);
        assert_eq!(state(&[lost, sound()]), State::Unknown);
    }
}

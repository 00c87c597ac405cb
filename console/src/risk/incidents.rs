//! From verdicts to the incident log: what a finished run adds to it, and which of its own incidents it ends.

use std::collections::BTreeSet;

use muster_analysis::State;
use muster_analysis::risk::{Category, Incident};
use muster_playbook::report::{NodeReport, RunReport, VerdictReport};
use muster_run::{Run, Summary, visit_of};
use muster_store::Incident as Kept;
use muster_wire::{MetricId, Outcome, benchmark, describe};

/// First word of the source of incidents that muster recorded itself; the run's id follows.
pub const OWN: &str = "muster";
const MS_PER_H: f64 = 3_600_000.0;

/// Lines for the incident log after `run`, which has finished: one incident per failed node, unless the log knows it
/// from this run already; and the end of muster's own open incidents on nodes that passed what had failed.
#[must_use]
pub fn incidents_of(run: &Run, report: &RunReport, works: &[Summary], known: &[Kept]) -> Vec<Kept> {
    let source = format!("{OWN} {}", run.id);
    let mut lines = Vec::new();
    for node in &report.nodes {
        let of_node = || known.iter().filter(|i| i.node == node.node);
        match node.state {
            State::Fail if !of_node().any(|i| i.source == source) => lines.push(failure(run, node, works, &source)),
            State::Pass => {
                let ended_ms = run.ended_ms.unwrap_or(run.started_ms);
                let open = of_node().filter(|i| i.end_ms.is_none() && i.source.starts_with(OWN));
                let overcome = open.filter(|i| i.start_ms < ended_ms && i.source != source && covered(i, run));
                lines.extend(overcome.map(|i| Kept { end_ms: Some(ended_ms), ..i.clone() }));
            }
            _ => {}
        }
    }
    lines
}

fn covered(incident: &Kept, run: &Run) -> bool {
    incident.found_by.iter().flatten().all(|benchmark| run.plan.contains(benchmark))
}

fn failure(run: &Run, node: &NodeReport, works: &[Summary], source: &str) -> Kept {
    let benchmarks = finders(node, works);
    let category = category(node, &benchmarks);
    Kept {
        node: node.node.clone(),
        start_ms: run.started_ms,
        end_ms: None,
        category: category.name().to_owned(),
        reason: node.reasons.first().cloned().unwrap_or_default(),
        source: source.to_owned(),
        who: OWN.to_owned(),
        found_by: Some(benchmarks.into_iter().collect()),
    }
}

/// Benchmarks that speak against the node: those with a failed verdict or that broke there, else those that warn.
pub(super) fn finders(node: &NodeReport, works: &[Summary]) -> BTreeSet<String> {
    let with =
        |state: State| node.verdicts.iter().filter(move |v| v.state == state).map(|v| metric(v).benchmark.clone());
    let of_node = works.iter().filter(|w| w.node == node.node && benchmark(visit_of(&w.work).0).is_some());
    let broken = of_node.filter(|w| matches!(w.outcome, Outcome::Failed(_)));
    let found: BTreeSet<String> = with(State::Fail).chain(broken.map(|w| visit_of(&w.work).0.to_owned())).collect();
    if found.is_empty() { with(State::Warn).collect() } else { found }
}

fn metric(verdict: &VerdictReport) -> MetricId {
    let (benchmark, name) = verdict.of.metric.rsplit_once('/').unwrap_or((&verdict.of.metric, ""));
    MetricId::new(benchmark, name, verdict.of.engine.as_str())
}

/// What most of the metrics say that speak against the node, else the benchmarks that failed.
fn category(node: &NodeReport, benchmarks: &BTreeSet<String>) -> Category {
    let with = |state: State| {
        let verdicts = node.verdicts.iter().filter(move |v| v.state == state);
        most(verdicts.map(|v| describe(&metric(v)).category))
    };
    let failed = || most(benchmarks.iter().filter_map(|name| benchmark(name)).map(|entry| entry.category));
    with(State::Fail).or_else(failed).or_else(|| with(State::Warn)).unwrap_or(Category::Unknown)
}

/// The category that comes most often, the first in the list of all where several do.
fn most(categories: impl Iterator<Item = Category>) -> Option<Category> {
    let all: Vec<Category> = categories.filter(|category| *category != Category::Unknown).collect();
    let count = |category: Category| all.iter().filter(|one| **one == category).count();
    Category::ALL.into_iter().rev().filter(|one| count(*one) > 0).max_by_key(|one| count(*one))
}

/// The incident as the analysis reads it, in hours since 1970.
#[must_use]
pub fn known(kept: &Kept) -> Incident {
    Incident {
        node: kept.node.clone(),
        start_h: hours(kept.start_ms),
        end_h: kept.end_ms.map(hours),
        category: Category::named(&kept.category).unwrap_or(Category::Unknown),
        reason: kept.reason.clone(),
        source: kept.source.clone(),
        who: kept.who.clone(),
        found_by: kept.found_by.clone(),
    }
}

/// The incident as the log keeps it; `origin_h` is the hour since 1970 that its hour 0 means. None when it lies
/// before 1970.
#[must_use]
pub fn kept(incident: Incident, origin_h: f64) -> Option<Kept> {
    let ms = |h: f64| Some(((h + origin_h) * MS_PER_H).round()).filter(|ms| *ms >= 0.0).map(|ms| ms as u64);
    Some(Kept {
        node: incident.node,
        start_ms: ms(incident.start_h)?,
        end_ms: match incident.end_h {
            None => None,
            Some(end) => Some(ms(end)?),
        },
        category: incident.category.name().to_owned(),
        reason: incident.reason,
        source: incident.source,
        who: incident.who,
        found_by: incident.found_by,
    })
}

/// Hours since 1970.
#[must_use]
pub fn hours(ms: u64) -> f64 {
    ms as f64 / MS_PER_H
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use muster_playbook::report::{MetricReport, RunInfo, VerdictReport};
    use muster_run::RunState;
    use muster_wire::Profile;

    fn run(id: &str, started_ms: u64) -> Run {
        Run {
            id: id.into(),
            playbook: "demo".into(),
            profile: Profile::Smoke,
            started_ms,
            ended_ms: Some(started_ms + 10),
            nodes: vec!["n1".into(), "n2".into()],
            plan: vec!["disk".into(), "cpu-gemm".into()],
            state: RunState::Finished,
        }
    }

    fn report(run: &Run, states: [State; 2]) -> RunReport {
        let info = RunInfo::new(&run.id, &run.playbook, run.profile, run.started_ms, run.ended_ms);
        let mut report = RunReport::new(info, &[], &[]);
        for (node, state) in run.nodes.iter().zip(states) {
            let verdict = |metric: &str, state| VerdictReport {
                of: Arc::new(MetricReport {
                    metric: metric.into(),
                    unit: None,
                    engine: "own".into(),
                    alpha: None,
                    tau: None,
                    criterion: None,
                }),
                state,
                similarity: None,
                value: None,
            };
            let verdicts = vec![verdict("cpu-gemm/fp64", State::Warn), verdict("disk/seq-read", state)];
            let reasons = vec!["it is slow".to_owned()];
            let (undecided, components, findings, checks) = (false, Vec::new(), Vec::new(), Vec::new());
            let node = node.clone();
            report.nodes.push(NodeReport { node, state, undecided, reasons, components, findings, verdicts, checks });
        }
        report
    }

    #[test]
    fn a_failure_is_told_once_per_run_and_ended_by_a_pass_of_the_same_benchmarks() {
        let first = run("r1", 1000);
        let lines = incidents_of(&first, &report(&first, [State::Fail, State::Pass]), &[], &[]);
        assert_eq!(lines.len(), 1);
        let line = &lines[0];
        assert_eq!((line.node.as_str(), line.start_ms, line.category.as_str()), ("n1", 1000, "disk"));
        assert_eq!((line.source.as_str(), line.found_by.clone()), ("muster r1", Some(vec!["disk".to_owned()])));
        assert!(incidents_of(&first, &report(&first, [State::Fail, State::Pass]), &[], &lines).is_empty());
        let second = run("r2", 2000);
        let passed = report(&second, [State::Pass, State::Unknown]);
        let narrower = Run { plan: vec!["cpu-gemm".into()], ..second.clone() };
        assert!(incidents_of(&narrower, &passed, &[], &lines).is_empty(), "the failed benchmark did not run");
        let ended = incidents_of(&second, &passed, &[], &lines);
        assert_eq!(ended, [Kept { end_ms: Some(2010), ..line.clone() }]);
        let foreign = [Kept { source: "operator".into(), ..line.clone() }];
        assert!(incidents_of(&second, &passed, &[], &foreign).is_empty(), "a person's word stands");
    }

    #[test]
    fn the_log_keeps_what_the_analysis_knows() {
        let incident = Incident { end_h: Some(2.0), ..Incident::new("n1", 1.0, None, Category::NvLink) };
        let line = kept(incident.clone(), 480_000.0).unwrap();
        let back = known(&line);
        assert_eq!((back.start_h, back.end_h, back.category), (480_001.0, Some(480_002.0), Category::NvLink));
        assert_eq!(kept(incident, -2.0), None);
    }
}

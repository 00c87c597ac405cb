//! From verdicts to the incident log: what a finished run adds to it, and which of its own incidents it ends.

use std::collections::BTreeSet;

use muster_analysis::State;
use muster_analysis::checks::{Check, check};
use muster_analysis::risk::import::guess_category;
use muster_analysis::risk::{Category, Incident};
use muster_logs::Category as Cause;
use muster_playbook::PAIRS;
use muster_playbook::report::{FindingReport, NodeReport, RunReport, VerdictReport};
use muster_run::{Run, Summary, visit_of};
use muster_store::Incident as Kept;
use muster_triage::report::{Kind as Suspected, Report, Suspect};
use muster_wire::{Component, MetricId, Outcome, benchmark, clean, describe};

/// First word of the source of incidents that muster recorded itself; the run's id follows.
pub const OWN: &str = "muster";
/// Begins the names of health checks among what found an incident.
const CHECK: &str = "check/";
/// The benchmark in which a GPU is seen not to be what it was.
const GPU_MAP: &str = "gpu-memory-map";
/// Longest reason of an incident, bytes.
const REASON: usize = 1000;
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
                let overcome = open.filter(|i| i.start_ms < ended_ms && i.source != source && covered(i, run, node));
                lines.extend(overcome.map(|i| Kept { end_ms: Some(ended_ms), ..i.clone() }));
            }
            _ => {}
        }
    }
    lines
}

/// Whether all that found the incident was looked at again: `node` passed `run`. What nobody can look at again, a person closes.
fn covered(incident: &Kept, run: &Run, node: &NodeReport) -> bool {
    let passed = |finder: &String| match finder.strip_prefix(CHECK) {
        Some(id) => node.checks.iter().any(|check| check.id == id && check.state == State::Pass),
        None => run.plan.contains(finder),
    };
    incident.found_by.as_ref().is_some_and(|finders| !finders.is_empty() && finders.iter().all(passed))
}

fn failure(run: &Run, node: &NodeReport, works: &[Summary], source: &str) -> Kept {
    let benchmarks = finders(node, works);
    let category = category(node, &benchmarks);
    let others = node.findings.iter().filter(|finding| finding.state == State::Fail).flat_map(other_finders);
    Kept {
        node: node.node.clone(),
        start_ms: run.started_ms,
        end_ms: None,
        category: category.name().to_owned(),
        reason: node.reasons.first().cloned().unwrap_or_default(),
        source: source.to_owned(),
        who: OWN.to_owned(),
        found_by: Some(benchmarks.into_iter().chain(others).collect::<BTreeSet<String>>().into_iter().collect()),
    }
}

/// Benchmarks that speak against the node: those with a failed verdict or that broke there, else, where nothing else fails it, those
/// that warn.
pub(super) fn finders(node: &NodeReport, works: &[Summary]) -> BTreeSet<String> {
    let with =
        |state: State| node.verdicts.iter().filter(move |v| v.state == state).map(|v| metric(v).benchmark.clone());
    let of_node = works.iter().filter(|w| w.node == node.node && benchmark(visit_of(&w.work).0).is_some());
    let broken = of_node.filter(|w| matches!(w.outcome, Outcome::Failed(_)));
    let found: BTreeSet<String> = with(State::Fail).chain(broken.map(|w| visit_of(&w.work).0.to_owned())).collect();
    let otherwise = node.findings.iter().any(|f| f.state == State::Fail && !other_finders(f).is_empty());
    if found.is_empty() && !otherwise { with(State::Warn).collect() } else { found }
}

/// What a finding that is no verdict on a metric was found by.
fn other_finders(finding: &FindingReport) -> Vec<String> {
    match finding.source.as_str() {
        "check" => finding.of.iter().map(|id| format!("{CHECK}{id}")).collect(),
        "benchmark" | "digests" => finding.of.clone(),
        "cores" => vec![muster_analysis::records::cores::WORK.to_owned()],
        "gpu-history" => vec![GPU_MAP.to_owned()],
        "pairs" => vec![PAIRS.to_owned()],
        // Of a node that says what it was not asked for, no later word is believed.
        source @ "out-of-turn" => vec![source.to_owned()],
        _ => Vec::new(),
    }
}

fn metric(verdict: &VerdictReport) -> MetricId {
    let (benchmark, name) = verdict.of.metric.rsplit_once('/').unwrap_or((&verdict.of.metric, ""));
    MetricId::new(benchmark, name, verdict.of.engine.as_str())
}

/// What most of what speaks against the node says: metrics and checks that fail and other findings, else the benchmarks that failed, else
/// the metrics that warn.
fn category(node: &NodeReport, benchmarks: &BTreeSet<String>) -> Category {
    let with = |state: State| {
        let verdicts = node.verdicts.iter().filter(move |v| v.state == state);
        verdicts.map(|v| describe(&metric(v)).category)
    };
    let found = node.findings.iter().filter(|finding| finding.state == State::Fail).filter_map(of_finding);
    let failed = || most(benchmarks.iter().filter_map(|name| benchmark(name)).map(|entry| entry.category));
    most(with(State::Fail).chain(found))
        .or_else(failed)
        .or_else(|| most(with(State::Warn)))
        .unwrap_or(Category::Unknown)
}

/// What a finding that is no verdict on a metric says is broken.
fn of_finding(finding: &FindingReport) -> Option<Category> {
    let known = |of: &String| match finding.source.as_str() {
        "check" => check(of).map(Check::category),
        "benchmark" | "digests" => benchmark(of).map(|entry| entry.category),
        _ => None,
    };
    let component = || finding.component.parse::<Component>().ok().map(|component| Category::of(component.kind()));
    (finding.source != "metric").then(|| finding.of.iter().find_map(known).or_else(component))?
}

/// The category that comes most often, the first in the list of all where several do.
fn most(categories: impl Iterator<Item = Category>) -> Option<Category> {
    let all: Vec<Category> = categories.filter(|category| *category != Category::Unknown).collect();
    let count = |category: Category| all.iter().filter(|one| **one == category).count();
    Category::ALL.into_iter().rev().filter(|one| count(*one) > 0).max_by_key(|one| count(*one))
}

/// Source of incidents that a person confirmed in triage.
pub const TRIAGE: &str = "triage";

/// The incident of a root cause that a person confirmed: on the suspect's node, since its first evidence with a time, else since the
/// case's last step, else since `now_ms`. None for a suspect that names no machine, and where the program is at fault or nobody.
#[must_use]
pub fn of_triage(
    report: &Report,
    suspect: &Suspect,
    (last_step_s, now_ms): (Option<f64>, u64),
    who: &str,
) -> Option<Kept> {
    if matches!(report.category, Cause::UserBug | Cause::None) {
        return None;
    }
    let first_s = suspect.evidence.iter().filter_map(|line| line.at).min_by(f64::total_cmp).or(last_step_s);
    let start_ms = first_s.map_or(now_ms, |at_s| ((at_s.max(0.0) * 1e3).round() as u64).min(now_ms));
    Some(Kept {
        node: suspect.node.clone()?,
        start_ms,
        end_ms: None,
        category: of_cause(report.category, suspect).name().to_owned(),
        reason: clean(&suspect.sentence, REASON),
        source: TRIAGE.to_owned(),
        who: who.to_owned(),
        // No benchmark has shown it.
        found_by: None,
    })
}

/// What is broken by a root cause: by the part that is suspected, else by what went wrong, else by the words that are said of it.
fn of_cause(cause: Cause, suspect: &Suspect) -> Category {
    let nvlink = || suspect.element.as_deref().is_some_and(|element| element.starts_with("nvlink"));
    match suspect.kind {
        Suspected::Gpu if nvlink() => Category::NvLink,
        Suspected::Gpu => Category::Gpu,
        Suspected::Nic | Suspected::Link | Suspected::Switch => Category::Network,
        Suspected::Storage => Category::Disk,
        _ => match cause {
            Cause::HangInNetwork | Cause::SlowLink => Category::Network,
            Cause::HangNotStarted | Cause::SlowGpu => Category::Gpu,
            Cause::HangNotLaunched | Cause::ProcessExited => Category::Software,
            _ => guess_category(&suspect.sentence),
        },
    }
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

    use muster_analysis::checks::Severity;
    use muster_analysis::findings::{Finding, Source};
    use muster_playbook::report::{CheckReport, MetricReport, RunInfo, VerdictReport};
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

    /// A node with a metric of `metric` that fails, where one is named, and these other findings and answers of checks.
    fn failed(metric: Option<&str>, found: &[(&str, &str, &str)], checks: &[(&str, State)]) -> NodeReport {
        let run = run("r", 1000);
        let mut node = report(&run, [State::Fail, State::Pass]).nodes.remove(0);
        match metric {
            None => node.verdicts.retain(|v| v.state == State::Warn),
            Some(metric) => Arc::make_mut(&mut node.verdicts[1].of).metric = metric.into(),
        }
        let finding = |(source, of, component): &(&str, &str, &str)| FindingReport {
            source: (*source).to_owned(),
            of: Some((*of).to_owned()).filter(|of| !of.is_empty()).into_iter().collect(),
            component: (*component).to_owned(),
            ..FindingReport::from(&Finding::new("n1", Component::Node, Source::Link, State::Fail, String::new()))
        };
        node.findings = found.iter().map(finding).collect();
        let check = |(id, state): &(&str, State)| CheckReport {
            id: (*id).to_owned(),
            severity: Severity::Critical,
            state: *state,
            said: String::new(),
            next: String::new(),
        };
        node.checks = checks.iter().map(check).collect();
        node
    }

    #[test]
    fn what_a_check_found_is_over_only_when_that_check_passes_again() {
        let first = run("r1", 1000);
        let broken = failed(None, &[("check", "gpu-ecc", "gpus")], &[("gpu-ecc", State::Fail)]);
        let line = failure(&first, &broken, &[], "muster r1");
        assert_eq!((line.category.as_str(), line.found_by.clone()), ("gpu", Some(vec!["check/gpu-ecc".to_owned()])));
        let second = run("r2", 2000);
        let passed = |checks: &[(&str, State)]| {
            let mut all = report(&second, [State::Pass, State::Pass]);
            all.nodes[0].checks = failed(None, &[], checks).checks;
            incidents_of(&second, &all, &[], std::slice::from_ref(&line)).len()
        };
        assert_eq!(passed(&[]), 0, "the check was not asked");
        assert_eq!(passed(&[("gpu-ecc", State::NotRun), ("xid", State::Pass)]), 0);
        assert_eq!(passed(&[("gpu-ecc", State::NotApplicable)]), 0);
        assert_eq!(passed(&[("gpu-ecc", State::Pass)]), 1);
        let nobody = Kept { found_by: Some(Vec::new()), ..line.clone() };
        let all = report(&second, [State::Pass, State::Pass]);
        assert!(incidents_of(&second, &all, &[], &[nobody]).is_empty(), "nobody knows what would have to pass");
    }

    #[test]
    fn benchmarks_and_checks_that_found_it_must_all_pass_and_a_liar_is_let_go_by_a_person() {
        let found = [("check", "xid", "gpus"), ("digests", "cpu-gemm", "cpu"), ("out-of-turn", "", "node")];
        let node = failed(Some("disk/seq-read"), &found, &[("xid", State::Fail)]);
        let mut line = failure(&run("r1", 1000), &node, &[], "muster r1");
        let all = ["check/xid", "cpu-gemm", "disk", "out-of-turn"];
        assert_eq!(line.found_by.as_deref().unwrap(), all);
        let second = run("r2", 2000);
        let mut passed = report(&second, [State::Pass, State::Pass]);
        passed.nodes[0].checks = failed(None, &[], &[("xid", State::Pass)]).checks;
        assert!(incidents_of(&second, &passed, &[], std::slice::from_ref(&line)).is_empty());
        line.found_by = Some(all[..3].iter().map(|&finder| finder.to_owned()).collect());
        assert_eq!(incidents_of(&second, &passed, &[], &[line]).len(), 1);
    }

    #[test]
    fn every_category_comes_from_the_catalogue_of_what_failed() {
        let check = |id: &'static str| failed(None, &[("check", id, "node")], &[]);
        let metric = |name: &'static str| failed(Some(name), &[], &[]);
        for (node, category) in [
            (metric("gpu-stream/copy:3"), "gpu"),
            (metric("gpu-copy-bw/host-to-device:0"), "pcie"),
            (metric("gpu-peer-bw/gpu7-to-gpu2"), "nvlink"),
            (metric("net-loopback/rtt"), "network"),
            (metric("cpu-stream/triad-1t"), "cpu_memory"),
            (metric("disk/rand-read-p99.9"), "disk"),
            // What warns beside it says why a whole step is slow.
            (metric("train-lstm/lstm_fp32_train_step_time"), "cpu_memory"),
            (check("gpu-ecc"), "gpu"),
            (check("gpu-nvlink"), "nvlink"),
            (check("pcie-uncorrected"), "pcie"),
            (check("ib-port"), "network"),
            (check("machine-check"), "cpu_memory"),
            (check("nvme-timeout"), "disk"),
            (check("gpu-temperature"), "power_thermal"),
            (check("kernel-oops"), "software"),
            (failed(None, &[("cores", "", "core:3")], &[]), "cpu_memory"),
            (failed(None, &[("gpu-history", "", "gpu:3")], &[]), "gpu"),
            (failed(None, &[("pairs", "", "nic")], &[]), "network"),
            (failed(None, &[("digests", "sm-sdc", "gpu:1")], &[]), "gpu"),
            // Two against one.
            (failed(Some("disk/x"), &[("check", "ib-port", "nic"), ("check", "nic-link", "nic")], &[]), "network"),
        ] {
            let line = failure(&run("r", 1), &node, &[], "muster r");
            assert_eq!(line.category, category, "{:?} {:?}", node.findings, node.verdicts);
        }
    }

    #[test]
    fn the_log_keeps_what_the_analysis_knows() {
        let incident = Incident { end_h: Some(2.0), ..Incident::new("n1", 1.0, None, Category::NvLink) };
        let line = kept(incident.clone(), 480_000.0).unwrap();
        let back = known(&line);
        assert_eq!((back.start_h, back.end_h, back.category), (480_001.0, Some(480_002.0), Category::NvLink));
        assert_eq!(kept(incident, -2.0), None);
    }

    #[test]
    fn a_confirmed_cause_is_an_incident_of_its_part_and_a_program_error_is_none() {
        let suspect = |kind, element: Option<&str>, sentence: &str| Suspect {
            kind,
            node: Some("n1".into()),
            rank: Some(3),
            gpu: Some(1),
            element: element.map(str::to_owned),
            cause: muster_logs::fault::Cause::default(),
            confidence: 0.9,
            sentence: sentence.into(),
            evidence: Vec::new(),
        };
        let report = |category| {
            let case = muster_triage::case::Case::default();
            let rules = muster_logs::Rules::built_in().unwrap();
            Report { category, ..muster_triage::diagnose(&case, &rules) }
        };
        for (cause, suspect, category) in [
            (Cause::HardwareCritical, suspect(Suspected::Gpu, None, ""), Category::Gpu),
            (Cause::HardwareCritical, suspect(Suspected::Gpu, Some("nvlink 3"), ""), Category::NvLink),
            (
                Cause::HardwareCritical,
                suspect(Suspected::Node, None, "n1: a power supply failed"),
                Category::PowerThermal,
            ),
            (Cause::SlowLink, suspect(Suspected::Link, Some("mlx5_0"), ""), Category::Network),
            (Cause::HangInNetwork, suspect(Suspected::Node, None, ""), Category::Network),
            (Cause::HangNotStarted, suspect(Suspected::Rank, None, ""), Category::Gpu),
            (Cause::ProcessExited, suspect(Suspected::Rank, None, ""), Category::Software),
            (Cause::Storage, suspect(Suspected::Storage, None, ""), Category::Disk),
        ] {
            let line = of_triage(&report(cause), &suspect, (Some(7.0), 9_000), "me").unwrap();
            assert_eq!((line.category.as_str(), line.start_ms), (category.name(), 7_000), "{cause:?}");
            assert_eq!((line.source.as_str(), line.who.as_str(), line.found_by), ("triage", "me", None));
        }
        let rank = suspect(Suspected::Rank, None, "");
        assert_eq!(of_triage(&report(Cause::UserBug), &rank, (None, 0), ""), None);
        assert_eq!(of_triage(&report(Cause::None), &rank, (None, 0), ""), None);
        let nowhere = Suspect { node: None, ..rank.clone() };
        assert_eq!(of_triage(&report(Cause::SlowGpu), &nowhere, (None, 0), ""), None);
        // A clock of a node that is ahead begins no incident in the future.
        assert_eq!(of_triage(&report(Cause::SlowGpu), &rank, (Some(1e9), 5_000), "").unwrap().start_ms, 5_000);
    }
}

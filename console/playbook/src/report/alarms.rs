//! Whether so many nodes fail one benchmark or check that it is suspected before the nodes.

use std::collections::{BTreeMap, BTreeSet};

use muster_analysis::State;
use muster_analysis::checks::Severity;
use muster_analysis::history::{Breaker, Outcomes, Suspicion};

use super::{NodeReport, RunReport};

impl RunReport {
    /// How the nodes answered each benchmark and check.
    #[must_use]
    pub fn outcomes(&self) -> BTreeMap<&str, Outcomes> {
        outcomes(&self.nodes)
    }

    /// Raises the alarms anew, with what is `usual` in earlier runs.
    pub fn weigh(&mut self, usual: &BTreeMap<String, Outcomes>) {
        self.alarms = alarms(&self.nodes, usual);
    }
}

/// One sentence for each benchmark and check that is suspected; `usual` are the answers of an ordinary run, where known.
pub(super) fn alarms(nodes: &[NodeReport], usual: &BTreeMap<String, Outcomes>) -> Vec<String> {
    let breaker = Breaker::default();
    let weigh = |(name, now): (&str, Outcomes)| breaker.weigh(name, now, usual.get(name).copied());
    let outcomes = outcomes(nodes);
    let suspected: BTreeMap<&str, String> = outcomes
        .into_iter()
        .map(|of| (of.0, weigh(of)))
        .filter(|(_, alarm)| alarm.suspicion == Suspicion::Check)
        .map(|(name, alarm)| (name, alarm.reason))
        .collect();
    let everywhere =
        everywhere(nodes, breaker.nodes).into_iter().filter(|(path, _)| !suspected.contains_key(benchmark(path)));
    let everywhere: Vec<String> = everywhere.map(|(_, said)| said).collect();
    suspected.into_values().chain(everywhere).collect()
}

/// Metrics in which every node that has them is slower than what is frozen: nobody fails for that, and it is the first thing to
/// know of the run.
fn everywhere(nodes: &[NodeReport], at_least: usize) -> BTreeMap<&str, String> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for node in nodes {
        let slow: BTreeSet<&String> = node
            .findings
            .iter()
            .filter(|finding| finding.state >= State::Warn)
            .flat_map(|finding| &finding.of)
            .collect();
        for verdict in node.verdicts.iter().filter(|verdict| verdict.value.is_some()) {
            let (measured, found) = counts.entry(&verdict.of.metric).or_default();
            *measured += 1;
            *found += usize::from(slow.contains(&verdict.of.metric));
        }
    }
    let all = counts.into_iter().filter(|(_, (measured, found))| measured == found && *found >= at_least);
    let said = |(path, (nodes, _))| {
        (
            path,
            format!("{path} is slower than usual on all {nodes} nodes: suspect the check or the last roll-out first"),
        )
    };
    all.map(said).collect()
}

fn benchmark(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(benchmark, _)| benchmark)
}

fn outcomes(nodes: &[NodeReport]) -> BTreeMap<&str, Outcomes> {
    let mut outcomes: BTreeMap<&str, Outcomes> = BTreeMap::new();
    for node in nodes {
        for (name, state) in worst(node) {
            let outcomes = outcomes.entry(name).or_default();
            *match state {
                State::Fail => &mut outcomes.failed,
                State::Pass | State::Warn => &mut outcomes.passed,
                State::Unknown | State::NotRun | State::NotApplicable => &mut outcomes.silent,
            } += 1;
        }
    }
    outcomes
}

/// The worst that one node says of each benchmark and check.
fn worst(node: &NodeReport) -> BTreeMap<&str, State> {
    let mut worst: BTreeMap<&str, State> = BTreeMap::new();
    for verdict in &node.verdicts {
        let state = worst.entry(benchmark(&verdict.of.metric)).or_insert(verdict.state);
        *state = (*state).max(verdict.state);
    }
    for check in &node.checks {
        // A check that can only warn says so as loudly as it can.
        let bad = if check.severity == Severity::Warn { State::Warn } else { State::Fail };
        worst.insert(&check.id, if check.state == bad { State::Fail } else { check.state });
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::FindingReport;
    use crate::report::run::sample;

    #[test]
    fn a_benchmark_that_many_nodes_fail_is_suspected_before_the_nodes_unless_that_is_usual() {
        let mut report = sample();
        assert_eq!(report.alarms, [""; 0]);
        report.nodes[..3].iter_mut().for_each(|node| node.verdicts[0].state = State::Fail);
        report.weigh(&BTreeMap::new());
        let said = &report.alarms;
        assert!(said[0].starts_with("cpu-stream fails on 3 of 7 nodes (43 %): suspect the check or"), "{said:?}");
        let mut usual = |failed| {
            let outcomes = Outcomes { failed, passed: 100 - failed, silent: 0 };
            report.weigh(&BTreeMap::from([("cpu-stream".to_owned(), outcomes)]));
            report.alarms.join("; ")
        };
        assert!(usual(10).starts_with("cpu-stream fails on 3 of 7 nodes (43 %, usually 10.0 %)"), "{}", usual(10));
        assert_eq!(usual(11), "");
    }

    #[test]
    fn a_metric_that_is_slower_on_every_node_than_what_is_frozen_is_an_alarm_though_nobody_fails() {
        let mut report = sample();
        let slow = |state| FindingReport { state, ..report.nodes[2].findings[0].clone() };
        let (slow, path) = (slow(State::Warn), slow(State::Warn).of[0].clone());
        for node in &mut report.nodes[..7] {
            node.verdicts.iter_mut().for_each(|verdict| verdict.state = State::Pass);
            node.findings = vec![slow.clone()];
        }
        report.weigh(&BTreeMap::new());
        assert_eq!(
            report.alarms,
            [format!("{path} is slower than usual on all 7 nodes: suspect the check or the last roll-out first")]
        );
        report.nodes[0].findings.clear();
        report.weigh(&BTreeMap::new());
        assert_eq!(report.alarms, [""; 0]);
    }
}

//! Whether so many nodes fail one benchmark or check that it is suspected before the nodes.

use std::collections::BTreeMap;

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
    let weighed = outcomes(nodes).into_iter().map(weigh);
    weighed.filter(|alarm| alarm.suspicion == Suspicion::Check).map(|alarm| alarm.reason).collect()
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
        let benchmark = verdict.metric.rsplit_once('/').map_or(verdict.metric.as_str(), |(benchmark, _)| benchmark);
        let state = worst.entry(benchmark).or_insert(verdict.state);
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
}

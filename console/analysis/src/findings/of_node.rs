//! Everything that was found out about one node, and the state that it comes to.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use muster_wire::{clean, limits};

use super::names::some;
use super::{ComponentState, Finding, NodeState, check_findings, checked_components, decide_node};
use crate::checks::CheckResult;
use crate::{NodeVerdict, State};

/// Everything found out about one node.
#[derive(Clone, Debug, Default)]
pub struct NodeFindings {
    /// Node name.
    pub node: String,
    /// What was found, but for what its checks say.
    pub findings: Vec<Finding>,
    /// Components that were measured, and what their measurements vouch for.
    pub measured: Vec<ComponentState>,
    /// One per metric.
    pub verdicts: Vec<NodeVerdict>,
    /// One per check that was asked for.
    pub checks: Vec<CheckResult>,
}

impl NodeFindings {
    /// All findings, those of checks among them, worst first.
    #[must_use]
    pub fn all(&self) -> Vec<Finding> {
        let lost = self.findings.iter().any(|finding| finding.state >= State::Unknown);
        let mut all = self.findings.clone();
        all.extend(check_findings(&self.node, &self.checks, lost));
        all.sort_by_key(|finding| Reverse(finding.state));
        all
    }

    /// The node's state, decided from everything found out about it.
    #[must_use]
    pub fn state(&self) -> NodeState {
        let mut measured = self.measured.clone();
        for checked in checked_components(&self.checks) {
            match measured.iter_mut().find(|known| known.component == checked.component) {
                Some(known) => known.state = known.state.max(checked.state),
                None => measured.push(checked),
            }
        }
        decide_node(measured, &self.all())
    }

    /// Why the node is in its state, worst first, one sentence each, without control characters. `all` are its findings, of
    /// which `decided` is made.
    #[must_use]
    pub fn reasons(&self, all: &[Finding], decided: &NodeState) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let mut reasons: Vec<String> = all
            .iter()
            .filter(|finding| finding.state != State::NotApplicable)
            .map(|finding| clean(&finding.sentence, limits::TEXT_BYTES))
            .filter(|why| !why.is_empty() && seen.insert(why.clone()))
            .collect();
        let node = clean(&self.node, limits::TEXT_BYTES);
        if decided.components.is_empty() {
            reasons.push(format!("{node}: nothing was measured"));
        } else if decided.state == State::NotApplicable {
            reasons.push(format!("{node}: nothing that was asked for applies to it"));
        } else if decided.state > State::Pass && !all.iter().any(speaks) {
            reasons.insert(0, format!("{node}: {}", unsaid(decided)));
        }
        reasons
    }
}

/// Whether a finding says why its node does not pass.
fn speaks(finding: &Finding) -> bool {
    finding.state > State::Pass && !finding.sentence.is_empty()
}

/// Why a node does not pass of which no finding says it: what has no answer.
fn unsaid(decided: &NodeState) -> String {
    let open = decided.components.iter().filter(|known| known.state > State::Pass);
    let names: Vec<String> = open.map(|known| clean(&known.component.to_string(), limits::NAME_BYTES)).collect();
    let what = if decided.state == State::NotRun { "measured" } else { "decided" };
    format!("{} not {what}", some(&names.iter().map(String::as_str).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use muster_wire::Component;

    use super::*;

    #[test]
    fn a_node_that_does_not_pass_always_says_why() {
        let known = |component, state| ComponentState { component, state, undecided: false, resolution: None };
        let node = NodeFindings {
            node: "n03".to_owned(),
            measured: vec![known(Component::Gpu(1), State::Pass), known(Component::Gpu(2), State::NotRun)],
            ..NodeFindings::default()
        };
        let decided = node.state();
        assert_eq!(decided.state, State::NotRun);
        assert_eq!(node.reasons(&node.all(), &decided), ["n03: gpu:2 not measured"]);
    }
}

//! Everything that was found out about one node, and the state that it comes to.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use muster_wire::{clean, limits};

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
        }
        reasons
    }
}

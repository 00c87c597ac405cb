//! Every check that was asked for, on every node.

use std::collections::BTreeMap;

use super::check::Ask;
use super::{Check, CheckResult, Found, NodeFacts, Policy, compare};

/// What the console itself measured of a node: how far its clock is from its own.
pub const CLOCK: &str = "clock";

/// The answers of `checks` per node, in the order of `nodes`; within a node in the order of `checks`.
#[must_use]
pub fn evaluate(checks: &[&'static Check], nodes: &[NodeFacts<'_>], policy: &Policy) -> Vec<Vec<CheckResult>> {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, node) in nodes.iter().enumerate() {
        groups.entry(node.group).or_default().push(place);
    }
    let mut results: Vec<Vec<CheckResult>> = nodes.iter().map(|_| Vec::with_capacity(checks.len())).collect();
    for check in checks {
        for places in groups.values() {
            let group: Vec<&NodeFacts<'_>> = places.iter().map(|place| &nodes[*place]).collect();
            for (place, found) in places.iter().zip(ask(check, &group, policy)) {
                results[*place].push(CheckResult::new(check, found, policy.demands(check.id)));
            }
        }
    }
    results
}

fn ask(check: &Check, group: &[&NodeFacts<'_>], policy: &Policy) -> Vec<Found> {
    match &check.ask {
        Ask::Node(ask) => group.iter().map(|node| ask(node, policy).unwrap_or_else(Found::from)).collect(),
        Ask::Equal(same) => compare::equal(group, same, policy),
        Ask::Count(count) => compare::count(group, count, policy),
        Ask::Group(ask) => ask(group, policy),
    }
}

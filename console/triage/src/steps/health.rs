//! Does a node of the job fail a health check that the others pass? Last, since a machine can live with a fault for years.

use super::{Draft, Verdict, found, nothing, upper};
use crate::facts::Facts;
use crate::report::{Done, Kind as What, Suspect};

const STEP: &str = "health-checks";

/// The step.
pub(super) fn step(facts: &Facts<'_>) -> (Done, Option<Verdict>) {
    let health = &facts.health;
    let Some(first) = health.ailing.first() else {
        let result = match (health.nodes, health.common.first()) {
            (0, _) => "no health check was asked".to_owned(),
            (nodes, None) if health.open.is_empty() => format!("all {nodes} nodes pass"),
            (nodes, None) => format!("no check that could be decided fails on any of {nodes} nodes"),
            (nodes, Some((check, failed))) => format!("{} fails on {failed} of {nodes} nodes", check.id),
        };
        let why = match health.nodes {
            0 => "How the nodes are built and set up is not known.",
            _ => "No node differs from the others in what it is made of or how it is set up.",
        };
        return nothing(STEP, result, why);
    };
    let mut nodes: Vec<&str> = health.ailing.iter().map(|ailing| ailing.node.as_str()).collect();
    nodes.dedup();
    let suspects: Vec<Suspect> = nodes.iter().map(|node| suspect(facts, node)).collect();
    let fails = |node: &&str| {
        let checks: Vec<&str> = health.of_node(Some(*node)).map(|ailing| ailing.check.id).collect();
        format!("{node} fails {}", checks.join(", "))
    };
    let result = nodes.iter().map(fails).collect::<Vec<_>>().join("; ");
    found(STEP, result, Verdict { category: first.category(), suspects })
}

fn suspect(facts: &Facts<'_>, node: &str) -> Suspect {
    let mut draft = Draft::new(What::Node, Some(node.to_owned()), None);
    draft.corroborate(facts);
    let next = facts.health.of_node(Some(node)).next().map_or("", |ailing| ailing.check.next);
    draft.say(format!("{node} fails a health check that the other nodes of the job pass. {}.", upper(next)))
}

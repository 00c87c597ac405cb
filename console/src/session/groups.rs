//! Which nodes are compared with each other, by their labels?

use std::collections::BTreeMap;

use anyhow::anyhow;
use muster_fleet::Node;

use super::nodes::of_inventory;
use crate::config::Config;
use crate::exit::{Problem, USAGE};
use crate::options::Pick;

/// Groups of nodes by their labels, such as `rack=r1,sku=h100`; empty where nothing is grouped by.
pub(super) fn labels(nodes: &[Node], by: &[String]) -> BTreeMap<String, String> {
    let of = |node: &Node| {
        let label = |label: &String| format!("{label}={}", node.labels.get(label).map_or("?", String::as_str));
        (node.name.clone(), by.iter().map(label).collect::<Vec<_>>().join(","))
    };
    // A label that nobody has tells nobody apart.
    let known = |label: &String| nodes.iter().any(|node| node.labels.contains_key(label));
    if by.iter().any(known) { nodes.iter().map(of).collect() } else { BTreeMap::new() }
}

/// Groups of `names` by the labels that the configuration compares apart; a node that the inventory lacks has none.
#[must_use]
pub fn groups_in_force(config: &Config, names: &[String]) -> BTreeMap<String, String> {
    groups(config, &config.group_by.value, names, &BTreeMap::new()).unwrap_or_default()
}

/// Groups of the nodes called `names` by their labels in the inventory; a label that is missing there comes from `facts` (node and key).
///
/// # Errors
/// When nothing knows a label of any node, or the inventory is wrong.
pub fn groups(
    config: &Config,
    by: &[String],
    names: &[String],
    facts: &BTreeMap<(String, String), String>,
) -> Result<BTreeMap<String, String>, Problem> {
    if by.is_empty() {
        return Ok(BTreeMap::new());
    }
    let file = &config.inventory.value;
    let known = if file.exists() { of_inventory(config, &Pick::default())? } else { Vec::new() };
    let known: BTreeMap<&str, &Node> = known.iter().map(|n| (n.name.as_str(), n)).collect();
    let value = |name: &String, label: &String| {
        let labelled = known.get(name.as_str()).and_then(|node| node.labels.get(label));
        labelled.or_else(|| facts.get(&(name.clone(), label.clone())))
    };
    if let Some(label) = by.iter().find(|label| names.iter().all(|name| value(name, label).is_none())) {
        let why = anyhow!("no node has a label or fact '{label}' (inventory {})", file.display());
        return Err(Problem { code: USAGE, error: why });
    }
    let group = |name: &String| {
        let part = |label: &String| format!("{label}={}", value(name, label).map_or("?", String::as_str));
        (name.clone(), by.iter().map(part).collect::<Vec<_>>().join(","))
    };
    Ok(names.iter().map(group).collect())
}

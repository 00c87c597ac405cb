//! What is known of nodes besides their results: labels and groups, as an inventory that says nothing of how they are reached.

use std::collections::{BTreeMap, BTreeSet};

use muster_fleet::{Inventory, Node};
use serde::Serialize;

use crate::config::Config;

/// Name of the part.
pub(super) const NAME: &str = "inventory.toml";

#[derive(Serialize)]
struct Labels<'n> {
    nodes: Vec<Labelled<'n>>,
}

#[derive(Serialize)]
struct Labelled<'n> {
    name: &'n str,
    groups: &'n [String],
    labels: &'n BTreeMap<String, String>,
}

/// The labels of those nodes called `names` that the inventory knows; empty without an inventory.
///
/// # Errors
/// When there is an inventory and it cannot be read: a replay without its groups and labels would show another fleet.
pub(super) fn written(names: &BTreeSet<&str>, config: &Config) -> anyhow::Result<Vec<u8>> {
    let file = &config.inventory.value;
    let known = if file.exists() { Inventory::load(file)? } else { Inventory::default() };
    let labelled = |node: &&Node| names.contains(node.name.as_str());
    let of = |node: &'_ Node| (node.name.clone(), node.groups.clone(), node.labels.clone());
    let own: Vec<_> = known.nodes().iter().filter(labelled).map(of).collect();
    let nodes = own.iter().map(|(name, groups, labels)| Labelled { name, groups, labels }).collect();
    Ok(toml::to_string(&Labels { nodes })?.into_bytes())
}

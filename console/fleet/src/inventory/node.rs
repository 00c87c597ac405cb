//! What does the console know about a node before it has spoken to it?

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use crate::slurm_options::Options;
use crate::transport::Transport;

/// A node as the inventory describes it. What is `None` is left to `~/.ssh/config` and the defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// The name shown, stored and selected by; unique in an inventory.
    pub name: String,
    /// Where to connect: a name, an address, or an alias of `~/.ssh/config`, as given.
    pub host: String,
    /// TCP port of the SSH server; 0 when the inventory gives none, so that `~/.ssh/config` or 22 holds.
    pub port: u16,
    /// Login name.
    pub user: Option<String>,
    /// Private key file, `~` not yet expanded.
    pub identity: Option<PathBuf>,
    /// Jump host: `[user@]host[:port]`, an alias, or several of them separated by commas.
    pub jump: Option<String>,
    /// Groups the node belongs to, sorted, each once.
    pub groups: Vec<String>,
    /// Topology and other labels: `rack`, `leaf`, `sku`.
    pub labels: BTreeMap<String, String>,
}

/// The nodes of a fleet, in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct Inventory {
    nodes: Vec<Node>,
    places: HashMap<String, usize>,
    /// How all of them are reached, where the file says so.
    pub transport: Option<Transport>,
    /// How Slurm is asked, where the file says so.
    pub slurm: Option<Options>,
}

impl Inventory {
    /// All nodes, in the order they were given.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node of that name.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.places.get(name).map(|place| &self.nodes[*place])
    }

    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// Every group with the names of its nodes, in the order of the file.
    pub fn groups(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for node in &self.nodes {
            for group in &node.groups {
                groups.entry(group).or_default().push(&node.name);
            }
        }
        groups
    }

    /// Adds a node; gives its name back when that is taken.
    pub(crate) fn push(&mut self, node: Node) -> Result<(), String> {
        if self.places.contains_key(&node.name) {
            return Err(node.name);
        }
        self.places.insert(node.name.clone(), self.nodes.len());
        self.nodes.push(node);
        Ok(())
    }

    pub(super) fn join_group(&mut self, name: &str, group: &str) -> bool {
        let Some(place) = self.places.get(name) else { return false };
        let groups = &mut self.nodes[*place].groups;
        if let Err(at) = groups.binary_search_by(|own| own.as_str().cmp(group)) {
            groups.insert(at, group.to_owned());
        }
        true
    }
}

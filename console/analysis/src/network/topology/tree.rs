//! How far apart are two leaves of a tree of switches?

use std::collections::HashMap;

use super::{Hops, Source, Topology};

/// Switches with their parents, and the switch that each leaf is.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    switches: Vec<Switch>,
    leaves: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Switch {
    name: String,
    parent: Option<u32>,
    depth: u16,
}

impl Tree {
    /// Links between two leaf switches.
    pub(super) fn hops(&self, a: u32, b: u32) -> u16 {
        let (mut a, mut b) = (self.leaves[a as usize], self.leaves[b as usize]);
        let mut links = 0;
        while a != b {
            let (above, below) = (&self.switches[a as usize], &self.switches[b as usize]);
            let (lift_a, lift_b) = (above.depth >= below.depth, below.depth >= above.depth);
            match (above.parent, below.parent) {
                // Two roots: they meet in the switch without a name.
                (None, None) => return links + 2,
                (next_a, next_b) => {
                    if let Some(next) = next_a.filter(|_| lift_a) {
                        a = next;
                        links += 1;
                    }
                    if let Some(next) = next_b.filter(|_| lift_b) {
                        b = next;
                        links += 1;
                    }
                }
            }
        }
        links
    }

    /// Names above a leaf, nearest first.
    pub(super) fn above(&self, leaf: u32) -> Vec<&str> {
        let parent = |at: u32| self.switches[at as usize].parent;
        std::iter::successors(parent(self.leaves[leaf as usize]), |&at| parent(at))
            .map(|at| self.switches[at as usize].name.as_str())
            .collect()
    }
}

/// Collects nodes and their paths.
#[derive(Default)]
pub(super) struct Builder {
    tree: Tree,
    /// Switch by its parent and name: leaves of one name under two aggregates are two leaves.
    known: HashMap<(Option<u32>, String), u32>,
    leaf_of_switch: HashMap<u32, u32>,
    names: Vec<String>,
    index: HashMap<String, u32>,
    leaf_of: Vec<u32>,
}

impl Builder {
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Adds a node under `path`, outermost switch first, its leaf last. `false` if the name was there already.
    pub(super) fn add(&mut self, node: &str, path: &[&str]) -> bool {
        if self.index.contains_key(node) {
            return false;
        }
        let mut at = None;
        for name in path {
            at = Some(self.switch(at, name));
        }
        let Some(switch) = at else { return false };
        let next = self.tree.leaves.len() as u32;
        let leaf = *self.leaf_of_switch.entry(switch).or_insert(next);
        if leaf == next {
            self.tree.leaves.push(switch);
        }
        self.index.insert(node.to_owned(), self.names.len() as u32);
        self.names.push(node.to_owned());
        self.leaf_of.push(leaf);
        true
    }

    fn switch(&mut self, parent: Option<u32>, name: &str) -> u32 {
        let switches = &mut self.tree.switches;
        *self.known.entry((parent, name.to_owned())).or_insert_with(|| {
            let depth = parent.map_or(0, |p| switches[p as usize].depth + 1);
            switches.push(Switch { name: name.to_owned(), parent, depth });
            switches.len() as u32 - 1
        })
    }

    pub(super) fn finish(self, source: Source) -> Topology {
        Topology {
            leaves: self.leaf_names(),
            names: self.names,
            index: self.index,
            leaf_of: self.leaf_of,
            hops: Hops::Tree(self.tree),
            source,
        }
    }

    /// Leaf names, led by the aggregate's (`P12/S14`) where the bare name is not unique.
    fn leaf_names(&self) -> Vec<String> {
        let switches = &self.tree.switches;
        let mut count: HashMap<&str, usize> = HashMap::new();
        for &leaf in &self.tree.leaves {
            *count.entry(&switches[leaf as usize].name).or_default() += 1;
        }
        let name = |&leaf: &u32| {
            let own = &switches[leaf as usize];
            match own.parent.filter(|_| count[own.name.as_str()] > 1) {
                Some(parent) => format!("{}/{}", switches[parent as usize].name, own.name),
                None => own.name.clone(),
            }
        };
        self.tree.leaves.iter().map(name).collect()
    }
}

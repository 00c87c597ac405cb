//! How far are two nodes apart, and under which switches do they hang?
//!
//! Distances are counted as SuperBench counts them (ATC'24, section 4): links on the shortest path, so two nodes on
//! one leaf switch are 2 hops apart, under one aggregate 4, and so on.

mod csv_text;
mod fabric;
mod infer;
mod slurm;
mod tree;

use std::collections::HashMap;

pub use csv_text::{from_csv, from_labels};
pub use fabric::{Fabric, Hca, ibnetdiscover};
pub use infer::infer;
pub(super) use infer::{alike, levels, of_leaves};
pub use slurm::slurm;

use tree::Tree;

/// More nodes than this are refused, so that a wrong file cannot take all memory.
pub const MAX_NODES: usize = 65_536;
/// More groups of equally attached nodes than this are refused for fabrics that are no tree: their distances are a table.
pub const MAX_GROUPS: usize = 4_096;

/// Where a topology comes from; screens say so, since an inferred one may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Labels of the inventory.
    Labels,
    /// `node,leaf[,aggregate…]` rows.
    Csv,
    /// Slurm's topology.conf.
    Slurm,
    /// The output of `ibnetdiscover`.
    Ibnetdiscover,
    /// Clustered from measured latency: a guess.
    Latency,
    /// Nothing is known: all nodes count as one hop class.
    Flat,
}

/// `node` of `node:nic`; names with several colons are addresses.
#[must_use]
pub fn node_name(endpoint: &str) -> &str {
    match endpoint.split_once(':') {
        Some((node, nic)) if !node.is_empty() && !nic.contains(':') => node,
        _ => endpoint,
    }
}

/// Nodes, the leaf each is attached to, and hop distances. Nodes and leaves are numbered from 0 in the order first met.
#[derive(Clone, Debug)]
pub struct Topology {
    names: Vec<String>,
    index: HashMap<String, u32>,
    leaf_of: Vec<u32>,
    leaves: Vec<String>,
    hops: Hops,
    source: Source,
}

/// Distances between leaves, without the two links of the nodes themselves.
#[derive(Clone, Debug)]
enum Hops {
    Tree(Tree),
    /// Row-major, `leaves` x `leaves`; `u16::MAX` where no path exists. The diagonal may be non-zero for nodes that
    /// share no switch.
    Table(Vec<u16>),
}

impl Topology {
    /// All nodes under one leaf, for fleets of which nothing is known. Repeated names count once.
    #[must_use]
    pub fn flat<S: AsRef<str>>(names: &[S]) -> Self {
        let mut tree = tree::Builder::default();
        for name in names {
            tree.add(name.as_ref(), &["fleet"]);
        }
        tree.finish(Source::Flat)
    }

    /// How many nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Names of all nodes, by number.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of the node called `name`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<u32> {
        self.index.get(name).copied()
    }

    /// Number of an endpoint of a matrix: a node, a NIC `node:nic` with a place of its own, or else the node of that NIC.
    #[must_use]
    pub fn endpoint(&self, name: &str) -> Option<u32> {
        self.find(name).or_else(|| self.find(node_name(name)))
    }

    /// Number of the leaf that `node` is attached to. Nodes with several NICs on several switches have a leaf of their
    /// own kind: the set of these switches.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn leaf(&self, node: u32) -> u32 {
        self.leaf_of[node as usize]
    }

    /// Names of all leaves, by number.
    #[must_use]
    pub fn leaves(&self) -> &[String] {
        &self.leaves
    }

    /// Names of the switches above a leaf, nearest first; empty where the source does not name them.
    #[must_use]
    pub fn above(&self, leaf: u32) -> Vec<&str> {
        match &self.hops {
            Hops::Tree(tree) => tree.above(leaf),
            Hops::Table(_) => Vec::new(),
        }
    }

    /// Links on the shortest path between two nodes under the leaves `a` and `b`, two different ones if the leaves
    /// are equal; `None` without a path.
    #[must_use]
    pub fn leaf_hops(&self, a: u32, b: u32) -> Option<u16> {
        match &self.hops {
            Hops::Tree(tree) => Some(tree.hops(a, b) + 2),
            Hops::Table(table) => {
                let between = table[a as usize * self.leaves.len() + b as usize];
                (between != u16::MAX).then(|| between + 2)
            }
        }
    }

    /// Links on the shortest path between two nodes, 0 for a node and itself, `None` without a path.
    #[must_use]
    pub fn hops(&self, a: u32, b: u32) -> Option<u16> {
        if a == b { Some(0) } else { self.leaf_hops(self.leaf(a), self.leaf(b)) }
    }

    /// Hop distances that occur between two different nodes, ascending. O(leaves²).
    #[must_use]
    pub fn tiers(&self) -> Vec<u16> {
        let mut members = vec![0_usize; self.leaves.len()];
        self.leaf_of.iter().for_each(|&leaf| members[leaf as usize] += 1);
        let mut seen = std::collections::BTreeSet::new();
        for a in 0..self.leaves.len() {
            for b in a..self.leaves.len() {
                if members[a] > usize::from(a == b) && members[b] > 0 {
                    seen.extend(self.leaf_hops(a as u32, b as u32));
                }
            }
        }
        seen.into_iter().collect()
    }

    /// The same fabric with some nodes under other leaves, or, without a leaf, left out.
    pub(super) fn moved(&self, moves: &[(u32, Option<u32>)]) -> Self {
        let mut out = self.clone();
        for &(node, leaf) in moves {
            match leaf {
                Some(leaf) => out.leaf_of[node as usize] = leaf,
                None => {
                    out.index.remove(&self.names[node as usize]);
                }
            }
        }
        out
    }

    /// Where it comes from.
    #[must_use]
    pub fn source(&self) -> Source {
        self.source
    }

    /// The same fabric with only the nodes named, numbered in that order, and the names it does not know.
    #[must_use]
    pub fn restricted<S: AsRef<str>>(&self, names: &[S]) -> (Self, Vec<String>) {
        let mut kept = Self { names: Vec::new(), index: HashMap::new(), leaf_of: Vec::new(), ..self.clone() };
        let mut unknown = Vec::new();
        for name in names.iter().map(AsRef::as_ref) {
            match self.find(name) {
                None => unknown.push(name.to_owned()),
                Some(node) if !kept.index.contains_key(name) => {
                    kept.index.insert(name.to_owned(), kept.names.len() as u32);
                    kept.names.push(name.to_owned());
                    kept.leaf_of.push(self.leaf(node));
                }
                Some(_) => {}
            }
        }
        (kept, unknown)
    }
}

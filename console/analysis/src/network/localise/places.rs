//! Where do the endpoints of a matrix hang, and which elements of the fabric does each pair cross?
//!
//! Everything that pairs can cross is a numbered *group* of cells: what an endpoint sends, what it receives, what leaves
//! a leaf, and so on. Elements are unions of groups.

use std::collections::{BTreeMap, HashMap};

use super::routes::{Route, Routes};
use crate::network::topology::{Source, node_name};
use crate::network::{Matrix, Topology, matrix::Cell};

pub(super) const NONE: u32 = u32::MAX;
/// Above this many pairs of leaves, effects of a single pair of leaves are not looked for.
const MAX_LEAF_PAIRS: usize = 1 << 20;

/// Fabric of one matrix, with leaves, aggregates and spines numbered among those that occur.
pub(super) struct Places {
    pub(super) nodes: Vec<String>,
    /// Endpoints of each node.
    pub(super) endpoints: Vec<Vec<u32>>,
    pub(super) node_of: Vec<u32>,
    pub(super) leaf_of: Vec<u32>,
    pub(super) leaves: Vec<String>,
    pod_of: Vec<u32>,
    pub(super) pods: Vec<String>,
    /// Hop distances that occur; index of the tier of two leaves in `tier_of`.
    pub(super) hops: Vec<Option<u16>>,
    tier_of: Vec<u8>,
    pub(super) routes: Routes,
    pub(super) base: Bases,
}

/// First group of each family.
pub(super) struct Bases {
    pub(super) rx: u32,
    pub(super) out: u32,
    pub(super) into: u32,
    pub(super) within: u32,
    pub(super) up: u32,
    pub(super) down: u32,
    pub(super) spine: u32,
    pub(super) opaque: u32,
    pub(super) leaf_pair: u32,
    pub(super) pod_out: u32,
    pub(super) pod_into: u32,
    pub(super) count: u32,
}

/// Groups of one cell, [`NONE`] where it has none of a family.
pub(super) type Groups = [u32; 9];

impl Places {
    pub(super) fn of(matrix: &Matrix, topology: &Topology) -> Self {
        let endpoints = matrix.endpoints();
        let (mut nodes, mut node_index) = (Vec::new(), HashMap::new());
        let (mut node_of, mut members): (Vec<u32>, Vec<Vec<u32>>) = (Vec::new(), Vec::new());
        for (endpoint, name) in endpoints.iter().enumerate() {
            let node = *node_index.entry(node_name(name)).or_insert_with(|| {
                nodes.push(node_name(name).to_owned());
                members.push(Vec::new());
                nodes.len() as u32 - 1
            });
            node_of.push(node);
            members[node as usize].push(endpoint as u32);
        }
        let mut used: Vec<u32> = Vec::new();
        let mut renumber = HashMap::new();
        let known = topology.source() != Source::Flat;
        let leaf_of: Vec<u32> = endpoints
            .iter()
            .map(|name| {
                let node = topology.endpoint(name).filter(|_| known);
                node.map_or(NONE, |node| {
                    *renumber.entry(topology.leaf(node)).or_insert_with(|| {
                        used.push(topology.leaf(node));
                        used.len() as u32 - 1
                    })
                })
            })
            .collect();
        let leaves: Vec<String> = used.iter().map(|&leaf| topology.leaves()[leaf as usize].clone()).collect();
        let (pods, pod_of) = pods(topology, &used);
        let (hops, tier_of) = tiers(topology, &used);
        let routes = Routes::of(matrix, &leaf_of, &leaves);
        let base = Bases::of([endpoints.len(), leaves.len(), pods.len()], &routes);
        Self { nodes, endpoints: members, node_of, leaf_of, leaves, pod_of, pods, hops, tier_of, routes, base }
    }

    /// Tier of a cell: its hop distance by index in [`Places::hops`]; 0 is the tier of unknown distances.
    pub(super) fn tier(&self, cell: &Cell) -> u8 {
        let (a, b) = (self.leaf_of[cell.src as usize], self.leaf_of[cell.dst as usize]);
        if a == NONE || b == NONE { 0 } else { self.tier_of[a as usize * self.leaves.len() + b as usize] }
    }

    /// All groups that a pair belongs to, its uplink included where that is known.
    pub(super) fn groups(&self, src: u32, dst: u32, up: u32) -> Groups {
        let base = &self.base;
        let mut out = [NONE; 9];
        out[0] = src;
        out[1] = base.rx + dst;
        let (a, b) = (self.leaf_of[src as usize], self.leaf_of[dst as usize]);
        let count = self.leaves.len() as u32;
        if a == b && a != NONE {
            out[2] = base.within + a;
            return out;
        }
        let known = a != NONE && b != NONE;
        match self.routes.route(up) {
            Route::Spine(spine) if known => {
                out[4] = base.up + spine * count + a;
                out[5] = base.down + spine * count + b;
                out[6] = base.spine + spine;
            }
            Route::Opaque(name) => out[4] = base.opaque + name,
            _ => {}
        }
        if known {
            out[2] = base.out + a;
            out[3] = base.into + b;
            if base.leaf_pair != NONE {
                out[6] = base.leaf_pair + a * count + b;
            }
            let (p, q) = (self.pod_of[a as usize], self.pod_of[b as usize]);
            if p != q && p != NONE && q != NONE {
                out[7] = base.pod_out + p;
                out[8] = base.pod_into + q;
            }
        }
        out
    }
}

impl Places {
    /// Endpoints whose sent or received pairs may belong to a wanted group; all where a group is wanted that belongs to
    /// no endpoint's leaf.
    pub(super) fn touched(&self, wanted: &[u32]) -> (Vec<bool>, Vec<bool>) {
        let base = &self.base;
        let is = |group: u32| wanted[group as usize] != NONE;
        let links = |first: u32, leaf: u32| {
            (0..self.routes.spines().len() as u32).any(|s| is(first + s * self.leaves.len() as u32 + leaf))
        };
        let all = (base.spine..base.spine + self.routes.spines().len() as u32)
            .chain(base.opaque..base.opaque + self.routes.opaque().len() as u32)
            .chain(base.pod_out..base.count)
            .chain(if base.leaf_pair == NONE { 0..0 } else { base.leaf_pair..base.pod_out })
            .any(is);
        let sends = |leaf: u32| is(base.out + leaf) || is(base.within + leaf) || links(base.up, leaf);
        let receives = |leaf: u32| is(base.into + leaf) || is(base.within + leaf) || links(base.down, leaf);
        let (sending, receiving): (Vec<bool>, Vec<bool>) =
            (0..self.leaves.len() as u32).map(|leaf| (sends(leaf), receives(leaf))).unzip();
        let of = |leaves: &[bool], leaf: u32| leaf != NONE && leaves[leaf as usize];
        let ends = self.leaf_of.iter().enumerate().map(|(at, &leaf)| (at as u32, leaf));
        ends.map(|(at, leaf)| (all || is(at) || of(&sending, leaf), all || is(base.rx + at) || of(&receiving, leaf)))
            .unzip()
    }
}

/// Aggregates above the leaves, and the aggregate of each leaf.
fn pods(topology: &Topology, leaves: &[u32]) -> (Vec<String>, Vec<u32>) {
    let mut names: Vec<String> = Vec::new();
    let mut index: HashMap<String, u32> = HashMap::new();
    let pod = |leaf: &u32| {
        let above = topology.above(*leaf);
        let Some(name) = above.first() else { return NONE };
        // Aggregates of one name under two cores are two.
        *index.entry(above.join("\n")).or_insert_with(|| {
            names.push((*name).to_owned());
            names.len() as u32 - 1
        })
    };
    let of = leaves.iter().map(pod).collect();
    (names, of)
}

/// Hop distances between the leaves, and the index of each two leaves' distance.
fn tiers(topology: &Topology, leaves: &[u32]) -> (Vec<Option<u16>>, Vec<u8>) {
    let between = |a: &u32, b: &u32| topology.leaf_hops(*a, *b);
    let mut found: BTreeMap<u16, u8> = BTreeMap::new();
    for hops in leaves.iter().flat_map(|a| leaves.iter().map(move |b| between(a, b))).flatten() {
        found.insert(hops, 0);
    }
    let mut hops = vec![None];
    for (distance, index) in found.iter_mut().take(usize::from(u8::MAX)) {
        *index = hops.len() as u8;
        hops.push(Some(*distance));
    }
    let index = |a: &u32, b: &u32| between(a, b).and_then(|h| found.get(&h).copied()).unwrap_or(0);
    let table = leaves.iter().flat_map(|a| leaves.iter().map(move |b| (a, b))).map(|(a, b)| index(a, b)).collect();
    (hops, table)
}

impl Bases {
    fn of([endpoints, leaves, pods]: [usize; 3], routes: &Routes) -> Self {
        let mut next = 0_u32;
        let mut take = |count: usize| {
            let first = next;
            next += count as u32;
            first
        };
        take(endpoints);
        let (rx, out, into, within) = (take(endpoints), take(leaves), take(leaves), take(leaves));
        let links = leaves * routes.spines().len();
        let (up, down, spine) = (take(links), take(links), take(routes.spines().len()));
        let opaque = take(routes.opaque().len());
        // Where uplinks are known, an effect of one pair of leaves is an effect of its uplinks.
        let by_pair = routes.is_empty() && leaves > 1 && leaves * leaves <= MAX_LEAF_PAIRS;
        let leaf_pair = if by_pair { take(leaves * leaves) } else { NONE };
        let (pod_out, pod_into) = (take(pods), take(pods));
        Self { rx, out, into, within, up, down, spine, opaque, leaf_pair, pod_out, pod_into, count: next }
    }
}

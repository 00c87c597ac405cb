//! Do the nodes hang where the topology says?
//!
//! The uplinks named in a matrix say which leaf a sender's visits left by, and hop distances show in what pairs deliver.
//! Where either contradicts the topology, the node is moved to where it fits before anything is judged.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use muster_wire::Direction;

use super::found::Misfit;
use super::places::NONE;
use super::sides::MEDIAN_ERROR;
use super::{Case, group, unnamed};
use crate::network::matrix::NO_UP;
use crate::network::topology::{self, Source};
use crate::network::{Cell, Matrix, Topology};

/// Characters between a leaf's name and the rest of an uplink's.
const SEPARATORS: [char; 6] = ['-', '/', ':', '_', '.', '>'];
/// Share of a node's visits that must name one leaf.
const MOST: f64 = 0.8;
/// Visits that must do so.
const ENOUGH: usize = 2;
/// Share of all visits that must name the leaf of their sender (or of their receiver), so that names are of that kind.
const CONVENTION: f64 = 0.6;

/// A node and the leaf it fits, if there is one; by their numbers in a topology.
pub(super) type Move = (u32, Option<u32>);
/// A topology that fits the pairs better than the one before, and whom it has elsewhere.
pub(super) struct Fitted {
    pub(super) topology: Topology,
    pub(super) misfits: Vec<Misfit>,
}

/// Share of the difference between two hop distances that a node's pairs must show.
const SHOWN: f64 = 0.6;
/// `-ln 0.95`: hop distances that differ by less do not tell places.
const LEAST_GAP: f64 = 0.05;
/// Standard errors of that share that they must be clear by.
const ERRORS: f64 = 3.0;
/// More visits than this are not searched for leaves.
const MOST_COSTS: usize = 1 << 20;

/// The topology that the uplinks named in a matrix leave of the one given, and who was moved. Without any, leaves that the
/// costs of the pairs form.
pub(super) fn fitted<'a>(matrix: &Matrix, topology: &'a Topology) -> (Cow<'a, Topology>, Vec<Misfit>) {
    if topology.source() == Source::Flat {
        let found = levels(matrix);
        return (found.map_or(Cow::Borrowed(topology), Cow::Owned), Vec::new());
    }
    let moves = by_paths(matrix, topology);
    if moves.is_empty() {
        return (Cow::Borrowed(topology), Vec::new());
    }
    (Cow::Owned(topology.moved(&moves)), misfits(topology, &moves, "paths"))
}

fn levels(matrix: &Matrix) -> Option<Topology> {
    if matrix.len() > MOST_COSTS {
        return None;
    }
    let sign = if matrix.direction() == Direction::HigherIsBetter { -1.0 } else { 1.0 };
    let cost = |at: usize| {
        let mut values = matrix.values(at).to_vec();
        values.sort_unstable_by(f32::total_cmp);
        let value = f64::from(*values.get(values.len() / 2)?);
        (value > 0.0).then(|| sign * value.ln())
    };
    let costs = matrix.cells().iter().enumerate().filter_map(|(at, cell)| Some((cell.src, cell.dst, cost(at)?)));
    topology::levels(matrix.endpoints(), &costs.collect::<Vec<_>>())
}

/// Nodes to which the pairs speak against the topology: a group that is slow together but for them, or pairs that are as
/// fast as those of another leaf.
pub(super) fn by_pairs(case: &Case<'_>, topology: &Topology, groups: &[group::Found]) -> Option<Box<Fitted>> {
    if let Some(leaf_of) = unnamed::levels(case, groups) {
        let topology = topology::of_leaves(case.matrix.endpoints(), &leaf_of);
        return Some(Box::new(Fitted { topology, misfits: Vec::new() }));
    }
    let mut moves = unnamed::cuts(case, groups);
    if moves.is_empty() {
        moves = by_distance(case);
    }
    let number = |leaf: u32| (0_u32..).zip(topology.leaves()).find(|(_, l)| **l == case.places.leaves[leaf as usize]);
    let moved = |&(node, leaf): &Move| {
        let node = topology.find(&case.places.nodes[node as usize])?;
        Some((node, leaf.and_then(number).map(|(at, _)| at)))
    };
    let moves: Vec<Move> = moves.iter().filter_map(moved).collect();
    let fitted = || Box::new(Fitted { topology: topology.moved(&moves), misfits: misfits(topology, &moves, "pairs") });
    (!moves.is_empty()).then(fitted)
}

/// Nodes that are as far from their own leaf as other leaves are, and as near to another leaf as its own nodes.
fn by_distance(case: &Case<'_>) -> Vec<Move> {
    let places = case.places;
    let centre = |hops: Option<u16>| {
        let tier = case.residuals.tiers.iter().flatten().find(|t| t.hops == hops)?;
        let sign = if case.matrix.direction() == Direction::HigherIsBetter { -1.0 } else { 1.0 };
        Some((sign * tier.centre.ln(), tier.spread))
    };
    let distances: Vec<u16> = case.residuals.tiers.iter().flatten().filter_map(|t| t.hops).collect();
    let (Some(&near), Some(&far)) = (distances.first(), distances.get(1)) else { return Vec::new() };
    let (Some((near, spread)), Some((far, _))) = (centre(Some(near)), centre(Some(far))) else { return Vec::new() };
    let gap = far - near;
    if gap < LEAST_GAP || case.residuals.counts {
        return Vec::new();
    }
    let mut pairs: BTreeMap<(u32, u32), Vec<f32>> = BTreeMap::new();
    let leaf = |end: u32| places.leaf_of[end as usize];
    // First those within leaves; the others only matter to whom these do not fit.
    for (at, cell) in measured(case).filter(|(_, cell)| leaf(cell.src) == leaf(cell.dst)) {
        for (end, peer) in [(cell.src, cell.dst), (cell.dst, cell.src)] {
            let node = places.node_of[end as usize];
            pairs.entry((node, leaf(peer))).or_default().push(case.residuals.worse[at]);
        }
    }
    let step = Step { gap, spread };
    let odd = pairs.iter_mut().filter_map(|(&(node, _), worse)| step.is_taken(worse).then_some(node));
    let doubtful: BTreeSet<u32> = odd.collect();
    if doubtful.is_empty() { Vec::new() } else { nearer(case, &doubtful, &step) }
}

/// Visits with a value, with their places in the matrix.
fn measured<'c>(case: &'c Case<'_>) -> impl Iterator<Item = (usize, &'c Cell)> {
    case.matrix.cells().iter().enumerate().filter(|(at, _)| !case.residuals.worse[*at].is_nan())
}

/// The step from one hop distance to the next, as the logarithm of what pairs deliver, and how far pairs scatter.
struct Step {
    gap: f64,
    spread: f64,
}

impl Step {
    /// The share of the step that the median of `worse` shows, and its standard error.
    fn share(&self, worse: &mut [f32]) -> (f64, f64) {
        worse.sort_unstable_by(f32::total_cmp);
        let error = MEDIAN_ERROR * self.spread / (worse.len() as f64).sqrt() / self.gap;
        (f64::from(worse[(worse.len() - 1) / 2]) / self.gap, error)
    }

    /// Whether pairs are clearly a step away from where they should be.
    fn is_taken(&self, worse: &mut [f32]) -> bool {
        let (share, error) = self.share(worse);
        share > SHOWN && share - ERRORS * error > 1.0 - SHOWN
    }
}

/// For each `doubtful` node the other leaf to which its pairs are clearly nearer than they should be, the nearest of several.
fn nearer(case: &Case<'_>, doubtful: &BTreeSet<u32>, step: &Step) -> Vec<Move> {
    let leaf = |end: u32| case.places.leaf_of[end as usize];
    let mut other: BTreeMap<(u32, u32), Vec<f32>> = BTreeMap::new();
    for (at, cell) in measured(case) {
        for (end, peer) in [(cell.src, cell.dst), (cell.dst, cell.src)] {
            let node = case.places.node_of[end as usize];
            if doubtful.contains(&node) && leaf(end) != leaf(peer) && leaf(peer) != NONE {
                other.entry((node, leaf(peer))).or_default().push(-case.residuals.worse[at]);
            }
        }
    }
    let mut best: BTreeMap<u32, (f64, u32)> = BTreeMap::new();
    for ((node, leaf), mut worse) in other {
        if step.is_taken(&mut worse) {
            let share = step.share(&mut worse).0;
            let best = best.entry(node).or_insert((share, leaf));
            if share > best.0 {
                *best = (share, leaf);
            }
        }
    }
    best.into_iter().map(|(node, (_, leaf))| (node, Some(leaf))).collect()
}

/// Nodes whose uplinks start (or end) with the name of another leaf than the topology's.
pub(super) fn by_paths(matrix: &Matrix, topology: &Topology) -> Vec<Move> {
    if topology.source() == Source::Flat || matrix.ups().is_empty() {
        return Vec::new();
    }
    let numbers: HashMap<&str, u32> = (0_u32..).zip(topology.leaves()).map(|(at, name)| (name.as_str(), at)).collect();
    let first: Vec<Option<u32>> = matrix.ups().iter().map(|up| prefix(up, &numbers)).collect();
    let last: Vec<Option<u32>> = matrix.ups().iter().map(|up| suffix(up, &numbers)).collect();
    let place: Vec<Option<u32>> = matrix.endpoints().iter().map(|name| topology.endpoint(name)).collect();
    let cells = || matrix.cells().iter().filter(|cell| cell.up != NO_UP);
    let mut votes: BTreeMap<u32, BTreeMap<u32, usize>> = BTreeMap::new();
    for (named, sends) in [(&first, true), (&first, false), (&last, false), (&last, true)] {
        let end = |cell: &crate::network::Cell| place[if sends { cell.src } else { cell.dst } as usize];
        let said = || cells().filter_map(|cell| Some((end(cell)?, named[cell.up as usize]?)));
        let (agree, all) = said().fold((0_usize, 0_usize), |(agree, all), (node, leaf)| {
            (agree + usize::from(topology.leaf(node) == leaf), all + 1)
        });
        if all == 0 || (agree as f64) < CONVENTION * all as f64 {
            continue;
        }
        for (node, leaf) in said() {
            *votes.entry(node).or_default().entry(leaf).or_default() += 1;
        }
    }
    let moved = votes.into_iter().filter_map(|(node, votes)| {
        let all: usize = votes.values().sum();
        let (leaf, most) = votes.into_iter().max_by_key(|(leaf, count)| (*count, u32::MAX - leaf))?;
        let clear = most >= ENOUGH && most as f64 >= MOST * all as f64 && leaf != topology.leaf(node);
        clear.then_some((node, Some(leaf)))
    });
    moved.collect()
}

/// The leaf whose name an uplink's name starts with, the longest of several.
fn prefix(up: &str, leaves: &HashMap<&str, u32>) -> Option<u32> {
    let ends = up.char_indices().filter(|(_, c)| SEPARATORS.contains(c)).map(|(at, _)| at);
    ends.filter_map(|at| leaves.get(&up[..at]).copied()).next_back()
}

/// The leaf whose name it ends with.
fn suffix(up: &str, leaves: &HashMap<&str, u32>) -> Option<u32> {
    let starts = up.char_indices().filter(|(_, c)| SEPARATORS.contains(c)).map(|(at, c)| at + c.len_utf8());
    starts.filter_map(|at| leaves.get(&up[at..]).copied()).next()
}

/// What is said of nodes that were moved.
pub(super) fn misfits(topology: &Topology, moves: &[Move], by: &str) -> Vec<Misfit> {
    let name = |leaf: u32| topology.leaves()[leaf as usize].clone();
    // A guess cannot be wrong about what it was guessed from.
    if topology.source() == Source::Latency {
        return Vec::new();
    }
    let said = |&(node, leaf): &Move| {
        let back = |other: &&Move| Some(topology.leaf(other.0)) == leaf && other.1 == Some(topology.leaf(node));
        let mut swapped = moves.iter().filter(back);
        let partner = swapped.next().filter(|_| swapped.next().is_none());
        Misfit {
            node: topology.names()[node as usize].clone(),
            said: name(topology.leaf(node)),
            fits: leaf.map(name),
            swapped_with: partner.map(|&(other, _)| topology.names()[other as usize].clone()),
            by: by.to_owned(),
        }
    };
    moves.iter().map(said).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::topology::from_csv;
    use muster_wire::Direction;

    fn moved(rows: &str, name: fn(u32, u32) -> String) -> Vec<Move> {
        let topology = from_csv(rows).unwrap();
        let mut matrix = Matrix::new("bw", Direction::HigherIsBetter);
        // Truly four leaves of three.
        for (a, b) in (0..12_u32).flat_map(|a| (0..12).map(move |b| (a, b))).filter(|(a, b)| a / 3 != b / 3) {
            matrix.push_named(&format!("n{a}"), &format!("n{b}"), &[1.0], Some(&name(a / 3, b / 3)));
        }
        by_paths(&matrix, &topology)
    }

    #[test]
    fn uplinks_of_any_form_say_who_was_swapped_and_bare_spines_say_nothing() {
        let rows = |swap: bool| -> String {
            let leaf = |n: u32| match n {
                0 if swap => 1,
                3 if swap => 0,
                n => n / 3,
            };
            (0..12).map(|n| format!("n{n},leaf{}\n", leaf(n))).collect()
        };
        let places = |swap: bool, form: fn(u32, u32) -> String| -> Vec<(String, String)> {
            let topology = from_csv(&rows(swap)).unwrap();
            let name = |(node, leaf): Move| {
                (topology.names()[node as usize].clone(), topology.leaves()[leaf.unwrap() as usize].clone())
            };
            moved(&rows(swap), form).into_iter().map(name).collect()
        };
        let truth = [("n0", "leaf0"), ("n3", "leaf1")].map(|(node, leaf)| (node.to_owned(), leaf.to_owned()));
        let forms: [fn(u32, u32) -> String; 3] = [
            |a, _| format!("leaf{a}-spine1"),
            |a, b| format!("leaf{a}-spine1-leaf{b}"),
            |_, b| format!("leaf{b}/spine1"),
        ];
        for form in forms {
            assert_eq!(places(true, form), truth);
            assert_eq!(places(false, form), []);
        }
        assert_eq!(places(true, |_, _| "spine1".to_owned()), []);
    }

    #[test]
    fn a_swap_names_both_nodes() {
        let topology = from_csv("a,l1\nb,l1\nc,l2\nd,l2\n").unwrap();
        let found = misfits(&topology, &[(0, Some(1)), (2, Some(0))], "paths");
        assert_eq!(found[0].swapped_with.as_deref(), Some("c"));
        assert_eq!((found[1].said.as_str(), found[1].fits.as_deref()), ("l2", Some("l1")));
    }
}

//! Which pairs come next, when a scan should end as soon as the faults are known?
//!
//! First the quick scan: every node once per hop distance. From then on only open questions are measured: whoever was
//! on a slow pair that no suspect explains meets nodes known to be good, a different one each round, so that about half
//! of the explanations fall away each time (adaptive group testing, Du & Hwang, *Combinatorial Group Testing and Its
//! Applications*, 2000, chapter 2). It ends when every slow pair is explained, or after about `2 log2 n` more rounds.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::sample::shuffled;
use super::{Pair, quick_scan};
use crate::network::Topology;
use crate::network::localise::{Kind, Localisation, localise_with_open};
use crate::network::matrix::{Matrix, NO_UP};
use crate::{Chance, Params};
use muster_wire::Direction;

/// Rounds beyond the quick scan and `2 log2 n`.
const SPARE_ROUNDS: u32 = 3;
/// Rounds spent at most on links that the quick scan happened to miss.
const COVER_ROUNDS: u32 = 3;
/// Visits a suspect other than a whole switch needs before the scan may end.
const ENOUGH: usize = 4;

/// An adaptive scan. Alternates between [`Bisection::step`], which says what to measure, and [`Bisection::visited`].
#[derive(Clone, Debug)]
pub struct Bisection {
    topology: Topology,
    params: Params,
    matrix: Matrix,
    first: std::vec::IntoIter<Vec<Pair>>,
    met: HashSet<Pair>,
    rounds: u32,
    limit: u32,
    covering: u32,
    chance: Chance,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Measure these pairs at the same time, each in both directions; no node is in two of them.
    Measure(Vec<Pair>),
    /// Nothing more to ask.
    Done(Box<Localisation>),
}

/// What one visit of a pair gave.
#[derive(Clone, Copy, Debug)]
pub struct Visit<'a> {
    /// Sender, by number in the topology.
    pub src: u32,
    /// Receiver.
    pub dst: u32,
    /// Values in the metric's unit; none if it failed.
    pub values: &'a [f64],
    /// The uplink crossed, where that is known; see [`Matrix::push`].
    pub up: Option<&'a str>,
}

impl Bisection {
    /// A scan of all nodes of `topology` by one metric. `seed` decides between equal choices.
    #[must_use]
    pub fn new(topology: &Topology, (metric, direction): (&str, Direction), params: &Params, seed: u64) -> Self {
        let mut matrix = Matrix::new(metric, direction);
        topology.names().iter().for_each(|name| {
            matrix.endpoint(name);
        });
        let first: Vec<Vec<Pair>> =
            quick_scan(topology).into_iter().map(|tier| tier.pairs).filter(|pairs| !pairs.is_empty()).collect();
        let more = 2 * (topology.len().max(2) as f64).log2().ceil() as u32;
        Self {
            limit: first.len() as u32 + more + SPARE_ROUNDS,
            topology: topology.clone(),
            params: params.clone(),
            matrix,
            first: first.into_iter(),
            met: HashSet::new(),
            rounds: 0,
            covering: 0,
            chance: Chance::plain(seed),
        }
    }

    /// Rounds asked for so far.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Distinct pairs asked for so far.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.met.len()
    }

    /// What was measured so far.
    #[must_use]
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// Takes the results of a round, in any order; pairs may be missing.
    ///
    /// # Panics
    /// If a node is not in the topology.
    pub fn visited(&mut self, visits: &[Visit<'_>]) {
        let nodes = self.topology.len() as u32;
        for visit in visits {
            assert!(visit.src < nodes && visit.dst < nodes, "a visit of a node that is not in the topology");
            self.matrix.push(visit.src, visit.dst, visit.values, visit.up);
        }
    }

    /// The next round, or the answer.
    pub fn step(&mut self) -> Step {
        if let Some(pairs) = self.first.next() {
            return self.measure(pairs);
        }
        let (found, open) = localise_with_open(&self.matrix, &self.topology, &self.params);
        if self.rounds >= self.limit {
            return Step::Done(Box::new(found));
        }
        let mut pairs = self.questions(&found, &open);
        if pairs.is_empty() && self.covering < COVER_ROUNDS {
            pairs = self.uncovered();
            self.covering += 1;
        }
        if pairs.is_empty() { Step::Done(Box::new(found)) } else { self.measure(pairs) }
    }

    fn measure(&mut self, pairs: Vec<Pair>) -> Step {
        self.rounds += 1;
        self.met.extend(pairs.iter().map(|&(a, b)| (a.min(b), a.max(b))));
        Step::Measure(pairs)
    }

    /// Pairs that open questions ask for: those that decide between explanations, then every node on an unexplained slow
    /// visit and every weak suspect with a good node it has not met.
    fn questions(&mut self, found: &Localisation, open: &[usize]) -> Vec<Pair> {
        let asked = self.suspicious(found, open);
        let mut round = Round::default();
        if !found.undecided.is_empty() {
            for [src, dst] in &found.next_pairs {
                if let (Some(a), Some(b)) = (self.topology.find(src), self.topology.find(dst)) {
                    round.add(a, b);
                }
            }
        }
        let bad: BTreeSet<u32> = self.accused(found).chain(asked.keys().copied()).collect();
        let good: Vec<u32> = shuffled(&mut self.chance, self.topology.len() as u32)
            .into_iter()
            .filter(|node| !bad.contains(node))
            .collect();
        for (node, peers) in asked {
            if let Some(partner) = self.partner(node, &peers, &good, &round) {
                round.add(node, partner);
            }
        }
        round.pairs
    }

    /// Nodes to ask about, with the peers they were slow with.
    fn suspicious(&self, found: &Localisation, open: &[usize]) -> BTreeMap<u32, Vec<u32>> {
        let mut asked: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for cell in open.iter().map(|&at| self.matrix.cells()[at]) {
            // A isolated pair that was visited often enough, at ends that are well elsewhere, is an answer.
            if self.visits_of((cell.src, cell.dst)) >= ENOUGH {
                continue;
            }
            asked.entry(cell.src).or_default().push(cell.dst);
            asked.entry(cell.dst).or_default().push(cell.src);
        }
        let weak = |s: &&crate::network::localise::Suspect| s.pairs < 2 * ENOUGH && s.kind != Kind::Pair;
        for suspect in found.suspects.iter().filter(weak) {
            match self.topology.find(&suspect.element) {
                Some(node) => {
                    asked.entry(node).or_default();
                }
                None => self.under(&suspect.element).for_each(|node| {
                    asked.entry(node).or_default();
                }),
            }
        }
        asked
    }

    /// Some nodes under the leaf that an element is, or that its name starts with.
    fn under<'a>(&'a self, element: &'a str) -> impl Iterator<Item = u32> + 'a {
        let of = |node: &u32| element.starts_with(&self.topology.leaves()[self.topology.leaf(*node) as usize]);
        (0..self.topology.len() as u32).filter(of).take(ENOUGH)
    }

    fn visits_of(&self, pair: Pair) -> usize {
        let same = |a: u32, b: u32| (a, b) == pair || (b, a) == pair;
        self.matrix.cells().iter().filter(|c| same(c.src, c.dst)).count()
    }

    fn accused<'a>(&'a self, found: &'a Localisation) -> impl Iterator<Item = u32> + 'a {
        found.suspects.iter().filter_map(|s| self.topology.find(&s.element))
    }

    /// A good node that `node` has not met: in turn under the leaf of a slow peer, under its own, anywhere; once it met
    /// all of them, a slow peer again.
    fn partner(&mut self, node: u32, peers: &[u32], good: &[u32], round: &Round) -> Option<u32> {
        if round.busy.contains(&node) {
            return None;
        }
        let topology = &self.topology;
        let peer_leaf = peers.first().map(|&peer| topology.leaf(peer));
        let wish = match self.chance.below(3) {
            0 => peer_leaf,
            1 => Some(topology.leaf(node)),
            _ => None,
        };
        let fresh = |other: &u32| {
            *other != node && !round.busy.contains(other) && !self.met.contains(&(node.min(*other), node.max(*other)))
        };
        let wished = good.iter().copied().filter(fresh).find(|&other| wish == Some(topology.leaf(other)));
        let again = || peers.iter().copied().find(|peer| !round.busy.contains(peer));
        wished.or_else(|| good.iter().copied().find(fresh)).or_else(again)
    }

    /// Pairs from and to leaves that have a link nobody crossed in that direction: all spines ever named should show.
    fn uncovered(&mut self) -> Vec<Pair> {
        let mut seen: BTreeSet<(u32, u32, bool)> = BTreeSet::new();
        let mut spines: BTreeSet<u32> = BTreeSet::new();
        let names = spine_names(&self.matrix, &self.topology);
        for cell in self.matrix.cells().iter().filter(|c| c.up != NO_UP) {
            let Some(&spine) = names.get(&cell.up) else { continue };
            spines.insert(spine);
            seen.insert((self.topology.leaf(cell.src), spine, true));
            seen.insert((self.topology.leaf(cell.dst), spine, false));
        }
        let mut round = Round::default();
        let order = shuffled(&mut self.chance, self.topology.len() as u32);
        for leaf in 0..self.topology.leaves().len() as u32 {
            let missing = spines.iter().any(|&s| !seen.contains(&(leaf, s, true)) || !seen.contains(&(leaf, s, false)));
            let own = order.iter().copied().filter(|&node| self.topology.leaf(node) == leaf);
            for node in own.filter(|_| missing) {
                let fresh = |other: &&u32| {
                    let pair = (node.min(**other), node.max(**other));
                    self.topology.leaf(**other) != leaf && !self.met.contains(&pair) && !round.busy.contains(*other)
                };
                if let Some(&other) = order.iter().find(fresh) {
                    round.add(node, other);
                }
            }
        }
        round.pairs
    }
}

/// Number of the spine that each uplink name means, by its part after the leaf's name.
fn spine_names(matrix: &Matrix, topology: &Topology) -> BTreeMap<u32, u32> {
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let mut out = BTreeMap::new();
    for cell in matrix.cells().iter().filter(|c| c.up != NO_UP) {
        let name = matrix.ups()[cell.up as usize].as_str();
        let leaves = topology.leaves();
        let (src, dst) = (&leaves[topology.leaf(cell.src) as usize], &leaves[topology.leaf(cell.dst) as usize]);
        let rest = name.strip_prefix(src.as_str()).or_else(|| name.strip_prefix(dst.as_str())).unwrap_or(name);
        let rest = rest.strip_suffix(dst.as_str()).or_else(|| rest.strip_suffix(src.as_str())).unwrap_or(rest);
        let spine = rest.trim_matches(['-', '/', ':', '_', '.', '>']);
        let next = numbers.len() as u32;
        out.insert(cell.up, *numbers.entry(spine).or_insert(next));
    }
    out
}

/// Pairs without a common node.
#[derive(Default)]
struct Round {
    pairs: Vec<Pair>,
    busy: HashSet<u32>,
}

impl Round {
    fn add(&mut self, a: u32, b: u32) {
        if a != b && !self.busy.contains(&a) && !self.busy.contains(&b) {
            self.busy.extend([a, b]);
            self.pairs.push((a, b));
        }
    }
}

//! Made matrices of pairs: sound ones of many sizes and kinds of noise, and ones with known faults.

#![allow(dead_code, clippy::allow_attributes, reason = "every user of this module needs another part of it")]

use muster_analysis::network::topology::from_csv;
use muster_analysis::network::{Matrix, Topology};
use muster_wire::Direction;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// How the noise of a visit is distributed; all are scaled to the same coefficient of variation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tail {
    Normal,
    /// Student's t with three degrees of freedom.
    Student,
    /// One visit in fifty has five times the noise.
    Mixed,
    /// Exponential on the slow side, so that stragglers are common.
    Straggling,
}

/// What is wrong, with the share of throughput that is left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    Node(usize, f64),
    Tx(usize, f64),
    Rx(usize, f64),
    Leaf(usize, f64),
    Uplink(usize, usize, f64),
    Pair(usize, usize, f64),
    Dead(usize),
}

/// A fabric of leaves and spines, how it is measured, and what is wrong with it.
#[derive(Clone, Debug)]
pub struct Made {
    pub nodes: usize,
    pub per_leaf: usize,
    pub spines: usize,
    pub noise: f64,
    pub tail: Tail,
    /// Standard deviation of the nodes' own multiplicative effects.
    pub natural: f64,
    /// Share of the throughput within a leaf that pairs of two leaves have.
    pub far: f64,
    /// Whether the topology is given.
    pub given: bool,
    /// Whether routes are in the matrix.
    pub routes: bool,
    /// Only pairs whose sender comes first.
    pub one_way: bool,
    pub values: usize,
    pub direction: Direction,
    pub faults: Vec<Fault>,
    /// Nodes that the topology file has under each other's leaf.
    pub swapped: Option<(usize, usize)>,
}

impl Default for Made {
    fn default() -> Self {
        Self {
            nodes: 64,
            per_leaf: 8,
            spines: 4,
            noise: 0.03,
            tail: Tail::Normal,
            natural: 0.0,
            far: 1.0,
            given: true,
            routes: false,
            one_way: false,
            values: 1,
            direction: Direction::HigherIsBetter,
            faults: Vec::new(),
            swapped: None,
        }
    }
}

pub fn name(node: usize) -> String {
    format!("n{:03}", node + 1)
}

pub fn normal(rng: &mut SmallRng) -> f64 {
    let u: f64 = rng.random_range(f64::MIN_POSITIVE..1.0);
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

fn pick<T: Copy>(rng: &mut SmallRng, of: &[T]) -> T {
    of[rng.random_range(0..of.len())]
}

impl Made {
    /// A sound fabric of 3 to 128 nodes with any noise this module knows.
    pub fn clean(seed: u64) -> Self {
        let rng = &mut SmallRng::seed_from_u64(seed ^ 0x0c1e_a500);
        let nodes = pick(rng, &[3, 4, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128]);
        let per_leaf = pick(rng, &[4, 8, 16]);
        let (levels, given) = (rng.random::<f64>() < 0.5, rng.random::<f64>() < 0.5);
        // Leaves of unequal size, or fewer than three, cannot be told from a slow leaf where no topology is given.
        let whole = nodes % per_leaf == 0 && nodes >= 3 * per_leaf;
        Self {
            nodes,
            per_leaf,
            spines: pick(rng, &[1, 2, 4]),
            noise: pick(rng, &[0.005, 0.01, 0.02, 0.05, 0.1]),
            tail: pick(rng, &[Tail::Normal, Tail::Normal, Tail::Student, Tail::Mixed, Tail::Straggling]),
            natural: pick(rng, &[0.0, 0.005, 0.01, 0.02, 0.03]),
            far: if levels && (given || whole) { pick(rng, &[0.9, 0.8, 0.5]) } else { 1.0 },
            given,
            routes: given && rng.random::<f64>() < 0.5,
            one_way: rng.random::<f64>() < 0.3,
            values: pick(rng, &[1, 1, 3]),
            direction: pick(rng, &[Direction::HigherIsBetter, Direction::HigherIsBetter, Direction::LowerIsBetter]),
            ..Self::default()
        }
    }

    /// The same kinds of fabrics, of at least 12 nodes, with one to two faults.
    pub fn faulty(seed: u64) -> Self {
        let rng = &mut SmallRng::seed_from_u64(seed ^ 0xfa01_7000);
        let mut made = Self::clean(seed.wrapping_mul(0x9e37_79b9));
        made.nodes = pick(rng, &[5, 6, 8, 12, 16, 24, 32, 64]);
        made.per_leaf = pick(rng, &[4, 8]).min(made.nodes / 3).max(1);
        made.far = if made.given { made.far } else { 1.0 };
        let leaves = made.leaves();
        let count = if made.nodes >= 12 { rng.random_range(1..3) } else { 1 };
        for _ in 0..count {
            let left = pick(rng, &[0.3, 0.5, 0.7, 0.8, 0.9]);
            let node = rng.random_range(0..made.nodes);
            let other = (node + rng.random_range(1..made.nodes)) % made.nodes;
            let leaf = rng.random_range(0..leaves);
            let kind = rng.random_range(0..8);
            made.faults.push(match kind {
                0 | 1 => Fault::Node(node, left),
                2 => Fault::Tx(node, left),
                3 => Fault::Rx(node, left),
                4 | 5 if made.per_leaf > 1 && leaves > 3 => Fault::Leaf(leaf, left),
                6 if made.routes && leaves > 3 => Fault::Uplink(leaf, rng.random_range(0..made.spines), left),
                7 => Fault::Pair(node, other, left),
                _ => Fault::Dead(node),
            });
        }
        if made.given && made.nodes >= 16 && rng.random::<f64>() < 0.25 {
            made.swapped = Some((0, made.per_leaf));
        }
        made
    }

    pub fn leaf(&self, node: usize) -> usize {
        node / self.per_leaf
    }

    pub fn leaves(&self) -> usize {
        self.nodes.div_ceil(self.per_leaf)
    }

    /// What the topology file says, where there is one.
    pub fn topology(&self) -> Topology {
        let names: Vec<String> = (0..self.nodes).map(name).collect();
        if !self.given {
            return Topology::flat(&names);
        }
        let said = |node: usize| match self.swapped {
            Some((a, b)) if node == a => self.leaf(b),
            Some((a, b)) if node == b => self.leaf(a),
            _ => self.leaf(node),
        };
        let rows: String = names.iter().enumerate().map(|(i, n)| format!("{n},leaf{}\n", said(i))).collect();
        from_csv(&rows).unwrap_or_else(|e| panic!("{e}"))
    }

    fn spine(&self, src: usize, dst: usize) -> usize {
        let hash = (src as u32).wrapping_mul(0x9e37_79b1) ^ (dst as u32).wrapping_mul(0x85eb_ca6b);
        ((hash.wrapping_mul(0xc2b2_ae35) >> 7) as usize) % self.spines
    }

    fn share(&self, src: usize, dst: usize) -> f64 {
        let (a, b) = (self.leaf(src), self.leaf(dst));
        let hit = |fault: &Fault| match *fault {
            Fault::Node(n, left) if n == src || n == dst => left,
            Fault::Dead(n) if n == src || n == dst => 0.0,
            Fault::Tx(n, left) if n == src => left,
            Fault::Rx(n, left) if n == dst => left,
            Fault::Leaf(l, left) if a != b && (a == l || b == l) => left,
            Fault::Uplink(l, s, left) if a != b && (a == l || b == l) && self.spine(src, dst) == s => left,
            Fault::Pair(x, y, left) if (x, y) == (src, dst) || (y, x) == (src, dst) => left,
            _ => 1.0,
        };
        self.faults.iter().map(hit).fold(1.0, f64::min)
    }

    fn deviation(&self, rng: &mut SmallRng) -> f64 {
        self.noise
            * match self.tail {
                Tail::Normal => normal(rng),
                Tail::Student => {
                    let chi: f64 = (0..3).map(|_| normal(rng).powi(2)).sum();
                    normal(rng) / (chi / 3.0).sqrt() / 3.0_f64.sqrt()
                }
                Tail::Mixed => {
                    let wide = if rng.random::<f64>() < 0.02 { 5.0 } else { 1.0 };
                    wide * normal(rng) / 1.22
                }
                Tail::Straggling => 1.0 + rng.random_range(f64::MIN_POSITIVE..1.0_f64).ln(),
            }
    }

    /// All pairs, measured with the noise of `seed`.
    pub fn matrix(&self, seed: u64) -> Matrix {
        let rng = &mut SmallRng::seed_from_u64(seed);
        let own: Vec<f64> = (0..self.nodes).map(|_| (self.natural * normal(rng)).exp()).collect();
        let mut matrix = Matrix::new("bw", self.direction);
        (0..self.nodes).for_each(|node| {
            matrix.endpoint(&name(node));
        });
        for (src, dst) in (0..self.nodes).flat_map(|a| (0..self.nodes).map(move |b| (a, b))) {
            if src == dst || self.one_way && src > dst {
                continue;
            }
            let share = self.share(src, dst);
            let far = self.leaf(src) != self.leaf(dst);
            let level = 100.0 * share * if far { self.far } else { 1.0 } * own[src] * own[dst];
            let values: Vec<f64> = (0..self.values)
                .filter(|_| share > 0.0)
                .map(|_| {
                    let off = self.deviation(rng);
                    match self.direction {
                        Direction::HigherIsBetter => level * (1.0 + off).max(0.01),
                        Direction::LowerIsBetter => 1000.0 / level * (1.0 - off).max(0.01),
                    }
                })
                .collect();
            let up = format!("leaf{}-spine{}", self.leaf(src), self.spine(src, dst));
            matrix.push(src as u32, dst as u32, &values, (self.routes && far).then_some(up.as_str()));
        }
        matrix
    }

    /// Names that may be accused.
    pub fn guilty(&self) -> Vec<String> {
        let mut out = Vec::new();
        for fault in &self.faults {
            match *fault {
                Fault::Node(n, _) | Fault::Tx(n, _) | Fault::Rx(n, _) | Fault::Dead(n) => out.push(name(n)),
                Fault::Leaf(l, _) => {
                    out.push(format!("leaf{l}"));
                    // A leaf of one node is that node.
                    let members: Vec<usize> = (0..self.nodes).filter(|&n| self.leaf(n) == l).collect();
                    out.extend((members.len() == 1).then(|| name(members[0])));
                }
                Fault::Uplink(l, s, _) => {
                    out.push(format!("leaf{l}-spine{s}"));
                    // Where a leaf has one uplink only, they are one.
                    out.extend((self.spines == 1).then(|| format!("leaf{l}")));
                }
                Fault::Pair(a, b, _) => {
                    out.extend([format!("{}-{}", name(a), name(b)), format!("{}-{}", name(b), name(a))])
                }
            }
        }
        if self.spines == 1 {
            let links: Vec<String> =
                out.iter().filter(|n| n.starts_with("leaf")).map(|n| format!("{n}-spine0")).collect();
            out.extend(links);
        }
        out
    }
}

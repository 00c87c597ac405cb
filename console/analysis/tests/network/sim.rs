//! A made-up leaf-spine fleet whose pairs are as good as the worst thing they cross.

#![allow(dead_code, clippy::allow_attributes, reason = "every user of this module needs another part of it")]

use muster_analysis::network::topology::from_csv;
use muster_analysis::network::{Matrix, Topology};
use muster_wire::Direction;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// How the spine of a pair is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Routing {
    /// Number of the receiver modulo spines.
    DestinationMod,
    /// A hash of both ends, known to the scan.
    Ecmp,
    /// A hash of both ends that nobody knows.
    EcmpUnknown,
}

/// What is wrong, with the share of throughput that is left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    Node(u32, f64),
    Tx(u32, f64),
    Rx(u32, f64),
    Leaf(u32, f64),
    Uplink(u32, u32, f64),
    Pair(u32, u32, f64),
    Dead(u32),
}

#[derive(Clone, Copy, Debug)]
pub struct Fleet {
    pub racks: u32,
    pub per_rack: u32,
    pub spines: u32,
    pub routing: Routing,
    pub noise: f64,
    /// Natural spread of nodes.
    pub nodes: f64,
    pub missing: f64,
    pub direction: Direction,
}

impl Default for Fleet {
    fn default() -> Self {
        let (routing, direction) = (Routing::DestinationMod, Direction::HigherIsBetter);
        Self { racks: 4, per_rack: 4, spines: 2, routing, noise: 0.05, nodes: 0.01, missing: 0.0, direction }
    }
}

pub fn normal(rng: &mut SmallRng) -> f64 {
    let u: f64 = rng.random_range(f64::MIN_POSITIVE..1.0);
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

impl Fleet {
    pub fn len(&self) -> u32 {
        self.racks * self.per_rack
    }

    pub fn topology(&self) -> Topology {
        let rows: String = (0..self.len()).map(|i| format!("n{i},leaf{}\n", i / self.per_rack)).collect();
        from_csv(&rows).unwrap_or_else(|e| panic!("{e}"))
    }

    pub fn rack(&self, node: u32) -> u32 {
        node / self.per_rack
    }

    pub fn spine(&self, src: u32, dst: u32) -> u32 {
        match self.routing {
            Routing::DestinationMod => dst % self.spines,
            _ => {
                (src.wrapping_mul(0x9e37_79b1) ^ dst.wrapping_mul(0x85eb_ca6b)).wrapping_mul(0xc2b2_ae35) % self.spines
            }
        }
    }

    /// Name of the uplink a pair crosses, as far as the scan knows it.
    pub fn up(&self, src: u32, dst: u32) -> Option<String> {
        let known = self.routing != Routing::EcmpUnknown && self.rack(src) != self.rack(dst);
        known.then(|| format!("leaf{}-spine{}", self.rack(src), self.spine(src, dst)))
    }

    /// Share of the usual throughput that the faults leave to a pair.
    pub fn share(&self, faults: &[Fault], src: u32, dst: u32) -> f64 {
        let (a, b) = (self.rack(src), self.rack(dst));
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
        faults.iter().map(hit).fold(1.0, f64::min)
    }

    /// One value of one pair; `offsets` are the natural offsets of the nodes.
    pub fn value(&self, rng: &mut SmallRng, offsets: &[f64], faults: &[Fault], (src, dst): (u32, u32)) -> f64 {
        let share = self.share(faults, src, dst);
        if share == 0.0 {
            return f64::NAN;
        }
        let far = if self.rack(src) == self.rack(dst) { 1.0 } else { 0.8 };
        let rate =
            100.0 * share * far * offsets[src as usize].min(offsets[dst as usize]) * (self.noise * normal(rng)).exp();
        if self.direction == Direction::HigherIsBetter { rate } else { 1000.0 / rate }
    }

    pub fn offsets(&self, rng: &mut SmallRng) -> Vec<f64> {
        (0..self.len()).map(|_| 1.0 + self.nodes * normal(rng)).collect()
    }

    /// All ordered pairs, some missing.
    pub fn matrix(&self, faults: &[Fault], seed: u64) -> Matrix {
        let mut rng = SmallRng::seed_from_u64(seed);
        let offsets = self.offsets(&mut rng);
        let mut matrix = self.empty();
        for src in 0..self.len() {
            for dst in (0..self.len()).filter(|&dst| dst != src) {
                if rng.random::<f64>() >= self.missing {
                    let value = self.value(&mut rng, &offsets, faults, (src, dst));
                    matrix.push(src, dst, &[value], self.up(src, dst).as_deref());
                }
            }
        }
        matrix
    }

    /// A matrix that knows the nodes' names.
    pub fn empty(&self) -> Matrix {
        let mut matrix = Matrix::new("throughput", self.direction);
        (0..self.len()).for_each(|i| {
            matrix.endpoint(&format!("n{i}"));
        });
        matrix
    }

    /// What the verdict should say: `(kind, element)`.
    pub fn expected(&self, faults: &[Fault]) -> Vec<String> {
        let name = |fault: &Fault| match *fault {
            Fault::Node(n, _) | Fault::Dead(n) => format!("node n{n}"),
            Fault::Tx(n, _) => format!("node_tx n{n}"),
            Fault::Rx(n, _) => format!("node_rx n{n}"),
            Fault::Leaf(l, _) => format!("leaf leaf{l}"),
            Fault::Uplink(l, s, _) => format!("uplink leaf{l}-spine{s}"),
            Fault::Pair(a, b, _) => format!("pair n{}-n{}", a.min(b), a.max(b)),
        };
        let mut names: Vec<String> = faults.iter().map(name).collect();
        names.sort();
        names
    }
}

/// `kind element` of every suspect, in order.
pub fn named(found: &muster_analysis::network::Localisation) -> Vec<String> {
    let mut names: Vec<String> = found
        .suspects
        .iter()
        .map(|s| {
            let kind = serde_json::to_string(&s.kind).unwrap_or_default();
            format!("{} {}", kind.trim_matches('"'), s.element)
        })
        .collect();
    names.sort();
    names
}

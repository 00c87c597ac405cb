//! What is known of the pairs of a fleet: the matrix so far, how far the scan is, and what the slow pairs point at.

use std::sync::Arc;

use muster_analysis::network::localise::{Suspect, Undecided};
use muster_analysis::network::topology::Source;
use muster_wire::{Direction, Unit};

use crate::snapshot::Curve;

/// One metric over all pairs of endpoints.
#[derive(Clone, Debug)]
pub struct Network {
    /// Where the pairs come from: a run or a file.
    pub origin: String,
    /// Metrics that can be looked at; [`crate::Intent::PairMetric`] chooses.
    pub metrics: Arc<[String]>,
    /// The one shown, an index into `metrics`.
    pub metric: usize,
    /// Unit of its values, where it is known.
    pub unit: Option<Unit>,
    /// Which way is better.
    pub direction: Direction,
    /// Where leaves and distances come from; a guessed one is said to be.
    pub topology: Source,
    /// Nodes, or NICs written `node:nic`, so ordered that neighbours in the fabric are neighbours here.
    pub endpoints: Arc<[Endpoint]>,
    /// Names of the leaf switches.
    pub leaves: Arc<[String]>,
    /// What each pair delivers, by places in `endpoints`.
    pub grid: Arc<Grid>,
    /// How far the scan is; `None` for pairs that were read from a file.
    pub progress: Option<Progress>,
    /// Accused elements, most certain first.
    pub suspects: Arc<[Suspect]>,
    /// Slow pairs that several explanations fit.
    pub undecided: Arc<[Undecided]>,
    /// Pairs whose measurement would decide, most useful first.
    pub next_pairs: Arc<[[String; 2]]>,
    /// What is usual at each distance, nearest first.
    pub tiers: Arc<[Tier]>,
    /// The samples of the pair that [`crate::Intent::Pair`] named.
    pub pair: Option<Arc<Pair>>,
}

/// A node or one of its NICs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Name.
    pub name: String,
    /// Index into [`Network::leaves`]; `None` where the topology does not know the node.
    pub leaf: Option<usize>,
}

/// How far a scan of pairs is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Rounds begun, the one that goes on included.
    pub round: usize,
    /// Rounds planned; 0 where each follows from those before.
    pub rounds: usize,
    /// Pairs measured or failed.
    pub done: usize,
    /// Pairs planned; 0 where each round follows from those before.
    pub total: usize,
    /// Time to go, as far as known.
    pub eta_ms: Option<u64>,
    /// Whether it goes on.
    pub going: bool,
    /// Nodes left out of later rounds because most of their pairs failed.
    pub dropped: Arc<[String]>,
}

/// What is usual at one distance.
#[derive(Clone, Debug)]
pub struct Tier {
    /// Links between the two nodes; `None` where the topology does not say.
    pub hops: Option<u16>,
    /// Pairs measured.
    pub pairs: usize,
    /// Usual value, in the metric's unit.
    pub usual: f64,
    /// Robust relative standard deviation of the pairs around it.
    pub spread: f64,
    /// CDF of its pairs.
    pub curve: Curve,
}

/// One pair in both directions.
#[derive(Clone, Debug)]
pub struct Pair {
    /// Sender there and receiver back: a place in [`Network::endpoints`].
    pub src: usize,
    /// The other one.
    pub dst: usize,
    /// Distance in links, where it is known.
    pub hops: Option<u16>,
    /// Usual value at this distance, in the metric's unit.
    pub usual: Option<f64>,
    /// From `src` to `dst`.
    pub there: Visits,
    /// From `dst` to `src`.
    pub back: Visits,
}

/// What was measured of one direction of a pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Visits {
    /// How often it was visited.
    pub visits: usize,
    /// Visits without a value: it failed.
    pub failed: usize,
    /// Values of all visits in the order measured, in the metric's unit.
    pub values: Arc<[f64]>,
    /// Uplinks crossed, where routing is known.
    pub up: Arc<[String]>,
}

/// What every ordered pair delivers, as a share of what is usual at its distance: 1 is usual, 0.5 is half the rate or
/// twice the time, 0 failed. Four bytes a pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    n: usize,
    /// Row-major by sender; NaN where nothing was measured.
    shares: Vec<f32>,
}

impl Grid {
    /// A grid of `n` endpoints without a measurement.
    #[must_use]
    pub fn new(n: usize) -> Self {
        Self { n, shares: vec![f32::NAN; n * n] }
    }

    /// Number of endpoints.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.n
    }

    /// Whether there are no endpoints.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Sets what `src` delivers to `dst`; places outside the grid are ignored.
    pub fn set(&mut self, src: usize, dst: usize, share: f32) {
        if src < self.n && dst < self.n {
            self.shares[src * self.n + dst] = share;
        }
    }

    /// What `src` delivers to `dst`, `None` where it was not measured.
    #[must_use]
    pub fn get(&self, src: usize, dst: usize) -> Option<f32> {
        self.row(src).get(dst).copied().filter(|s| !s.is_nan())
    }

    /// What `src` delivers to everyone; NaN where nothing was measured. Empty for a place outside the grid.
    #[must_use]
    pub fn row(&self, src: usize) -> &[f32] {
        self.shares.chunks_exact(self.n.max(1)).nth(src).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_not_measured_is_no_pair_that_failed() {
        let mut grid = Grid::new(3);
        grid.set(0, 2, 0.0);
        grid.set(7, 0, 1.0);
        assert_eq!([grid.get(0, 2), grid.get(2, 0), grid.get(0, 9), grid.get(9, 0)], [Some(0.0), None, None, None]);
        assert!(Grid::new(0).row(0).is_empty());
    }
}

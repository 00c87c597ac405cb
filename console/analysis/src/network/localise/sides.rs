//! How does each node send and receive, over all its pairs?

use super::Case;

/// Visits per node and direction that are looked at.
const MOST: usize = 400;
/// Standard error of a median in standard deviations over the root of the count.
pub(super) const MEDIAN_ERROR: f64 = 1.2533;

/// One direction of one node.
#[derive(Clone, Default)]
pub(super) struct Side {
    /// Residuals, ascending.
    pub(super) worse: Vec<f32>,
    /// Middle one.
    pub(super) median: f64,
    /// Its standard error.
    pub(super) error: f64,
}

/// Sending and receiving side of every node.
pub(super) struct Sides {
    pub(super) tx: Vec<Side>,
    pub(super) rx: Vec<Side>,
    /// Distinct other nodes that each one was measured with, as far as looked at.
    pub(super) partners: Vec<usize>,
}

impl Sides {
    pub(super) fn of(case: &Case<'_>) -> Self {
        let places = case.places;
        let nodes = places.nodes.len();
        let step = (case.matrix.len() / nodes.max(1) / MOST).max(1);
        let (mut tx, mut rx) = (vec![Side::default(); nodes], vec![Side::default(); nodes]);
        let mut met: Vec<Vec<u32>> = vec![Vec::new(); nodes];
        let mut spread = (0.0_f64, 0_usize);
        for (at, cell) in case.matrix.cells().iter().enumerate() {
            let worse = case.residuals.worse[at];
            let (src, dst) = (places.node_of[cell.src as usize], places.node_of[cell.dst as usize]);
            // Neighbours in the order of visits share a sender, so whole diagonals are taken.
            if worse.is_nan() || !(src + dst).is_multiple_of(step as u32) {
                continue;
            }
            tx[src as usize].worse.push(worse);
            rx[dst as usize].worse.push(worse);
            met[src as usize].push(dst);
            met[dst as usize].push(src);
            let own = f64::from(case.spread(at));
            spread = (spread.0 + own * own, spread.1 + 1);
        }
        let spread = (spread.0 / spread.1.max(1) as f64).sqrt();
        for side in tx.iter_mut().chain(&mut rx).filter(|side| !side.worse.is_empty()) {
            side.worse.sort_unstable_by(f32::total_cmp);
            side.median = f64::from(side.worse[(side.worse.len() - 1) / 2]);
            side.error = MEDIAN_ERROR * spread / (side.worse.len() as f64).sqrt();
        }
        let distinct = |mut met: Vec<u32>| {
            met.sort_unstable();
            met.dedup();
            met.len() * step
        };
        Self { tx, rx, partners: met.into_iter().map(distinct).collect() }
    }
}

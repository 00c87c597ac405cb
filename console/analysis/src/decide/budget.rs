//! How the chances of a false finding are shared out among nodes, metrics and ways of looking.
//!
//! The quietest metric of a node gets most, the next less, and so on: however many noisy metrics there are, the quiet
//! ones keep what they have. A metric's noise is estimated from the other nodes only, so a node cannot change its share.

use super::radix;

/// Share of the median step, the mean step and the averages over metrics in the chance of a false fail.
pub(super) const MEDIAN: f64 = 0.5;
pub(super) const MEAN: f64 = 0.2;
pub(super) const AVERAGES: f64 = 0.3;
/// The slow steps' own share in the chance of a false warning.
pub(super) const SLOW_STEPS: f64 = 0.2;
/// That of stops counted over the metrics of one component, of which a node has a thousand at most.
pub(super) const STOPS: f64 = 0.1 / 1000.0;
/// Sum over all ranks is below 1: `0.93 * zeta(1.5, 4)`.
const SCALE: f64 = 0.93;
/// Fleets of up to this many nodes get a fifth: laws with so few degrees of freedom hold less exactly.
const SMALL: usize = 7;

/// Share of the metric of the given rank; 1 is the quietest.
pub(super) fn share(rank: usize) -> f64 {
    SCALE * (rank as f64 + 3.0).powf(-1.5)
}

/// Chance left to one node of a fleet of `nodes`, in a run of `run_nodes`, as log10.
pub(super) fn per_node(chance: f64, nodes: usize, run_nodes: usize) -> f64 {
    let small = if nodes <= SMALL { 5.0 } else { 1.0 };
    (chance / small / run_nodes.max(nodes).max(1) as f64).log10()
}

/// log10 of the shares of ranks, for as many metrics as there are.
pub(super) struct Shares {
    /// Running sum of shares.
    sums: Vec<f64>,
    logs: Vec<f64>,
}

impl Shares {
    pub(super) fn of(metrics: usize) -> Self {
        let mut sum = 0.0;
        let mut sums = vec![0.0];
        for rank in 1..=metrics {
            sum += share(rank);
            sums.push(sum);
        }
        Self { sums, logs: (1..=metrics).map(|rank| share(rank).log10()).collect() }
    }

    /// Calls `set` with every metric and the log10 of its share; `keys` are those of [`key`], in any order. Metrics of
    /// equal noise share alike, so that their order plays no part.
    pub(super) fn deal(&self, keys: &mut [u64], mut set: impl FnMut(u32, f64)) {
        radix::sort(keys, |key| *key);
        let mut from = 0;
        for equal in keys.chunk_by(|a, b| a >> 32 == b >> 32) {
            let to = from + equal.len();
            let log = if equal.len() == 1 {
                self.logs[from]
            } else {
                ((self.sums[to] - self.sums[from]) / equal.len() as f64).log10()
            };
            equal.iter().for_each(|key| set(*key as u32, log));
            from = to;
        }
    }
}

/// A metric's number behind its noise, which is not negative: then bits are ordered as the values are.
pub(super) fn key(noise: f64, metric: u32) -> u64 {
    u64::from((noise as f32).to_bits()) << 32 | u64::from(metric)
}

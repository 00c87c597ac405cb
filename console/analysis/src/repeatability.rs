//! How alike the healthy nodes are: the mean similarity over their pairs.

use muster_wire::Direction;

use crate::medoid::medoid;
use crate::{Sample, similarity};

/// Up to this many nodes the definition is cheap enough to be evaluated pair by pair.
pub(crate) const BY_PAIRS: usize = 32;

/// Mean similarity over all pairs, `None` for fewer than two samples. Exact for single values and for small
/// fleets; large fleets of series take it from one sweep, normalised by the fleet's median instead of each
/// pair's (they differ by about a thousandth among nodes that are alike).
#[must_use]
pub fn repeatability(samples: &[&Sample], dir: Direction, tau: f64) -> Option<f64> {
    let n = samples.len();
    if n > BY_PAIRS || samples.iter().all(|s| s.len() == 1) {
        return medoid(samples, dir, tau)?.mean_similarity;
    }
    let pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
    let sum: f64 = pairs.map(|(i, j)| similarity(samples[i], samples[j], dir, tau)).sum();
    (n > 1).then(|| sum / (n * (n - 1) / 2) as f64)
}

//! How far from the criterion does a healthy node come out by chance? Alpha may accuse only beyond that.
//!
//! Every healthy node lies at two one-sided distances from the criterion: worse in some of its steps, better in
//! others. What both have in common is the noise of finite series; their difference is where the node stands, and of
//! single values it is all there is. The next healthy node stays within the prediction limit of a normal law:
//!
//! ```text
//! limit = mean(common) + mean(worse - better) + t(n - 1, 1 - 1/1000) sqrt(1 + 1/n) sqrt(var(worse - better) + var(common))
//! ```
//!
//! so alpha 0.95 asks for a measured spread of at most 0.7 % with 5 nodes, 1.0 % with 8, 1.3 % with 16, 1.6 % with 256.
//!
//! Measured over 4,000 healthy nodes a cell (`tests/scatter.rs`): share of fleets with status ok, in percent, by the true
//! spread of the nodes, and the largest share over all spreads to 10 % of healthy nodes that an ok criterion makes defects,
//! of its own fleet and of fresh draws. Without this rule it was up to 11 % at spreads of 2 to 4 %.
//!
//! ```text
//! values  nodes   0.2 %  0.5 %  1 %  1.3 %  1.6 %  2 %  3 %   own     fresh
//! 1       5       100    83     19   9      4      2    1     0.00 %  0.08 %
//! 1       8       100    100    56   23     11     4    1     0.03 %  0.05 %
//! 1       16      100    100    96   60     21     5    0     0.05 %  0.05 %
//! 1       32      100    100    100  86     32     6    0     0.03 %  0.00 %
//! 1       64      100    100    100  100    42     0    0     0.03 %  0.05 %
//! 1       256     100    100    100  100    80     0    0     0.08 %  0.03 %
//! 32, 1 % 5       100    80     21   10     4      3    1     0.03 %  0.05 %
//! 32, 1 % 16      100    100    94   59     20     2    0     0.03 %  0.03 %
//! 32, 1 % 64      100    100    100  100    39     0    0     0.05 %  0.08 %
//! 32, 3 % 5       75     52     17   10     5      2    0     0.03 %  0.05 %
//! 32, 3 % 16      100    100    88   52     18     3    0     0.05 %  0.05 %
//! 32, 3 % 64      100    100    100  89     21     0    0     0.08 %  0.03 %
//! ```

use muster_wire::Direction;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::distance::both_sided;
use crate::{Cluster, Sample};

/// Chance that a healthy node lies beyond the limit.
const CHANCE: f64 = 1e-3;
/// Spreads between two clusters of a large fleet; see [`separated`].
const GAP_SPREADS: f64 = 5.0;
/// Fleet size at which twice as many are asked for.
const GAP_SMALL: f64 = 6.0;

/// Where a node lies from the criterion, as normalised distances (0 to 1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// By the steps in which it is worse.
    pub(crate) worse: f64,
    /// By those in which it is better.
    pub(crate) better: f64,
}

impl Place {
    pub(crate) fn of(sample: &Sample, centre: &Sample, dir: Direction, tau: f64) -> Self {
        let [worse, better] = both_sided(sample, centre, dir, tau);
        Self { worse, better }
    }

    /// One-sided similarity to the criterion.
    pub(crate) fn similarity(self) -> f64 {
        1.0 - self.worse
    }

    fn signed(self) -> f64 {
        self.worse - self.better
    }

    fn common(self) -> f64 {
        self.worse.min(self.better)
    }
}

/// One-sided distance (0 to 1) that a healthy node exceeds with a chance of one in a thousand. `chosen` says that nodes
/// were left out for lying far outside, which may have been chance: it costs a degree of freedom. `None` for fewer than
/// three nodes.
pub(crate) fn limit(healthy: &[Place], chosen: bool) -> Option<f64> {
    let n = healthy.len() as f64;
    if healthy.len() < 3 {
        return None;
    }
    let freedom = if chosen { n - 2.0 } else { n - 1.0 };
    let signed = moments(healthy.iter().map(|p| p.signed()));
    // The criterion itself has nothing in common with itself.
    let common = moments(healthy.iter().map(|p| p.common()).filter(|common| *common > 0.0));
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(1.0 - CHANCE);
    let limit = common.mean + signed.mean + t * (1.0 + 1.0 / n).sqrt() * (signed.variance + common.variance).sqrt();
    Some(limit.clamp(0.0, 1.0))
}

/// Whether two sets of nodes are clusters and not the halves of one cloud: their means lie apart by more spreads within
/// them than the best cut through normal values leaves between its halves.
pub(crate) fn separated(places: &[Place], groups: &[Vec<usize>; 2]) -> bool {
    let [a, b] = groups.each_ref().map(|group| moments(group.iter().map(|&i| places[i].signed())));
    let n = (a.n + b.n).max(3.0);
    let within = ((a.variance * (a.n - 1.0).max(0.0) + b.variance * (b.n - 1.0).max(0.0)) / (n - 2.0)).sqrt();
    (a.mean - b.mean).abs() > GAP_SPREADS * (1.0 + GAP_SMALL / n) * within
}

/// Size and level of both clusters.
pub(crate) fn clusters(samples: &[&Sample], groups: &[Vec<usize>; 2]) -> Vec<Cluster> {
    let median = |group: &Vec<usize>| {
        let mut medians: Vec<f64> = group.iter().map(|&i| samples[i].median()).collect();
        medians.sort_unstable_by(f64::total_cmp);
        crate::sample::median_of_sorted(&medians)
    };
    groups.iter().map(|group| Cluster { nodes: group.len(), median: median(group) }).collect()
}

struct Moments {
    n: f64,
    mean: f64,
    variance: f64,
}

/// Mean and variance; zeros where there are too few values.
fn moments(values: impl Iterator<Item = f64> + Clone) -> Moments {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n.max(1.0);
    let squares: f64 = values.map(|v| (v - mean) * (v - mean)).sum();
    Moments { n, mean, variance: squares / (n - 1.0).max(1.0) }
}

//! Is an element slower than its peers differ among each other anyway?
//!
//! The likelihoods of the search take the spread of single pairs for known and all nodes for alike. In a small fabric
//! the spread is an estimate from a dozen pairs, and nodes differ a little by nature. So an accusation must also stand
//! as a prediction interval does: beyond Student's quantile, with the degrees of freedom that the sound part leaves.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use super::Case;
use super::sides::MEDIAN_ERROR;

/// Chance per matrix that sound elements of one family are accused.
const ACCUSED: f64 = 1e-4;
/// Chance that they are mentioned.
const MENTIONED: f64 = 1e-3;
/// More than this, nodes of one model do not differ by nature (standard deviation, as a logarithm).
const NATURAL: f64 = 0.05;
/// Residuals are clipped at this many spreads.
const CLIP: f64 = 4.0;
/// Degrees of freedom from which on Student's distribution is the normal one to four digits.
const NORMAL: usize = 1_000_000;

/// How the sound part of a matrix spreads.
pub(super) struct Peers {
    /// Standard deviation of the nodes' means, and how many nodes.
    nodes: (f64, usize),
    /// Standard deviation of single visits, and how many.
    visits: (f64, usize),
    /// Mean of the sound part.
    pub(super) centre: f64,
}

/// What a comparison with the peers says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// As its peers are.
    Usual,
    /// Rare, but not rare enough to accuse.
    Rare,
    /// Beyond what the peers explain.
    Beyond,
}

impl Peers {
    /// From the visits that `explained` does not mark.
    pub(super) fn of(case: &Case<'_>, explained: &[bool]) -> Self {
        let places = case.places;
        let mut sums = vec![(0.0_f64, 0_usize); places.nodes.len()];
        let (mut total, mut squares, mut count) = (0.0, 0.0, 0_usize);
        for (at, cell) in case.matrix.cells().iter().enumerate() {
            let worse = f64::from(case.residuals.worse[at]);
            if worse.is_nan() || explained[at] {
                continue;
            }
            let limit = CLIP * f64::from(case.spread(at));
            let worse = worse.clamp(-limit, limit);
            (total, squares, count) = (total + worse, squares + worse * worse, count + 1);
            for end in [cell.src, cell.dst] {
                let sum = &mut sums[places.node_of[end as usize] as usize];
                *sum = (sum.0 + worse, sum.1 + 1);
            }
        }
        let centre = total / count.max(1) as f64;
        let free = count.saturating_sub(1).max(1) as f64;
        let visits = ((squares - count as f64 * centre * centre).max(0.0) / free).sqrt();
        let means: Vec<f64> = sums.iter().filter(|s| s.1 > 0).map(|s| s.0 / s.1 as f64).collect();
        let mean = means.iter().sum::<f64>() / means.len().max(1) as f64;
        let spread = means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>();
        let nodes = (spread / means.len().saturating_sub(1).max(1) as f64).sqrt();
        Self { nodes: (nodes, means.len()), visits: (visits, count), centre }
    }

    /// How an element's median residual over `visits` visits of `own` nodes of its own stands against peers, of which
    /// there are `family`.
    pub(super) fn standing(&self, effect: f64, (visits, own): (usize, usize), family: usize) -> Standing {
        let beyond = |chance: f64| effect - self.centre > self.limit(chance / family.max(1) as f64, visits, own);
        if beyond(ACCUSED) {
            Standing::Beyond
        } else if beyond(MENTIONED) {
            Standing::Rare
        } else {
            Standing::Usual
        }
    }

    fn limit(&self, chance: f64, visits: usize, own: usize) -> f64 {
        let root = |n: usize| (n.max(1) as f64).sqrt();
        let by_nodes =
            student(chance, self.nodes.1) * self.nodes.0 * (1.0 + (self.nodes.1.max(1) as f64).recip()).sqrt();
        let by_nature = Normal::standard().inverse_cdf(1.0 - chance) * NATURAL;
        let natural = by_nodes.min(by_nature) / root(own);
        let noise = student(chance, self.visits.1) * self.visits.0 * MEDIAN_ERROR / root(visits);
        natural.hypot(noise)
    }
}

/// Quantile of Student's distribution that `chance` lies beyond, from a variance of `n` values.
pub(super) fn student(chance: f64, n: usize) -> f64 {
    // A full scan of 3,000 nodes has 18 million, with which the search for the quantile never ends.
    let free = n.saturating_sub(1).min(NORMAL);
    if free == 0 {
        return f64::INFINITY;
    }
    StudentsT::new(0.0, 1.0, free as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - chance))
}

/// Distinct nodes at the ends of visits on an element's own side: one for a node, its members for a leaf.
pub(super) fn own_nodes(case: &Case<'_>, visits: impl Iterator<Item = usize>) -> usize {
    let mut seen = std::collections::BTreeMap::<u32, usize>::new();
    let mut all = 0_usize;
    for cell in visits.map(|at| case.matrix.cells()[at]) {
        all += 1;
        for end in [cell.src, cell.dst] {
            *seen.entry(case.places.node_of[end as usize]).or_default() += 1;
        }
    }
    // Effective number by Herfindahl: a node at one end of every visit counts as one.
    let squares: f64 = seen.values().map(|&n| (n as f64 / all.max(1) as f64).powi(2)).sum();
    if squares > 0.0 { (squares.recip().round() as usize).max(1) } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_peers_need_more_than_many() {
        let peers = |nodes: usize| Peers { nodes: (0.01, nodes), visits: (0.03, 2 * nodes), centre: 0.0 };
        let limit = |nodes: usize| peers(nodes).limit(1e-5, 2 * nodes, 1);
        assert!(limit(4) > limit(8) && limit(8) > limit(64), "{} {} {}", limit(4), limit(8), limit(64));
        assert_eq!(peers(64).standing(0.5, (126, 1), 64), Standing::Beyond);
        assert_eq!(peers(64).standing(0.02, (126, 1), 64), Standing::Usual);
        assert!(student(1e-3, 1).is_infinite());
    }

    #[test]
    fn a_scan_of_any_size_has_a_quantile_and_that_of_a_large_one_is_the_normal_distributions() {
        for n in [1_000_001, 18_000_000, usize::MAX] {
            assert!((student(1e-7, n) / 5.199_338 - 1.0).abs() < 1e-4, "{n}: {}", student(1e-7, n));
        }
    }
}

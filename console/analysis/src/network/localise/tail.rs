//! How far out do single visits lie by chance?
//!
//! The tail of the residuals is fitted beyond a threshold (Hill, *A simple general approach to inference about the tail
//! of a distribution*, Annals of Statistics 3(5), 1975) without the few that are asked about, so that a matrix with heavy
//! tails does not accuse the pair that happened to be its worst.

use muster_wire::Direction;

use super::Case;

/// Share of the visits that are the tail, and the least number of them.
const SHARE: f64 = 0.05;
const FEWEST: usize = 10;
/// Fewer visits have no tail.
const LEAST: usize = 40;
/// Most visits looked at.
const MOST: usize = 50_000;

/// Tail of the sizes of a matrix' residuals.
pub(super) struct Tail {
    /// Where it begins, and how many visits lie beyond.
    from: f64,
    beyond: f64,
    /// Index of its power law.
    index: f64,
}

impl Tail {
    /// `None` for too few visits. `asked` are visits that are not part of it, in any order.
    pub(super) fn of(case: &Case<'_>, explained: &[bool], asked: &[usize]) -> Option<Self> {
        let step = (case.matrix.len() / MOST).max(1);
        let mut skip = vec![false; case.matrix.len()];
        asked.iter().for_each(|&at| skip[at] = true);
        let taken = (0..case.matrix.len()).step_by(step).filter(|&at| !skip[at] && !explained[at]);
        let sizes = taken.map(|at| size(case, at));
        let mut sizes: Vec<f64> = sizes.filter(|size| size.is_finite()).collect();
        let n = sizes.len();
        if n < LEAST {
            return None;
        }
        sizes.sort_unstable_by(|a, b| b.total_cmp(a));
        let count = ((SHARE * n as f64) as usize).max(FEWEST);
        let from = sizes[count].max(1e-3);
        let logs: f64 = sizes[..count].iter().map(|size| (size / from).ln()).sum();
        Some(Self { from, beyond: (count * step) as f64, index: count as f64 / logs.max(1e-6) })
    }

    /// Visits expected this many spreads out or more.
    pub(super) fn expected(&self, spreads: f64) -> f64 {
        if spreads <= self.from { self.beyond } else { self.beyond * (spreads / self.from).powf(-self.index) }
    }
}

/// How far a visit's value is from the usual one, in spreads: of values, not of logarithms, since noise that is added
/// makes logarithms of small values large.
pub(super) fn size(case: &Case<'_>, at: usize) -> f64 {
    let worse = f64::from(case.residuals.worse[at]);
    let log = if case.matrix.direction() == Direction::HigherIsBetter { -worse } else { worse };
    log.exp_m1().abs() / f64::from(case.spread(at))
}

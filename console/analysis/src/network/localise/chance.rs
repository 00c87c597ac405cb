//! Could the slow visits of an element be chance, in a scan where single visits are slow for no reason?
//!
//! The likelihoods of the search take one visit in a hundred for an outlier. Where machines stand still now and then there are many
//! more, and of many elements with two or three visits each, one has only slow ones. How often visits are slow for no reason shows
//! in those that no element explains.

use std::collections::BTreeMap;

use statrs::function::beta::beta_reg;

use super::Case;
use crate::network::Cell;

/// Chance, per scan and family of elements, above which nothing is accused.
const ACCUSED: f64 = 0.01;
/// Elements with more visits than this are never slow by chance.
const MANY: usize = 64;

/// Visits that no element explains.
pub(super) struct Unexplained<'a> {
    case: &'a Case<'a>,
    explained: &'a [bool],
    /// How much worse than usual the slow ones are, ascending.
    slow: Vec<f32>,
    all: usize,
}

impl<'a> Unexplained<'a> {
    /// The visits that `explained` does not mark.
    pub(super) fn new(case: &'a Case<'a>, explained: &'a [bool]) -> Self {
        let mut out = Self { case, explained, slow: Vec::new(), all: 0 };
        (out.slow, out.all) = out.of(0..case.matrix.len());
        out
    }

    /// The slow ones among `visits`, ascending, and how many there are in all.
    fn of(&self, visits: impl Iterator<Item = usize>) -> (Vec<f32>, usize) {
        let (mut slow, mut all) = (Vec::new(), 0);
        for worse in visits.filter(|&at| !self.explained[at]).map(|at| self.case.residuals.worse[at]) {
            all += usize::from(!worse.is_nan());
            slow.extend((worse > self.case.least).then_some(worse));
        }
        slow.sort_unstable_by(f32::total_cmp);
        (slow, all)
    }

    /// Whether the visits `own` of one of `family` elements may be as slow as they are by chance, if chance makes visits at least
    /// half as slow as often as the others show. A visit that failed is never chance.
    pub(super) fn may_be(&self, own: &[usize], family: usize) -> bool {
        let Case { matrix, residuals, .. } = self.case;
        if own.is_empty() || own.len() > MANY || own.iter().any(|&at| matrix.values(at).is_empty()) {
            return false;
        }
        let mut worse: Vec<f32> = own.iter().map(|&at| residuals.worse[at]).collect();
        worse.sort_unstable_by(f32::total_cmp);
        let bar = (worse[worse.len() / 2] / 2.0).max(self.case.least);
        let beyond = |slow: &[f32]| slow.len() - slow.partition_point(|worse| *worse <= bar);
        let (own_slow, own_all) = self.of(own.iter().copied());
        let (slow, all) = (beyond(&self.slow) - beyond(&own_slow), self.all - own_all);
        // That a few visits show none does not prove that there are none: half a visit more than seen.
        let rate = (slow as f64 + 0.5) / (all as f64 + 1.0);
        let (slow, all) = visits(matrix.cells(), own, |at| residuals.worse[at] > bar);
        slow == 0 || family as f64 * beta_reg(slow as f64, (all - slow + 1) as f64, rate) > ACCUSED
    }
}

/// How many visits are slow, and how many there are. Both directions of a pair are one visit: what holds a node up holds up both.
fn visits(cells: &[Cell], own: &[usize], slow: impl Fn(usize) -> bool) -> (usize, usize) {
    let mut pairs: BTreeMap<(u32, u32), [(usize, usize); 2]> = BTreeMap::new();
    for &at in own {
        let (src, dst) = (cells[at].src, cells[at].dst);
        let of = &mut pairs.entry((src.min(dst), src.max(dst))).or_default()[usize::from(src < dst)];
        *of = (of.0 + usize::from(slow(at)), of.1 + 1);
    }
    let most = pairs.into_values().map(|[back, there]| (there.0.max(back.0), there.1.max(back.1)));
    most.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
}

#[cfg(test)]
mod tests {
    use muster_wire::Direction;

    use super::*;
    use crate::Params;
    use crate::network::{Matrix, Topology, localise};

    #[test]
    fn both_directions_of_a_visit_count_once() {
        let mut matrix = Matrix::new("bw", Direction::HigherIsBetter);
        for (src, dst) in [(0, 1), (1, 0), (0, 1), (0, 2), (3, 0)] {
            matrix.push(src, dst, &[1.0], None);
        }
        let of = |own: &[usize], slow: &[usize]| visits(matrix.cells(), own, |at| slow.contains(&at));
        assert_eq!(of(&[0, 1, 2, 3, 4], &[0, 1]), (1, 4));
        assert_eq!(of(&[0, 1, 2], &[1, 2]), (1, 2));
        assert_eq!(of(&[0, 2], &[0, 2]), (2, 2));
        assert_eq!(of(&[], &[]), (0, 0));
    }

    /// Who is accused and who is undecided of 24 nodes measured in two rounds, of which n0 is slow in both, and so are `others`: the
    /// rounds and first nodes of pairs.
    fn said(others: &[(usize, usize)]) -> (Vec<String>, Vec<String>) {
        let names: Vec<String> = (0..24).map(|n| format!("n{n}")).collect();
        let mut matrix = Matrix::new("throughput", Direction::HigherIsBetter);
        for (round, a) in (0..2).flat_map(|round| (0..24_usize).step_by(2).map(move |a| (round, a))) {
            let b = (a + 1 + 2 * round) % 24;
            let rate = if a == 0 || others.contains(&(round, a)) { 60.0 } else { 100.0 };
            let noise = 1.0 + 0.004 * ((a * 7 + round * 3) % 5) as f64;
            matrix.push_named(&names[a], &names[b], &[rate * noise], None);
            matrix.push_named(&names[b], &names[a], &[rate * noise * 1.002], None);
        }
        let found = localise(&matrix, &Topology::flat(&names), &Params::default());
        let open = found.undecided.into_iter().flat_map(|one| one.candidates).map(|one| one.element).collect();
        (found.suspects.into_iter().filter(|s| s.confidence >= 0.9).map(|s| s.element).collect(), open)
    }

    #[test]
    fn two_slow_visits_accuse_a_node_unless_others_are_slow_for_no_reason() {
        assert_eq!(said(&[]).0, ["n0"]);
        // None of these nodes is slow in both rounds.
        let (accused, open) = said(&[(0, 4), (0, 12), (1, 8), (1, 16)]);
        assert_eq!(accused, [""; 0]);
        assert!(open.contains(&"n0".to_owned()), "{open:?}");
    }
}

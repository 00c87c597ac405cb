//! May all that is slow of an element be chance, in a scan where single visits are slow without a reason?
//!
//! The likelihoods of the search take one visit in a hundred for an outlier. Where machines stand still now and then it is one in
//! ten, and of many elements with two or three visits each, one has nothing but slow ones. How often visits are slow for no reason
//! shows in those that no element explains.

use std::collections::BTreeMap;

use statrs::function::beta::beta_reg;

use super::Case;
use crate::network::Cell;

/// Chance per family of elements from which on one is not accused.
const ACCUSED: f64 = 0.01;
/// More visits than this are not counted: their chance is nothing.
const MANY: usize = 64;

/// What tells how often visits are slow without a reason.
pub(super) struct Unexplained<'a> {
    case: &'a Case<'a>,
    /// Visits with a reason.
    explained: Vec<bool>,
}

impl<'a> Unexplained<'a> {
    /// The visits that `explained` does not mark.
    pub(super) fn new(case: &'a Case<'a>, explained: Vec<bool>) -> Self {
        Self { case, explained }
    }

    /// Whether the visits `own` of one of `family` elements may be as slow as they are by chance, as often as others are at least
    /// half as slow. What failed is no matter of chance.
    pub(super) fn hold(&self, own: &[usize], family: usize) -> bool {
        let Case { matrix, residuals, .. } = self.case;
        if own.is_empty() || own.len() > MANY || own.iter().any(|&at| matrix.values(at).is_empty()) {
            return false;
        }
        let mut worse: Vec<f32> = own.iter().map(|&at| residuals.worse[at]).collect();
        worse.sort_unstable_by(f32::total_cmp);
        let bar = (worse[worse.len() / 2] / 2.0).max(self.case.least);
        let is_slow = |at: usize| residuals.worse[at] > bar;
        let count = |visits: &mut dyn Iterator<Item = usize>| {
            let open = visits.filter(|&at| !self.explained[at] && !residuals.worse[at].is_nan());
            open.fold((0, 0), |(slow, all), at| (slow + usize::from(is_slow(at)), all + 1))
        };
        let (everywhere, here) = (count(&mut (0..matrix.len())), count(&mut own.iter().copied()));
        // That a few visits show none does not prove that there are none: half a visit more than seen.
        let rate = ((everywhere.0 - here.0) as f64 + 0.5) / ((everywhere.1 - here.1) as f64 + 1.0);
        let (slow, all) = visits(matrix.cells(), own, is_slow);
        slow == 0 || family as f64 * beta_reg(slow as f64, (all - slow + 1) as f64, rate) > ACCUSED
    }
}

/// How many visits of two nodes, and how many that are slow: both directions of one are one, as what holds a node up holds up both.
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

    /// Who is accused and who undecided of 24 nodes measured in two rounds, of which n0 is slow in both, and so are as many other
    /// pairs as asked for.
    fn said(others: usize) -> (Vec<String>, Vec<String>) {
        let names: Vec<String> = (0..24).map(|n| format!("n{n}")).collect();
        let mut matrix = Matrix::new("throughput", Direction::HigherIsBetter);
        let slow = |a: usize, round: usize| {
            a == 0 || (a >= 4 && (a - 4) / 8 + 2 * round < others && (a - 4).is_multiple_of(8))
        };
        for round in 0..2 {
            for a in (0..24_usize).step_by(2) {
                let b = (a + 1 + 2 * round) % 24;
                let rate = if slow(a, round) { 60.0 } else { 100.0 };
                let noise = 1.0 + 0.004 * ((a * 7 + round * 3) % 5) as f64;
                matrix.push_named(&names[a], &names[b], &[rate * noise], None);
                matrix.push_named(&names[b], &names[a], &[rate * noise * 1.002], None);
            }
        }
        let found = localise(&matrix, &Topology::flat(&names), &Params::default());
        let open = found.undecided.into_iter().flat_map(|one| one.candidates).map(|one| one.element).collect();
        (found.suspects.into_iter().filter(|s| s.confidence >= 0.9).map(|s| s.element).collect(), open)
    }

    #[test]
    fn two_slow_visits_accuse_a_node_unless_others_are_slow_for_no_reason() {
        let (accused, _) = said(0);
        assert_eq!(accused, ["n0"]);
        let (accused, open) = said(4);
        assert_eq!(accused, [""; 0]);
        assert!(open.contains(&"n0".to_owned()), "{open:?}");
    }
}

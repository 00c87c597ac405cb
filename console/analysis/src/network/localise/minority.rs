//! Are so many pairs far worse than usual that it cannot be chance, though no node, leaf or uplink explains it?
//!
//! What holds up two nodes for a moment is seen once; a fault is there at every visit. So directions count that are bad at most
//! of their visits, and where a tenth of all visits are of such directions nobody can say that nothing stands out.

use std::collections::{BTreeMap, BTreeSet};

use super::report::effect;
use super::{Case, Localisation, Undecided};
use crate::network::change::between;
use crate::network::schedule::Pair;

/// Spreads that a visit must be worse than usual, and so many times the least fault: nearly a fifth. Of stragglers with an
/// exponential tail one in forty is that many spreads off.
const SPREADS: f32 = 5.0;
const FAULTS: f32 = 4.0;
/// At least this many directions must be bad, and one visit in [`ONE_IN`] must be of them.
const FEWEST: usize = 4;
const ONE_IN: usize = 10;
/// Most pairs proposed.
const PROPOSED: usize = 16;

/// What is left open if nothing else is, and the pairs that would decide.
pub(super) struct Minority {
    undecided: Undecided,
    again: Vec<[String; 2]>,
}

impl Minority {
    /// From all visits of a matrix.
    pub(super) fn of(case: &Case<'_>) -> Option<Self> {
        let worse = &case.residuals.worse;
        let visits = worse.iter().filter(|worse| !worse.is_nan()).count();
        let mut bad = steadily_bad(case, visits)?;
        bad.sort_unstable_by(|a, b| worse[*b].total_cmp(&worse[*a]));
        let [worst, least] = [bad.first()?, bad.last()?].map(|at| f64::from(worse[*at]));
        let (_, interval) = effect(case.matrix.direction(), worst, [least, worst]);
        let places = case.places;
        let unrouted = places.routes.is_empty() && places.leaves.len() > 1;
        let or = if unrouted { ", or name the uplinks in column `up`" } else { "" };
        let reason = format!(
            "{} of {visits} visits are far worse than the others ({}), and no node, leaf or uplink explains them: measure \
             their pairs again{or}",
            bad.len(),
            between(interval)
        );
        let undecided = Undecided { candidates: Vec::new(), reason, pairs: visits, slow: bad.len() };
        Some(Self { undecided, again: pairs(case, &bad) })
    }

    /// Leaves it open where nothing is accused and nothing else is open.
    pub(super) fn say(self, out: &mut Localisation) {
        if out.suspects.is_empty() && out.undecided.is_empty() && out.contested.is_empty() {
            let mut next = self.again;
            out.next_pairs.retain(|pair| !next.contains(pair));
            next.append(&mut out.next_pairs);
            out.next_pairs = next;
            out.undecided.push(self.undecided);
        }
    }
}

/// Visits far worse than usual, of directions in which most are, if there are many but no more than half of all `visits`.
fn steadily_bad(case: &Case<'_>, visits: usize) -> Option<Vec<usize>> {
    let (cells, worse) = (case.matrix.cells(), &case.residuals.worse);
    let limits = case.residuals.tiers.iter().map(|tier| SPREADS * tier.as_ref().map_or(1.0, |tier| tier.spread as f32));
    let limits: Vec<f32> = limits.map(|limit| limit.max(FAULTS * case.least)).collect();
    let is_bad = |at: &usize| worse[*at] > limits[usize::from(case.residuals.tier_of[*at])];
    let bad: Vec<usize> = (0..cells.len()).filter(is_bad).collect();
    if bad.len() * ONE_IN < visits {
        return None;
    }
    let way = |at: usize| (cells[at].src, cells[at].dst);
    let mut ways: BTreeMap<Pair, (Vec<usize>, usize)> = BTreeMap::new();
    bad.iter().for_each(|&at| ways.entry(way(at)).or_default().0.push(at));
    for at in (0..cells.len()).filter(|at| !worse[*at].is_nan()) {
        if let Some((_, all)) = ways.get_mut(&way(at)) {
            *all += 1;
        }
    }
    ways.retain(|_, (bad, all)| 2 * bad.len() > *all);
    let count = ways.len();
    let bad: Vec<usize> = ways.into_values().flat_map(|(bad, _)| bad).collect();
    // Of more than half it is not known which part is the sound one.
    let many = bad.len() * ONE_IN >= visits && 2 * bad.len() <= visits;
    (count >= FEWEST && many).then_some(bad)
}

/// The pairs of these visits, in their order, each once.
fn pairs(case: &Case<'_>, visits: &[usize]) -> Vec<[String; 2]> {
    let mut met = BTreeSet::new();
    let ends = visits.iter().map(|&at| case.matrix.cells()[at]).map(|cell| [cell.src, cell.dst]);
    let new = ends.filter(|&[src, dst]| met.insert((src.min(dst), src.max(dst))));
    let name = |end: u32| case.matrix.endpoints()[end as usize].clone();
    new.take(PROPOSED).map(|ends| ends.map(name)).collect()
}

#[cfg(test)]
mod tests {
    use muster_wire::Direction;

    use super::super::localise;
    use super::*;
    use crate::Params;
    use crate::network::topology::{self, Source};
    use crate::network::{Matrix, PairsReport};

    /// Fifteen pairs of ten nodes, each with three others, visited both ways; three pairs that share no node are bad.
    fn visited() -> Matrix {
        let mut matrix = Matrix::new("throughput", Direction::HigherIsBetter);
        let pairs = (0..10).map(|node| (node, (node + 1) % 10)).chain((0..5).map(|node| (node, node + 5)));
        let (mut sound, mut bad) = (0_u32, 0_u32);
        for (src, dst) in pairs.flat_map(|(a, b)| [(a, b), (b, a)]) {
            let value = if src.max(dst) - src.min(dst) == 5 && src.min(dst) < 3 {
                bad += 1;
                28.0 + 2.0 * f64::from(bad)
            } else {
                sound += 1;
                94.25 + 0.5 * f64::from(sound * 7 % 24)
            };
            matrix.push_named(&format!("n{src}"), &format!("n{dst}"), &[value], None);
        }
        matrix
    }

    fn found(matrix: &Matrix) -> Localisation {
        let rows: String = (0..10).map(|node| format!("n{node},leaf0\n")).collect();
        localise(matrix, &topology::from_csv(&rows).unwrap(), &Params::default())
    }

    #[test]
    fn six_of_thirty_visits_that_nothing_explains_are_not_passed() {
        let found = found(&visited());
        assert!(found.suspects.is_empty(), "{:?}", found.suspects);
        let [open] = &found.undecided[..] else { panic!("{:?}", found.undecided) };
        assert_eq!((open.slow, open.pairs), (6, 30));
        assert!(open.reason.starts_with("6 of 30 visits are far worse than the others (-70 to -60 %)"), "{open:?}");
        let mut report = PairsReport::new(Source::Csv);
        report.add("throughput", found);
        let said = report.lines();
        assert_eq!(report.exit_code(), 3, "{said:?}");
        assert!(said[0].starts_with("undecided in throughput: 6 of 30 visits"), "{said:?}");
        let next = said.iter().find(|line| line.starts_with("to decide, measure "));
        for pair in ["n0-n5", "n1-n6", "n2-n7"] {
            assert!(next.is_some_and(|line| line.contains(pair)), "{said:?}");
        }
    }

    #[test]
    fn pairs_that_are_sound_when_they_are_visited_again_were_held_up_for_a_moment() {
        let mut matrix = visited();
        for (src, dst) in (0..3_u32).flat_map(|node| [(node, node + 5), (node + 5, node)]) {
            matrix.push_named(&format!("n{src}"), &format!("n{dst}"), &[97.0 + f64::from(src)], None);
        }
        let found = found(&matrix);
        assert!(found.suspects.is_empty() && found.undecided.is_empty(), "{found:?}");
    }
}

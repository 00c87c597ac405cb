//! Whether slowness was there on every visit, or in a burst that a joint value only spreads out.

use muster_wire::Direction;

use crate::Sample;
use crate::decide::View;
use crate::sample::median_of_sorted;

/// Share of the loss over all visits from which on a single visit counts as slow.
const OWN: f64 = 0.5;
/// Share of it from which on another node was as slow in a visit.
const OTHERS: f64 = 0.7;

/// What visits say that were decided together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// Most of them say the same, and nobody else was as slow once.
    Yes,
    /// Only one of them says so, or half of them.
    No,
    /// Other nodes were as slow in some visits only, so healthy nodes here may be, too.
    OthersToo,
}

/// By visit and node, the share of speed lost against the median of the visit.
pub(crate) struct Losses(Vec<Vec<Option<f64>>>);

impl Losses {
    /// Of one metric, as `view` sees it.
    pub fn of(visits: &[Vec<Option<&Sample>>], direction: Direction, view: View) -> Self {
        let visit = |visit: &Vec<Option<&Sample>>| {
            let speeds: Vec<Option<f64>> = visit.iter().map(|of| Some(speed((*of)?, direction, view))).collect();
            let mut known: Vec<f64> = speeds.iter().flatten().copied().collect();
            known.sort_unstable_by(f64::total_cmp);
            let level = if known.is_empty() { f64::NAN } else { median_of_sorted(&known) };
            speeds.into_iter().map(|speed| Some(1.0 - speed? / level).filter(|loss| loss.is_finite())).collect()
        };
        Self(visits.iter().map(visit).collect())
    }

    /// The mean of several metrics' losses, each weighed alike.
    pub fn mean(all: &[Self]) -> Self {
        let Some(first) = all.first() else { return Self(Vec::new()) };
        let mean = |visit: usize, node: usize| {
            let own: Vec<f64> = all.iter().filter_map(|of| of.0[visit][node]).collect();
            (!own.is_empty()).then(|| own.iter().sum::<f64>() / own.len() as f64)
        };
        let of = |visit: usize| (0..first.0[visit].len()).map(|node| mean(visit, node)).collect();
        Self((0..first.0.len()).map(of).collect())
    }

    /// Whether `node`, that all visits together say lost `loss`, lost it in most of them.
    pub fn repeat(&self, node: usize, loss: f64) -> Repeats {
        let own = self.slow(node, loss * OWN);
        let visits = self.0.iter().filter(|visit| visit[node].is_some()).count();
        if own < 2 || 2 * own <= visits {
            return Repeats::No;
        }
        let nodes = self.0.first().map_or(0, Vec::len);
        let once = |other: usize| {
            let slow = self.slow(other, loss * OTHERS);
            slow > 0 && self.slow(other, loss * OTHERS * OWN) < self.0.len()
        };
        if (0..nodes).any(|other| other != node && once(other)) { Repeats::OthersToo } else { Repeats::Yes }
    }

    /// The median of what `node` lost in its visits.
    pub fn loss(&self, node: usize) -> Option<f64> {
        let mut own: Vec<f64> = self.0.iter().filter_map(|visit| visit[node]).collect();
        own.sort_unstable_by(f64::total_cmp);
        (!own.is_empty()).then(|| median_of_sorted(&own))
    }

    /// Visits in which `node` lost that much.
    fn slow(&self, node: usize, loss: f64) -> usize {
        self.0.iter().filter(|visit| visit[node].is_some_and(|own| own >= loss)).count()
    }
}

/// Speed of the median step, or of the mean one without the dearest eighth.
fn speed(sample: &Sample, direction: Direction, view: View) -> f64 {
    let (values, lower) = (sample.values(), direction == Direction::LowerIsBetter);
    if view != View::MeanStep {
        return if lower { sample.median().recip() } else { sample.median() };
    }
    let (kept, dropped) = (values.len() - values.len() / 8, values.len() / 8);
    let cost: f64 =
        if lower { values[..kept].iter().sum() } else { values[dropped..].iter().map(|value| value.recip()).sum() };
    kept as f64 / cost
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of the last of eight nodes, and of the one before it, by visit; all others take 7.1 us.
    fn repeat(own: &[f64], other: &[f64], loss: f64) -> Repeats {
        let all: Vec<Vec<Sample>> = own
            .iter()
            .zip(other)
            .map(|(own, other)| {
                let times = [7.0, 7.1, 7.1, 7.1, 7.2, 7.2, *other, *own];
                times.iter().map(|time| Sample::new(&[*time; 8]).unwrap()).collect()
            })
            .collect();
        let visits: Vec<Vec<Option<&Sample>>> = all.iter().map(|visit| visit.iter().map(Some).collect()).collect();
        Losses::of(&visits, Direction::LowerIsBetter, View::MedianStep).repeat(7, loss)
    }

    #[test]
    fn a_burst_in_one_of_two_visits_is_no_slowness() {
        // A round trip of a node that shared its core with a compiler in the first visit: together a third is lost.
        assert_eq!(repeat(&[14.6, 7.14], &[7.1, 7.1], 0.34), Repeats::No);
        assert_eq!(repeat(&[14.6, 14.5], &[7.1, 7.1], 0.5), Repeats::Yes);
        assert_eq!(repeat(&[14.6, 14.5, 7.1], &[7.1, 7.1, 7.1], 0.5), Repeats::Yes);
        assert_eq!(repeat(&[14.6], &[7.1], 0.5), Repeats::No, "the only visit that could be judged");
    }

    #[test]
    fn what_happened_to_another_node_in_one_visit_may_have_happened_to_this_one_in_each() {
        assert_eq!(repeat(&[9.5, 9.3], &[14.6, 7.1], 0.24), Repeats::OthersToo);
        assert_eq!(repeat(&[9.5, 9.3], &[14.6, 14.2], 0.24), Repeats::Yes);
        assert_eq!(repeat(&[14.6, 14.5], &[8.3, 7.1], 0.5), Repeats::Yes);
    }
}

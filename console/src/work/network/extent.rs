//! How much of a scan of pairs is there in all, as far as known?

use muster_analysis::network::schedule::Pair;

/// Rounds and pairs of a scan, with those that are visited again because they were left in doubt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// Rounds and pairs, where the method knows them beforehand.
    planned: Option<(usize, u64)>,
    /// How often every pair is measured in its round.
    rails: usize,
    /// Results that were added and that nobody was told of.
    untold: usize,
}

impl Extent {
    pub(super) const fn new(planned: Option<(usize, u64)>, rails: usize) -> Self {
        Self { planned, rails, untold: 0 }
    }

    /// Rounds and pairs in all, where the method knows them.
    pub(super) const fn planned(&self) -> Option<(usize, u64)> {
        self.planned
    }

    /// Results of all pairs that are known beforehand: one of each direction on each rail.
    pub(super) fn results(&self) -> usize {
        self.planned.map_or(0, |(_, pairs)| self.of(pairs as usize))
    }

    /// Adds `rounds` to the plan, where there is one.
    pub(super) fn add(&mut self, rounds: &[Vec<Pair>]) {
        let pairs: usize = rounds.iter().map(Vec::len).sum();
        if let Some((all, of_all)) = &mut self.planned {
            (*all, *of_all) = (*all + rounds.len(), *of_all + pairs as u64);
            self.untold += self.of(pairs);
        }
    }

    /// Results beyond those told so far, as a round of `open` pairs begins on one rail. Without a plan they are those of this round.
    pub(super) fn more(&mut self, open: usize) -> usize {
        if self.planned.is_none() { 2 * open } else { std::mem::take(&mut self.untold) }
    }

    const fn of(&self, pairs: usize) -> usize {
        2 * self.rails * pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of each round; the last `again` of them are visited again. Gives what was recorded and the total, as each rail of a round
    /// is through.
    fn told(mut extent: Extent, rounds: &[usize], again: usize) -> Vec<(usize, usize)> {
        let (mut total, mut recorded, mut told) = (extent.results(), 0, Vec::new());
        for (number, pairs) in rounds.iter().enumerate() {
            if number == rounds.len() - again {
                extent.add(&rounds[number..].iter().map(|pairs| vec![(0, 1); *pairs]).collect::<Vec<_>>());
            }
            for _ in 0..extent.rails {
                total += extent.more(*pairs);
                recorded += 2 * pairs;
                told.push((recorded, total));
            }
        }
        assert!(extent.planned().is_none_or(|(all, _)| all == rounds.len()), "{extent:?}");
        told
    }

    #[test]
    fn the_total_of_a_planned_scan_grows_once_pairs_are_visited_again_and_is_never_passed() {
        assert_eq!(
            told(Extent::new(Some((3, 15)), 1), &[5, 5, 5, 1, 2], 2),
            [(10, 30), (20, 30), (30, 30), (32, 36), (36, 36)]
        );
        assert_eq!(told(Extent::new(Some((1, 2)), 2), &[2, 1], 1), [(4, 8), (8, 8), (10, 12), (12, 12)]);
    }

    #[test]
    fn the_total_of_a_scan_without_a_plan_grows_with_every_round() {
        assert_eq!(told(Extent::new(None, 1), &[5, 2, 1], 1), [(10, 10), (14, 14), (16, 16)]);
    }
}

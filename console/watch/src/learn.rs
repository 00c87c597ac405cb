//! What counts as usual for a cell, and what may not teach.

use super::cell::Cell;
use super::settings::QUARANTINE;
use super::slow;

/// Standard deviations within which a value teaches.
const USUAL: f64 = 3.5;

impl Cell {
    /// Learns from `block`. First values are learned at once; later ones wait three minutes and are dropped if weak evidence rose
    /// meanwhile, so that a fault does not teach that it is usual.
    pub(super) fn learn(&mut self, block: i64, level_counts: bool) {
        let now = self.now;
        let usual = !self.is_learned() || now.z.abs() < USUAL;
        let good = now.ratio.is_finite() && level_counts && usual;
        let place = block.rem_euclid(QUARANTINE as i64) as usize;
        let waited = self.quarantine[place];
        let (direct, settled) = (good && !self.is_settled(), self.is_settled());
        self.quarantine[place] = if good && settled { now.ratio } else { f64::NAN };
        if self.fast.iter().any(super::fast::Fast::in_doubt) {
            return;
        }
        let calm = self.slow.iter().all(|slow| slow.sum < slow::NAMES / 3.0);
        if direct {
            self.usual.push(now.ratio);
        } else if settled && calm && waited.is_finite() {
            self.usual.push(waited);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::DIRECT;
    use super::*;

    fn taught(ratio: f64, cell: &mut Cell, block: i64) {
        cell.now.ratio = ratio;
        cell.learn(block, true);
    }

    #[test]
    fn later_values_wait_in_quarantine() {
        let mut cell = Cell::new(0);
        (0..DIRECT as i64).for_each(|block| taught(1.0, &mut cell, block));
        assert_eq!(cell.usual.count(), DIRECT);
        let end = (DIRECT + QUARANTINE) as i64;
        (DIRECT as i64..end).for_each(|block| taught(1.0, &mut cell, block));
        assert_eq!(cell.usual.count(), DIRECT, "three minutes have to pass first");
        taught(1.0, &mut cell, end);
        assert_eq!(cell.usual.count(), DIRECT + 1);
    }

    #[test]
    fn a_node_in_doubt_teaches_nothing() {
        let mut cell = Cell::new(0);
        (1..=9).for_each(|block| cell.fast[0].add(9.0, block, 130.0));
        taught(1.0, &mut cell, 10);
        assert_eq!(cell.usual.count(), 0);
        let mut odd = Cell::new(0);
        (0..16).for_each(|block| taught(1.0, &mut odd, block));
        odd.now.z = 5.0;
        taught(2.0, &mut odd, 16);
        assert_eq!(odd.usual.count(), 16);
    }

    /// A cell that has learned so many values, all one.
    fn learned(count: usize) -> Cell {
        let mut cell = Cell::new(0);
        (0..count).for_each(|_| cell.usual.push(1.0));
        cell
    }

    #[test]
    fn a_value_within_three_and_a_half_deviations_teaches_once_the_usual_is_known() {
        for (known, z, level_counts, ratio, teaches) in [
            (20, 3.4, true, 1.0, true),
            (20, -3.4, true, 1.0, true),
            (20, 3.5, true, 1.0, false),
            (20, -9.0, true, 1.0, false),
            (20, 0.0, false, 1.0, false),
            (20, 0.0, true, f64::NAN, false),
            // Before that nobody knows what a deviation is.
            (14, 9.0, true, 1.0, true),
        ] {
            let mut cell = learned(known);
            (cell.now.z, cell.now.ratio) = (z, ratio);
            cell.learn(99, level_counts);
            assert_eq!(cell.usual.count() - known, usize::from(teaches), "{known} {z} {level_counts} {ratio}");
        }
    }

    #[test]
    fn what_waited_is_dropped_while_there_is_weak_evidence_and_what_is_odd_never_waits() {
        let after = |sum: f64, z: f64| {
            let mut cell = learned(DIRECT);
            (cell.now.z, cell.now.ratio) = (z, 1.1);
            cell.learn(0, true);
            (cell.now.z, cell.now.ratio, cell.slow[1].sum) = (0.0, 1.2, sum);
            (1..=QUARANTINE as i64).for_each(|block| cell.learn(block, true));
            let newest = cell.usual.in_order().last();
            (cell.usual.count() - DIRECT, newest)
        };
        assert_eq!(after(0.0, 0.0), (1, Some(1.1)));
        assert_eq!(after(slow::NAMES / 3.0 - 0.1, 0.0), (1, Some(1.1)));
        assert_eq!(after(slow::NAMES / 3.0, 0.0), (0, Some(1.0)));
        assert_eq!(after(0.0, 4.0), (0, Some(1.0)));
    }
}

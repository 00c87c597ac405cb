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
}

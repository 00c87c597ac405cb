//! What is kept of one metric on one node: about a hundred numbers.

use super::alike::Alike;
use super::block::Seconds;
use super::fast::Fast;
use super::ring::Ring;
use super::settings::{DIRECT, MIN, QUARANTINE, RECENT, RING};
use super::slow::Slow;

/// Which way a node left its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Above,
    Below,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Above, Self::Below];

    pub(super) const fn sign(self) -> f64 {
        match self {
            Self::Above => 1.0,
            Self::Below => -1.0,
        }
    }
}

/// A cell as the block that was just closed shows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// Value of the block; NaN where it is missing.
    pub(super) value: f64,
    /// Usual ratio to the peers.
    pub(super) gain: f64,
    /// What the peers show, each corrected by its own usual ratio.
    pub(super) peers: f64,
    /// Relative deviation from what is usual beside these peers.
    pub(super) deviation: f64,
    /// Ratio to the peers, which is learned.
    pub(super) ratio: f64,
    /// Standard deviation of `deviation`.
    pub(super) sigma: f64,
    /// Deviation in standard deviations.
    pub(super) z: f64,
    /// The same of the last minute.
    pub(super) z6: f64,
    /// Whether the cell may be judged by this block.
    pub(super) ready: bool,
}

impl Default for Now {
    fn default() -> Self {
        let nan = f64::NAN;
        let (value, gain, peers, deviation, ratio, sigma) = (nan, 1.0, nan, nan, nan, nan);
        Self { value, gain, peers, deviation, ratio, sigma, z: 0.0, z6: 0.0, ready: false }
    }
}

/// One metric of one node.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// The blocks that are still open.
    pub(super) seconds: Seconds,
    /// Learned ratios to the peers.
    pub(super) usual: Ring<RING>,
    /// Ratios not learned yet, by block.
    pub(super) quarantine: [f64; QUARANTINE],
    /// Deviations of the last minute, by block.
    pub(super) recent: [f64; RECENT],
    /// Mean value while the job ran, mostly of the last ten minutes; NaN before the first.
    pub(super) level: f64,
    /// Blocks since the last value.
    pub(super) missing: u32,
    /// Evidence above and below the peers.
    pub(super) fast: [Fast; 2],
    /// The same, weak but lasting.
    pub(super) slow: [Slow; 2],
    /// For how long it has shown what its peers show, in spite of the evidence.
    pub(super) alike: Alike,
    /// The last closed block.
    pub(super) now: Now,
}

impl Cell {
    pub(super) fn new(block: i64) -> Self {
        Self {
            seconds: Seconds::default(),
            usual: Ring::default(),
            quarantine: [f64::NAN; QUARANTINE],
            recent: [f64::NAN; RECENT],
            level: f64::NAN,
            missing: 0,
            fast: [Fast::new(block); 2],
            slow: [Slow::new(block); 2],
            alike: Alike::default(),
            now: Now::default(),
        }
    }

    /// Whether enough was learned to judge it.
    pub(super) fn is_learned(&self) -> bool {
        self.usual.count() >= MIN
    }

    /// Whether so much was learned that weak evidence counts, and that new values go through the quarantine.
    pub(super) fn is_settled(&self) -> bool {
        self.usual.count() >= DIRECT
    }

    /// Everything learned belongs to another job.
    pub(super) fn forget(&mut self) {
        (self.usual, self.level) = (Ring::default(), f64::NAN);
        self.forget_evidence();
    }

    /// What was found lately has an explanation.
    pub(super) fn forget_evidence(&mut self) {
        self.quarantine.fill(f64::NAN);
        self.recent.fill(f64::NAN);
        self.alike = Alike::default();
        self.fast.iter_mut().for_each(Fast::forget);
        self.slow.iter_mut().for_each(Slow::forget);
    }

    /// Takes the value of a block in which the job ran into its level.
    pub(super) fn keep_level(&mut self) {
        let (value, weight) = (self.now.value, 1.0 / self.usual.count().clamp(1, RING) as f64);
        if value.is_finite() {
            self.level = if self.level.is_finite() { self.level + weight * (value - self.level) } else { value };
        }
    }

    /// Largest evidence, in seconds, and its side; none where it shows what its peers show.
    pub(super) fn evidence(&self) -> (f64, Side) {
        larger(self.fast.map(|fast| if self.alike.is_alike() { 0.0 } else { fast.seconds() }))
    }

    /// Whether any of it began together with a whole group.
    pub(super) fn is_shared(&self) -> bool {
        self.fast.iter().any(|fast| fast.shared)
    }

    /// The same without what began together with a whole group.
    pub(super) fn own_evidence(&self) -> (f64, Side) {
        larger(self.fast.map(|fast| if fast.shared || self.alike.is_alike() { 0.0 } else { fast.seconds() }))
    }
}

fn larger([above, below]: [f64; 2]) -> (f64, Side) {
    if above >= below { (above, Side::Above) } else { (below, Side::Below) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Column;
    use muster_wire::Telemetry;

    #[test]
    fn the_level_is_the_mean_of_what_was_learned_and_then_moves_by_a_sixtieth() {
        let mut cell = Column::new("some".to_owned(), Telemetry::unknown(), 1, 0).cells.remove(0);
        let mut take = |value: f64, learned: bool| {
            if learned {
                cell.usual.push(1.0);
            }
            cell.now.value = value;
            cell.keep_level();
            cell.level
        };
        assert!(take(f64::NAN, false).is_nan());
        assert_eq!(take(3.0, false), 3.0, "the first as it is");
        assert_eq!(take(7.0, true), 7.0, "one is learned: its value counts alone");
        assert_eq!(take(9.0, true), 8.0);
        assert_eq!(take(f64::INFINITY, true), 8.0);
        for _ in 0..2 * RING {
            take(8.0, true);
        }
        let moved = take(8.0 + RING as f64, true);
        assert!((moved - 9.0).abs() < 1e-9, "{moved}");
    }

    #[test]
    fn a_cell_is_judged_after_two_and_a_half_minutes_and_settled_after_four() {
        let mut cell = Cell::new(0);
        for learned in 0..60 {
            assert_eq!((cell.is_learned(), cell.is_settled()), (learned >= 15, learned >= 24), "{learned}");
            cell.usual.push(1.0);
        }
    }

    #[test]
    fn evidence_is_of_the_stronger_side_and_none_where_a_group_or_its_peers_explain_it() {
        let mut cell = Cell::new(0);
        assert_eq!(cell.evidence(), (0.0, Side::Above));
        (1..=2).for_each(|block| cell.fast[0].add(9.0, block, 130.0));
        (1..=3).for_each(|block| cell.fast[1].add(9.0, block, 130.0));
        let near = |found: (f64, Side), seconds: f64, side| (found.0 - seconds).abs() < 1e-9 && found.1 == side;
        assert!(near(cell.evidence(), 30.0, Side::Below) && near(cell.own_evidence(), 30.0, Side::Below));
        cell.fast[1].shared = true;
        assert!(near(cell.evidence(), 30.0, Side::Below) && near(cell.own_evidence(), 20.0, Side::Above));
        cell.fast[0].shared = true;
        assert!(near(cell.own_evidence(), 0.0, Side::Above));
        let column = beside_its_peers(cell);
        assert_eq!((column.evidence().0, column.own_evidence().0), (0.0, 0.0));
    }

    /// The same cell after half a minute of showing what its peers do.
    fn beside_its_peers(cell: Cell) -> Cell {
        let mut column = Column::new("some".to_owned(), Telemetry::unknown(), 5, 0);
        column.cells[0] = cell;
        for cell in &mut column.cells {
            (cell.now.value, cell.now.peers, cell.now.gain, cell.now.sigma) = (600.0, 600.0, 0.7, 0.02);
            (cell.now.ratio, cell.now.ready) = (1.0, true);
        }
        (0..3).for_each(|_| column.find_alike(&mut crate::column::Work::default()));
        column.cells.remove(0)
    }

    #[test]
    fn another_job_makes_all_forgotten_and_an_explanation_only_the_evidence() {
        let mut cell = Cell::new(0);
        (0..20).for_each(|_| cell.usual.push(1.0));
        (cell.level, cell.quarantine, cell.recent) = (5.0, [1.0; QUARANTINE], [0.1; RECENT]);
        cell.now.ready = true;
        (cell.now.z6, cell.now.deviation) = (4.0, 0.3);
        (1..=9).for_each(|block| {
            cell.fast[0].add(9.0, block, 130.0);
            cell.add_slow(block);
        });
        assert!(cell.slow[0].sum > 0.0 && cell.evidence().0 > 0.0);
        let mut explained = cell.clone();
        explained.forget_evidence();
        assert_eq!((explained.usual.count(), explained.level), (20, 5.0));
        cell.forget();
        assert!(cell.usual.count() == 0 && cell.level.is_nan());
        for cell in [cell, explained] {
            assert_eq!((cell.evidence().0, cell.slow[0].sum), (0.0, 0.0));
            assert!(cell.quarantine.iter().chain(&cell.recent).all(|value| value.is_nan()));
        }
    }
}

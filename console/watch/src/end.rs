//! When a machine, or a group, is like its peers again.
//!
//! An alert ends once the evidence has drained, which takes minutes; the end is dated from the first of the blocks in which the
//! machine was like its peers.

use super::cell::{Cell, Side};
use super::column::Column;
use super::settings::BLOCK;
use super::slow;

/// Blocks of calm after which an alert ends.
const CALM: u32 = 120 / BLOCK as u32;
/// Seconds of evidence from which a metric says whether its machine is like its peers, and the same of weak evidence.
const COUNTS: f64 = 30.0;
const COUNTS_WEAK: f64 = slow::NAMES / 4.0;
/// Standard deviations past which a block is unlike the peers; or those of the block and of its minute, where the fault is a small one.
const UNLIKE: f64 = 3.0;
const UNLIKE_WEAK: (f64, f64) = (1.0, 1.5);

/// How an open alert comes to its end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ending {
    /// Blocks since the evidence fell.
    calm: u32,
    /// First block since which it has been like its peers.
    like: Option<i64>,
}

impl Ending {
    /// Takes a block: whether the evidence is low, and whether the machine is unlike its peers, where that is known. Once it has been
    /// calm for two minutes, the first block in which it was like its peers again.
    pub(super) fn add(&mut self, calm: bool, unlike: Option<bool>, block: i64) -> Option<i64> {
        self.like = match unlike {
            Some(true) => None,
            Some(false) => self.like.or(Some(block)),
            None => self.like,
        };
        self.calm = if calm { self.calm + 1 } else { 0 };
        (self.calm >= CALM).then(|| self.like.unwrap_or(block - i64::from(CALM) + 1))
    }

    /// First block since which it has been like its peers, though not for long enough.
    pub(super) const fn like(&self) -> Option<i64> {
        self.like
    }
}

/// Whether `node` is unlike its peers in this block, by the metrics that speak against it; nothing where they are missing.
pub(super) fn unlike(node: usize, columns: &[Column]) -> Option<bool> {
    let (mut unlike, mut known) = (false, true);
    let cells = columns.iter().map(|column| &column.cells[node]).filter(|cell| !cell.alike.is_alike());
    for cell in cells {
        for side in Side::BOTH.into_iter().filter(|&side| counts(cell, side)) {
            unlike |= is_unlike(cell, side);
            known &= cell.now.ready;
        }
    }
    (unlike || known).then_some(unlike)
}

/// Whether more than half of `nodes` are.
pub(super) fn most_unlike(nodes: &[usize], columns: &[Column]) -> bool {
    2 * nodes.iter().filter(|&&node| unlike(node, columns) == Some(true)).count() > nodes.len()
}

fn counts(cell: &Cell, side: Side) -> bool {
    cell.fast[side as usize].seconds() >= COUNTS || cell.slow[side as usize].sum >= COUNTS_WEAK
}

fn is_unlike(cell: &Cell, side: Side) -> bool {
    let (z, z6) = (side.sign() * cell.now.z, side.sign() * cell.now.z6);
    z > UNLIKE || (z > UNLIKE_WEAK.0 && z6 > UNLIKE_WEAK.1)
}

#[cfg(test)]
mod tests {
    use muster_wire::Telemetry;

    use super::*;

    /// A node with evidence above its peers in one metric.
    fn accused() -> Vec<Column> {
        let mut column = Column::new("m".into(), Telemetry::unknown(), 1, 0);
        (1..=20).for_each(|block| column.cells[0].fast[0].add(9.0, block, 130.0));
        vec![column]
    }

    fn shows(columns: &mut [Column], z: f64, z6: f64) -> Option<bool> {
        let now = &mut columns[0].cells[0].now;
        (now.z, now.z6, now.ready) = (z, z6, true);
        unlike(0, columns)
    }

    #[test]
    fn an_alert_ends_two_minutes_after_the_evidence_has_drained_and_is_dated_from_the_first_block_like_the_peers() {
        let mut ending = Ending::default();
        assert_eq!(ending.add(false, Some(true), 10), None);
        // The evidence takes ten blocks to drain.
        let drains = (11..=20).map(|block| ending.add(false, Some(false), block)).all(|end| end.is_none());
        let ends: Vec<Option<i64>> = (21..=32).map(|block| ending.add(true, Some(false), block)).collect();
        assert!(drains && ends[..11].iter().all(Option::is_none), "{ends:?}");
        assert_eq!(ends[11], Some(11));
    }

    #[test]
    fn what_is_unlike_again_in_between_is_dated_from_after_that() {
        let mut ending = Ending::default();
        let unlike = |block: i64| block < 10 || (15..17).contains(&block);
        let end = (0..60).find_map(|block| ending.add(block >= 25, Some(unlike(block)), block));
        assert_eq!(end, Some(17));
    }

    #[test]
    fn a_machine_is_like_its_peers_though_its_evidence_is_still_there_and_unknown_where_nothing_is_reported() {
        let mut columns = accused();
        assert_eq!(shows(&mut columns, 9.0, 9.0), Some(true));
        assert_eq!(shows(&mut columns, 0.4, 4.0), Some(false), "the minute still has blocks of the fault");
        assert_eq!(shows(&mut columns, 2.2, 4.0), Some(true), "a small fault goes on");
        assert_eq!(shows(&mut columns, -9.0, -9.0), Some(false), "that is the other side");
        columns[0].cells[0].now.ready = false;
        columns[0].cells[0].now.z = 0.0;
        assert_eq!(unlike(0, &columns), None);
    }

    #[test]
    fn a_group_is_unlike_its_peers_while_more_than_half_of_it_is() {
        let mut column = Column::new("m".into(), Telemetry::unknown(), 4, 0);
        for (node, cell) in column.cells.iter_mut().enumerate() {
            (1..=20).for_each(|block| cell.fast[0].add(9.0, block, 130.0));
            (cell.now.z, cell.now.ready) = (if node < 2 { 9.0 } else { 0.1 }, true);
        }
        let columns = [column];
        assert!(most_unlike(&[0, 1, 2], &columns));
        assert!(!most_unlike(&[0, 1, 2, 3], &columns));
    }

    #[test]
    fn a_metric_without_evidence_says_nothing() {
        let mut columns = vec![Column::new("m".into(), Telemetry::unknown(), 1, 0)];
        assert_eq!(shows(&mut columns, 9.0, 0.0), Some(false));
    }

    #[test]
    fn a_metric_counts_from_half_a_minute_of_evidence_or_ten_of_weak_evidence() {
        let of = |blocks: i64, sum: f64| {
            let mut column = Column::new("m".into(), Telemetry::unknown(), 1, 0);
            (1..=blocks).for_each(|block| column.cells[0].fast[1].add(9.0, block, 130.0));
            column.cells[0].slow[1].sum = sum;
            counts(&column.cells[0], Side::Below)
        };
        assert!(of(3, 0.0) && !of(2, 0.0) && of(0, 10.0) && !of(0, 9.9));
    }

    #[test]
    fn a_block_is_unlike_the_peers_past_three_deviations_or_past_one_in_a_minute_of_more() {
        let mut columns = accused();
        for (z, z6, is_unlike) in [
            (3.1, 0.0, true),
            (3.0, 0.0, false),
            (1.1, 1.6, true),
            (1.0, 1.6, false),
            (1.1, 1.5, false),
            (-3.1, 0.0, false),
        ] {
            assert_eq!(shows(&mut columns, z, z6), Some(is_unlike), "{z} {z6}");
        }
    }

    #[test]
    fn one_metric_that_is_unlike_is_enough_and_one_that_is_missing_leaves_it_open() {
        let of = |shown: &[Option<f64>]| {
            let mut columns: Vec<Column> = shown.iter().flat_map(|_| accused()).collect();
            for (column, z) in columns.iter_mut().zip(shown) {
                let now = &mut column.cells[0].now;
                (now.z, now.ready) = (z.unwrap_or(0.0), z.is_some());
            }
            unlike(0, &columns)
        };
        assert_eq!((of(&[Some(9.0), Some(0.0)]), of(&[Some(9.0), None])), (Some(true), Some(true)));
        assert_eq!((of(&[Some(0.0), Some(0.0)]), of(&[Some(0.0), None])), (Some(false), None));
    }

    #[test]
    fn without_a_block_that_was_known_to_be_like_the_peers_the_end_is_the_first_calm_one() {
        let mut ending = Ending::default();
        let ends: Vec<Option<i64>> = (1..=12).map(|block| ending.add(true, None, block)).collect();
        assert_eq!((ends[10], ends[11], ending.like()), (None, Some(1), None));
        let mut broken = Ending::default();
        (1..=11).for_each(|block| assert_eq!(broken.add(true, None, block), None));
        assert_eq!(broken.add(false, Some(false), 12), None);
        assert_eq!((broken.like(), broken.add(true, None, 13)), (Some(12), None), "calm is counted anew");
    }

    #[test]
    fn calm_is_two_minutes() {
        assert_eq!((CALM as usize * BLOCK, COUNTS_WEAK), (120, 10.0));
    }
}

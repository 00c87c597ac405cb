//! Whether a machine that left its own past shows what its peers show: it then came back to them, and nobody is accused.
//!
//! A fault that lasted since the start taught that it is usual. When it ends, the machine is far from its past and beside its peers.

use super::cell::Cell;
use super::column::{Column, Work};
use super::node::Node;
use super::ring::Ring;
use super::settings::{BLOCK, RING};

/// Standard deviations within which a peer shows the same; in parts of how far the machine moved, the least and the most of it: a peer
/// that is nearer to what the machine showed before does not.
const SAME: f64 = 3.0;
const LEAST: f64 = 1.0 / 3.0;
const MOST: f64 = 1.0 / 2.0;
/// Share of the peers that may show something else: more of them may be of its role, which it then left.
const OTHERS: usize = 6;
/// Blocks beside its peers from which nobody is accused, and what a block elsewhere takes away.
const BESIDE: u32 = 3;
const ELSEWHERE: u32 = 3;
/// Blocks beside its peers after which that is noted.
const NOTED: u32 = 120 / BLOCK as u32;
/// Blocks after which it is usual. The median of what is learned would have turned by then, had the blocks been learned.
const USUAL: u32 = RING as u32 / 2;
/// Relative change that is worth a note.
const WORTH: f64 = 0.15;

/// For how long a cell with evidence against it has shown what its peers show.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alike {
    blocks: u32,
    /// Mean ratio to the peers in these blocks.
    ratio: f64,
    noted: bool,
}

impl Alike {
    /// Whether that is no accusation.
    pub(super) fn is_alike(&self) -> bool {
        self.blocks >= BESIDE
    }

    /// Takes a block beside the peers, with its ratio to them, or one elsewhere.
    fn add(&mut self, beside: Option<f64>) {
        match beside {
            Some(ratio) => {
                self.blocks = (self.blocks + 1).min(USUAL);
                self.ratio += (ratio - self.ratio) / f64::from(self.blocks);
            }
            None => self.blocks = self.blocks.saturating_sub(ELSEWHERE),
        }
    }

    /// Whether it is time to note it, which is asked once.
    fn is_news(&mut self) -> bool {
        self.blocks >= NOTED && !std::mem::replace(&mut self.noted, true)
    }
}

impl Column {
    /// Looks which machines with evidence against them are beside their peers now, and lets that become usual in time.
    pub(super) fn find_alike(&mut self, work: &mut Work) {
        let suspect = |cell: &Cell| cell.has_evidence();
        self.cells.iter_mut().filter(|cell| !suspect(cell)).for_each(|cell| cell.alike = Alike::default());
        if !self.cells.iter().any(suspect) {
            return;
        }
        work.values.clear();
        work.values.extend(self.cells.iter().map(|cell| cell.now.value).filter(|value| value.is_finite()));
        work.values.sort_unstable_by(f64::total_cmp);
        for cell in self.cells.iter_mut().filter(|cell| suspect(cell) && cell.now.ready) {
            let beside = cell.is_beside(&work.values, self.about.quantum).then_some(cell.now.ratio);
            cell.alike.add(beside);
            if cell.alike.blocks >= USUAL {
                cell.accept(cell.alike.ratio);
            }
        }
    }
}

impl Cell {
    fn has_evidence(&self) -> bool {
        self.fast.iter().any(|fast| fast.seconds() > 0.0) || self.slow.iter().any(|slow| slow.sum > 0.0)
    }

    /// Whether nearly all others show the same, and not what the machine usually shows; `sorted` are the values of all.
    fn is_beside(&self, sorted: &[f64], quantum: f64) -> bool {
        let (value, usual) = (self.now.value, self.now.gain * self.now.peers);
        let moved = (value + quantum - usual).abs();
        let same = (SAME * self.now.sigma * usual).clamp(LEAST * moved, MOST * moved);
        let below = sorted.partition_point(|other| *other < value - same);
        let with_it = sorted.partition_point(|other| *other <= value + same) - below;
        let others = sorted.len() - with_it;
        others <= sorted.len().saturating_sub(1) / OTHERS
    }

    /// What it shows beside its peers now, `ratio`, is usual from now on; how much that varies is as it was.
    fn accept(&mut self, ratio: f64) {
        let factor = ratio / self.now.gain;
        if factor.is_finite() {
            self.usual.scale(factor);
        } else {
            // It usually showed nothing at all.
            self.usual = Ring::default();
        }
        self.forget_evidence();
    }
}

/// What is noted of machines that came back to their peers; `at_s` says how long after the start they did.
pub(super) fn notes(nodes: &[Node], columns: &mut [Column], at_s: f64) -> Vec<String> {
    let mut found: Vec<Vec<String>> = vec![Vec::new(); nodes.len()];
    for column in columns {
        for (cell, found) in column.cells.iter_mut().zip(&mut found) {
            let now = cell.now;
            if now.deviation.abs() >= WORTH && cell.alike.is_news() {
                found.push(format!("{} {:.2}x of theirs, {:.2}x before", column.name, cell.alike.ratio, now.gain));
            }
        }
    }
    let told = nodes.iter().zip(found).filter(|(_, metrics)| !metrics.is_empty());
    let at_s = at_s - f64::from(NOTED) * BLOCK as f64;
    let note = |(node, metrics): (&Node, Vec<String>)| {
        format!(
            "{} has been like its peers since {at_s:.0} s after the start ({}): whatever made it differ is over, so no alert",
            node.name,
            metrics.join("; ")
        )
    };
    told.map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cell that usually shows `usual` of what its peers do, which is 600, and shows `value` now.
    fn cell(usual: f64, value: f64) -> Cell {
        let mut cell = Cell::new(0);
        (0..20).for_each(|_| cell.usual.push(usual));
        let now = &mut cell.now;
        (now.value, now.gain, now.peers, now.sigma) = (value, usual, 600.0, 0.025);
        (now.ratio, now.deviation, now.ready) = (value / 600.0, value / (usual * 600.0) - 1.0, true);
        cell
    }

    fn is_beside(cell: &Cell, others: &[f64]) -> bool {
        let mut sorted = [others, &[cell.now.value]].concat();
        sorted.sort_unstable_by(f64::total_cmp);
        cell.is_beside(&sorted, 0.0)
    }

    const PEERS: [f64; 7] = [590.0, 596.0, 598.0, 600.0, 603.0, 605.0, 611.0];

    #[test]
    fn a_machine_that_moved_to_where_its_peers_are_is_beside_them_and_one_that_left_them_is_not() {
        assert!(is_beside(&cell(0.7, 602.0), &PEERS));
        assert!(!is_beside(&cell(1.0, 420.0), &PEERS));
        assert!(!is_beside(&cell(0.7, 300.0), &PEERS), "it is farther from them than ever");
        assert!(!is_beside(&cell(0.7, 500.0), &PEERS), "half of the way");
        assert!(!is_beside(&cell(0.7, 760.0), &PEERS), "past them");
        assert!(!is_beside(&cell(1.05, 567.0), &PEERS), "a tenth lost is a tenth lost");
    }

    #[test]
    fn one_that_shows_what_another_role_shows_is_not_beside_its_peers() {
        let stages = [600.0, 602.0, 598.0, 420.0, 421.0, 419.0, 420.0];
        assert!(!is_beside(&cell(1.0, 420.0), &stages));
        let one_more_is_faulty = [300.0, 596.0, 598.0, 600.0, 603.0, 605.0, 611.0];
        assert!(is_beside(&cell(0.7, 602.0), &one_more_is_faulty));
    }

    #[test]
    fn a_block_elsewhere_does_not_undo_a_minute_beside_the_peers_and_several_do() {
        let mut alike = Alike::default();
        (0..6).for_each(|_| alike.add(Some(1.0)));
        alike.add(None);
        assert!(alike.is_alike() && (alike.ratio - 1.0).abs() < 1e-12);
        alike.add(None);
        assert!(!alike.is_alike());
    }

    #[test]
    fn five_minutes_beside_its_peers_are_usual_and_the_evidence_is_forgotten() {
        let mut column = Column::new("gpu_power_w".into(), muster_wire::Telemetry::unknown(), 8, 0);
        let mut work = Work::default();
        for (node, value) in PEERS.into_iter().chain([602.0]).enumerate() {
            column.cells[node] = cell(if node == 7 { 0.7 } else { 1.0 }, value);
        }
        let mut usual_after = None;
        for block in 1..=i64::from(USUAL) {
            column.cells[7].fast[0].add(17.0, block, 130.0);
            column.find_alike(&mut work);
            assert!(block < 3 || column.cells[7].own_evidence().0 <= 0.0, "{block}");
            usual_after = usual_after.or((!column.cells[7].has_evidence()).then_some(block));
        }
        assert_eq!(usual_after, Some(i64::from(USUAL)));
        assert!(column.cells[7].usual.kept().iter().all(|ratio| (ratio - 602.0 / 600.0).abs() < 1e-9));
        assert!(column.cells[0].usual.kept().iter().all(|ratio| (ratio - 1.0).abs() < 1e-12));
    }

    #[test]
    fn a_machine_that_came_back_is_noted_once() {
        let mut columns = vec![Column::new("gpu_power_w".into(), muster_wire::Telemetry::unknown(), 1, 0)];
        columns[0].cells[0] = cell(0.7, 600.0);
        let nodes = [Node { name: "n3".into(), ..Node::default() }];
        (0..NOTED).for_each(|_| columns[0].cells[0].alike.add(Some(1.0)));
        assert_eq!(
            notes(&nodes, &mut columns, 1_020.0),
            [
                "n3 has been like its peers since 900 s after the start (gpu_power_w 1.00x of theirs, 0.70x before): whatever made \
              it differ is over, so no alert"
            ]
        );
        assert!(notes(&nodes, &mut columns, 1_030.0).is_empty());
    }

    #[test]
    fn a_sixth_of_the_others_may_show_something_else() {
        for (nodes, odd, beside) in
            [(7, 1, true), (7, 2, false), (12, 1, true), (12, 2, false), (13, 2, true), (13, 3, false)]
        {
            let others: Vec<f64> = (1..nodes).map(|at| if at <= odd { 420.0 } else { 600.0 }).collect();
            assert_eq!(is_beside(&cell(0.7, 600.0), &others), beside, "{odd} of {nodes}");
        }
    }

    #[test]
    fn a_peer_shows_the_same_within_three_deviations_or_a_third_to_a_half_of_the_way() {
        // The machine came from 420 to 600: three deviations are 31.5, a third of the way is 60, a half 90.
        let beside = |sigma: f64, apart: f64| {
            let mut cell = cell(0.7, 600.0);
            cell.now.sigma = sigma;
            is_beside(&cell, &[600.0 - apart; 7])
        };
        assert!(beside(0.025, 60.0) && !beside(0.025, 60.1), "a third at least");
        // Three deviations of 5.9 % of 420.
        assert!(beside(0.059, 74.3) && !beside(0.059, 74.4));
        assert!(beside(0.9, 90.0) && !beside(0.9, 90.1), "a half at most");
    }

    #[test]
    fn what_is_next_to_nothing_is_measured_with_the_level_below_which_ratios_mean_nothing() {
        // It usually shows 0.7 of 600 + 100, which is 490, and shows 600 + 100 now: it moved by 210.
        let mut cell = cell(0.7, 600.0);
        (cell.now.peers, cell.now.sigma) = (700.0, 0.0);
        let beside = |apart: f64| cell.is_beside(&[600.0 - apart, 600.0, 600.0 - apart, 600.0 - apart], 100.0);
        assert!(beside(70.0) && !beside(70.1));
    }

    #[test]
    fn what_was_learned_turns_to_the_new_ratio_and_is_forgotten_where_it_usually_showed_nothing() {
        let mut moved = cell(0.7, 602.0);
        moved.accept(1.05);
        assert!(moved.usual.kept().iter().all(|ratio| (ratio - 1.05).abs() < 1e-9));
        let mut idle = cell(0.0, 602.0);
        idle.accept(1.05);
        assert_eq!(idle.usual.count(), 0);
    }

    #[test]
    fn only_cells_with_evidence_are_asked_and_those_without_begin_anew() {
        let mut column = Column::new("gpu_power_w".into(), muster_wire::Telemetry::unknown(), 8, 0);
        let mut work = Work::default();
        for (node, value) in PEERS.into_iter().chain([602.0]).enumerate() {
            column.cells[node] = cell(if node == 7 { 0.7 } else { 1.0 }, value);
            column.cells[node].alike.blocks = 2;
        }
        column.cells[6].fast[1].add(17.0, 1, 130.0);
        column.cells[7].fast[0].add(17.0, 1, 130.0);
        column.cells[6].now.ready = false;
        column.find_alike(&mut work);
        let blocks: Vec<u32> = column.cells.iter().map(|cell| cell.alike.blocks).collect();
        assert_eq!(blocks, [0, 0, 0, 0, 0, 0, 2, 3], "of one that was not compared nothing new is known");
    }

    #[test]
    fn a_small_change_is_not_noted_and_times_are_two_minutes_and_five() {
        let mut columns = vec![Column::new("gpu_power_w".into(), muster_wire::Telemetry::unknown(), 1, 0)];
        columns[0].cells[0] = cell(0.7, 600.0);
        let nodes = [Node { name: "n3".into(), ..Node::default() }];
        (0..12).for_each(|_| columns[0].cells[0].alike.add(Some(1.0)));
        columns[0].cells[0].now.deviation = -0.14;
        assert!(notes(&nodes, &mut columns, 1_020.0).is_empty());
        columns[0].cells[0].now.deviation = -0.15;
        assert_eq!(notes(&nodes, &mut columns, 1_020.0).len(), 1, "it was not taken for told");
        assert_eq!((NOTED, USUAL), (12, 30));
    }
}

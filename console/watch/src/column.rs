//! One metric on all nodes, block by block.

use muster_wire::{SaysOfJob, Telemetry};

use super::block::Summary;
use super::cell::{Cell, Now};
use super::order::{LeaveOneOut, median};
use super::ring::Ring;
use super::settings::{MISSING, RING};

/// Share of the usual level below which, and times it above which, a level says nothing of single nodes.
const BAND: (f64, f64) = (0.2, 4.0);

/// One metric.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) about: Telemetry,
    pub(super) cells: Vec<Cell>,
    /// Median over the nodes in this block.
    pub(super) level: f64,
    /// Median of the levels while the job ran.
    pub(super) reference: f64,
    /// Whether more nodes left their peers together than single machines do; above and below for weak evidence.
    pub(super) together: Together,
    /// Whether any cell was ever ready to be judged.
    pub(super) judged: bool,
    /// Blocks for which all nodes together have been clearly below their usual level.
    pub(super) low: u32,
    levels: Ring<RING>,
    /// Largest sample of any node so far.
    top: f64,
}

/// Whether a whole group left its peers in a metric, so that no single machine is accused for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Together {
    pub(super) fast: bool,
    pub(super) slow: [bool; 2],
    /// The last block before the group left its peers.
    pub(super) zero: Option<i64>,
}

/// Room for computing, kept from block to block.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) values: Vec<f64>,
    pub(super) medians: Vec<f64>,
    pub(super) others: LeaveOneOut,
    /// Nodes with any sample in the block.
    pub(super) alive: Vec<bool>,
    summaries: Vec<Summary>,
}

impl Column {
    pub(super) fn new(name: String, about: Telemetry, nodes: usize, block: i64) -> Self {
        Self {
            name,
            about,
            cells: vec![Cell::new(block); nodes],
            level: f64::NAN,
            reference: f64::NAN,
            together: Together::default(),
            judged: false,
            low: 0,
            levels: Ring::default(),
            top: f64::NEG_INFINITY,
        }
    }

    /// Makes a value of the seconds of `block` on every node, and their median.
    pub(super) fn close(&mut self, block: i64, work: &mut Work) {
        work.summaries.clear();
        work.summaries.extend(self.cells.iter_mut().map(|cell| cell.seconds.take(block)));
        self.top = work.summaries.iter().map(|all| all.most).fold(self.top, f64::max);
        work.values.clear();
        for (at, (cell, all)) in self.cells.iter_mut().zip(&work.summaries).enumerate() {
            work.alive[at] |= all.most.is_finite();
            cell.now = Now { value: cell.seconds.value(*all, self.top), ..Now::default() };
            work.values.push(cell.now.value);
        }
        self.level = median(&mut work.values);
        self.reference = if self.levels.count() == 0 { self.level } else { self.usual_level(work) };
    }

    /// Remembers the level of a block in which the job ran.
    pub(super) fn keep_level(&mut self, work: &mut Work) {
        self.levels.push(self.level);
        self.reference = self.usual_level(work);
    }

    /// Levels while the job ran, in no order.
    pub(super) fn usual_levels(&self) -> &[f64] {
        self.levels.kept()
    }

    fn usual_level(&self, work: &mut Work) -> f64 {
        work.values.clear();
        work.values.extend_from_slice(self.levels.kept());
        median(&mut work.values)
    }

    /// Judges every cell by the closed block and learns from it.
    pub(super) fn judge(&mut self, block: i64, evidence_s: f64, work: &mut Work) {
        let counts = self.level_counts();
        self.compare(work);
        self.scale(counts, work);
        for cell in &mut self.cells {
            cell.keep_level();
            cell.missing = if cell.now.value.is_finite() { 0 } else { cell.missing.saturating_add(1) };
            let known = cell.now.ready || cell.missing > MISSING;
            for (fast, side) in cell.fast.iter_mut().zip(super::cell::Side::BOTH) {
                if known { fast.add(side.sign() * cell.now.z, block, evidence_s) } else { fast.hold(block) }
            }
            cell.remember(block);
        }
        self.minutes(work);
        for cell in &mut self.cells {
            cell.add_slow(block);
            cell.learn(block, counts);
            self.judged |= cell.now.ready;
        }
        self.find_alike(work);
    }

    /// Whether the level is near enough to the usual one to compare nodes: not in a standstill, not while a job begins. That nobody
    /// waits any more is no standstill: nodes that wait for a slow one have time.
    fn level_counts(&self) -> bool {
        let (reference, quantum) = (self.reference, self.about.quantum);
        let least = if self.about.job == SaysOfJob::Waits { f64::NEG_INFINITY } else { BAND.0 * reference };
        let near = self.level > least && self.level < BAND.1 * reference.max(quantum);
        near || reference <= quantum
    }

    /// Everything learned belongs to another job.
    pub(super) fn forget(&mut self) {
        (self.levels, self.low) = (Ring::default(), 0);
        self.cells.iter_mut().for_each(Cell::forget);
    }

    /// How many others have a value in this block, and their median.
    pub(super) fn peers_of(&self, node: usize) -> (usize, f64) {
        let others = self.cells.iter().enumerate().filter(|(at, _)| *at != node).map(|(_, cell)| cell.now.value);
        let mut values: Vec<f64> = others.filter(|value| value.is_finite()).collect();
        (values.len(), median(&mut values))
    }
}

#[cfg(test)]
mod tests {
    use muster_wire::telemetry;

    use super::super::settings::BLOCK;
    use super::*;

    fn column(name: &str, nodes: usize) -> Column {
        Column::new(name.to_owned(), telemetry(name).copied().unwrap_or(Telemetry::unknown()), nodes, 0)
    }

    #[test]
    fn nodes_are_compared_while_the_level_is_between_a_fifth_of_the_usual_and_four_times_it() {
        let counts = |name: &str, level: f64, reference: f64| {
            let mut column = column(name, 1);
            (column.level, column.reference) = (level, reference);
            column.level_counts()
        };
        for (level, is_near) in
            [(99.0, false), (100.0, false), (101.0, true), (1_999.0, true), (2_000.0, false), (f64::NAN, false)]
        {
            assert_eq!(counts("gpu_power_w", level, 500.0), is_near, "{level} W");
        }
        assert!(counts("job_wait_pct", 0.0, 50.0), "that nobody waits any more is no standstill");
        assert!(!counts("job_wait_pct", 300.0, 50.0));
        // 2 % of a CPU are nothing: beside so little every level counts.
        assert!(counts("cpu_util_pct", 80.0, 2.0) && !counts("cpu_util_pct", 80.0, 2.1));
        assert!(!counts("gpu_power_w", 80.0, f64::NAN));
    }

    #[test]
    fn a_block_has_the_level_of_its_median_node_and_is_compared_with_the_median_of_the_levels_before() {
        let (mut column, mut work) = (column("gpu_power_w", 4), Work { alive: vec![false; 4], ..Work::default() });
        let mut closed = |block: i64, values: [f64; 4]| {
            for (cell, value) in column.cells.iter_mut().zip(values) {
                (0..BLOCK).for_each(|second| cell.seconds.put(block, second, value + second as f64 / 100.0));
            }
            column.close(block, &mut work);
            let before = column.reference;
            column.keep_level(&mut work);
            let shown = [column.level, before, column.reference].map(|value| (value * 1e3).round() / 1e3);
            (shown, std::mem::replace(&mut work.alive, vec![false; 4]))
        };
        let all = vec![true; 4];
        assert_eq!(closed(0, [10.0, 20.0, 40.0, 90.0]), ([30.045, 30.045, 30.045], all.clone()));
        assert_eq!(closed(1, [50.0; 4]), ([50.045, 30.045, 40.045], all.clone()));
        assert_eq!(closed(2, [90.0; 4]), ([90.045, 40.045, 50.045], all));
        let some = closed(3, [f64::NAN, 7.0, f64::NAN, 9.0]);
        assert_eq!(some, ([8.045, 50.045, 40.045], vec![false, true, false, true]));
    }

    #[test]
    fn peers_are_the_others_that_have_a_value() {
        let mut column = column("gpu_power_w", 5);
        for (cell, value) in column.cells.iter_mut().zip([1.0, 2.0, f64::NAN, 4.0, 8.0]) {
            cell.now.value = value;
        }
        assert_eq!([0, 1, 3, 4].map(|node| column.peers_of(node)), [(3, 4.0), (3, 4.0), (3, 2.0), (3, 2.0)]);
        assert_eq!(column.peers_of(2), (4, 3.0));
    }

    #[test]
    fn what_is_missing_for_a_minute_changes_no_evidence_and_later_drains_it() {
        let (mut column, mut work) = (column("gpu_power_w", 5), Work { alive: vec![false; 5], ..Work::default() });
        let mut judged = |block: i64, own: f64| {
            for (node, cell) in column.cells.iter_mut().enumerate() {
                let value = if node == 2 { own } else { 500.0 };
                (0..BLOCK).for_each(|second| cell.seconds.put(block, second, value + second as f64 / 10.0));
            }
            column.close(block, &mut work);
            column.keep_level(&mut work);
            column.judge(block, 130.0, &mut work);
            column.cells[2].evidence().0
        };
        (0..20).for_each(|block| assert_eq!(judged(block, 500.0), 0.0));
        (20..28).for_each(|block| {
            judged(block, 300.0);
        });
        let before = judged(28, 300.0);
        assert!((before - 90.0).abs() < 1e-9, "{before}");
        let missing: Vec<f64> = (29..40).map(|block| judged(block, f64::NAN)).collect();
        assert!(missing[..6].iter().all(|evidence| (evidence - before).abs() < 1e-9), "{missing:?}");
        assert!(missing[6] < before - 10.0 && missing[10] < missing[6] - 40.0, "{missing:?}");
    }
}

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

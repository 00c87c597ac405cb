//! How far a node is from where it usually is beside its peers, and how much that varies.
//!
//! Differences in differences: each node has a usual ratio to the others, which another model, rank or pipeline stage explains. Only
//! what changes against that ratio is a deviation.

use super::column::{Column, Work};
use super::order::{median, spread};
use super::settings::PEERS;
use super::slow::spread_of_means;

/// Part of the usual level below which a deviation is taken relative to that part: no division by nearly nothing.
const LOW: f64 = 0.25;
/// Deviations and ratios are cut here: past it, more says no more.
const DEVIATION: f64 = 5.0;
const RATIO: f64 = 9.0;
/// Correction of a spread taken from few blocks.
const FEW: f64 = 4.0;
/// Share of the ceiling from which a node is at it, and from which its peers are near it.
const AT_CEILING: f64 = 0.97;
const NEAR_CEILING: f64 = 0.85;

impl Column {
    /// The deviation of every node, by what the others show corrected by their own usual ratios.
    pub(super) fn compare(&mut self, work: &mut Work) {
        let quantum = self.about.quantum;
        work.medians.clear();
        for cell in &mut self.cells {
            work.values.clear();
            work.values.extend_from_slice(cell.usual.kept());
            let gain = median(&mut work.values);
            cell.now.gain = if gain.is_finite() { gain } else { 1.0 };
            work.medians.push((cell.now.value + quantum) / cell.now.gain);
        }
        work.others.medians(&work.medians, PEERS, &mut work.values);
        let low = LOW * (self.reference + quantum);
        for (cell, &peers) in self.cells.iter_mut().zip(&work.values) {
            let now = &mut cell.now;
            now.peers = peers;
            let (usual, own) = (now.gain * peers, now.value + quantum);
            if !peers.is_finite() {
                continue;
            }
            if usual.max(low) > 0.0 {
                now.deviation = ((own - usual) / usual.max(low)).clamp(-DEVIATION, DEVIATION);
            }
            if peers.max(low) > 0.0 {
                now.ratio = (own / peers.max(low)).clamp(0.0, RATIO);
            }
        }
    }

    /// What a deviation is in standard deviations: of the cell's own history or of the usual cell's, whichever varies more.
    pub(super) fn scale(&mut self, level_counts: bool, work: &mut Work) {
        work.medians.clear();
        for cell in &mut self.cells {
            work.values.clear();
            work.values.extend(cell.usual.kept().iter().map(|ratio| (ratio / cell.now.gain - 1.0).abs()));
            cell.now.sigma = spread(&mut work.values);
            work.medians.push(cell.now.sigma);
        }
        let usual = median(&mut work.medians);
        let (ceiling, level) = (self.about.ceiling, self.level);
        for cell in &mut self.cells {
            let few = 1.0 + FEW / cell.usual.count().max(1) as f64;
            let learned = cell.is_learned();
            let now = &mut cell.now;
            now.sigma = (now.sigma.max(usual) * few).hypot(self.about.floor);
            let near = now.value >= AT_CEILING * ceiling && now.gain * now.peers >= NEAR_CEILING * ceiling;
            if now.deviation > 0.0 && (near || level >= AT_CEILING * ceiling) {
                now.deviation = 0.0;
            }
            let z = now.deviation / now.sigma;
            now.ready = learned && level_counts && z.is_finite();
            now.z = if now.ready { z } else { 0.0 };
        }
    }

    /// The same of the last minute, whose means vary less.
    pub(super) fn minutes(&mut self, work: &mut Work) {
        work.medians.clear();
        for cell in &self.cells {
            work.medians.push(spread_of_means(cell, &mut work.values));
        }
        work.values.clear();
        work.values.extend_from_slice(&work.medians);
        let usual = median(&mut work.values);
        for (cell, own) in self.cells.iter_mut().zip(&work.medians) {
            cell.now.z6 = cell.minute(own.max(usual), self.about.floor);
        }
    }
}

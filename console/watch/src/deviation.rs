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

#[cfg(test)]
mod tests {
    use muster_wire::Telemetry;

    use super::*;

    /// Learned values of each node.
    const LEARNED: usize = 16;

    /// Nodes whose usual ratio to the others goes from one value to another, with what they show now, compared and scaled.
    fn scaled(nodes: &[(f64, f64, f64)], ceiling: f64, level_counts: bool) -> Column {
        let about = Telemetry { ceiling, floor: 0.02, ..Telemetry::unknown() };
        let mut column = Column::new("some".to_owned(), about, nodes.len(), 0);
        for (cell, &(low, high, value)) in column.cells.iter_mut().zip(nodes) {
            (0..LEARNED).for_each(|nr| cell.usual.push(if nr % 2 == 0 { low } else { high }));
            cell.now.value = value;
        }
        column.level = median(&mut nodes.iter().map(|node| node.2).collect::<Vec<_>>());
        column.reference = column.level;
        let mut work = Work::default();
        column.compare(&mut work);
        column.scale(level_counts, &mut work);
        column
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn a_deviation_is_from_the_own_usual_ratio_and_bounded_where_little_is_usual() {
        // Four that are alike, one that usually shows a tenth of what they do: no less than a quarter of 100 is divided by.
        for (usual, value, deviation, ratio) in [
            (1.0, 80.0, -0.2, 0.8),
            (0.5, 50.0, 0.0, 0.5),
            (0.5, 40.0, -0.2, 0.4),
            (0.1, 20.0, 0.4, 0.2),
            (1.0, 1_000.0, 5.0, 9.0),
        ] {
            let alike = (1.0, 1.0, 100.0);
            let column = scaled(&[(usual, usual, value), alike, alike, alike, alike], f64::INFINITY, true);
            let now = column.cells[0].now;
            assert!(near(now.peers, 100.0) && near(now.gain, usual), "{now:?}");
            assert!(near(now.deviation, deviation) && near(now.ratio, ratio), "{now:?}");
            assert!(now.ready && near(now.z, deviation / 0.02), "{now:?}");
            assert!(column.cells[1..].iter().all(|cell| near(cell.now.deviation, 0.0)), "{column:?}");
        }
    }

    #[test]
    fn the_spread_is_the_own_or_the_usual_one_whichever_is_larger() {
        let (quiet, noisy) = ((1.0, 1.0, 100.0), (0.9, 1.1, 100.0));
        let odd = |(low, high, _): (f64, f64, f64)| (low, high, 50.0);
        // A tenth either way is 1.4826 tenths of a standard deviation; 16 values make it 1 + 4/16 times as wide.
        let wide = (0.1 * 1.4826 * 1.25_f64).hypot(0.02);
        for (nodes, sigma) in [
            ([odd(quiet), quiet, quiet, quiet, quiet], 0.02),
            ([odd(noisy), quiet, quiet, quiet, quiet], wide),
            ([odd(quiet), noisy, noisy, noisy, quiet], wide),
        ] {
            let now = scaled(&nodes, f64::INFINITY, true).cells[0].now;
            assert!(near(now.sigma, sigma) && near(now.z, -0.5 / sigma), "{now:?}");
            let now = scaled(&nodes, f64::INFINITY, false).cells[0].now;
            assert!(!now.ready && near(now.z, 0.0), "a level that says nothing: {now:?}");
        }
    }

    #[test]
    fn a_node_at_the_ceiling_is_above_its_peers_only_where_they_are_far_from_it() {
        for (usual, value, peers, counts) in [
            (1.0, 99.0, 90.0, false),
            (1.0, 97.0, 85.0, false),
            (1.0, 96.0, 90.0, true),
            (1.0, 99.0, 84.0, true),
            (1.0, 99.0, 60.0, true),
            // All of them are at it, so that nobody can be above.
            (0.5, 80.0, 98.0, false),
            (0.5, 80.0, 97.0, false),
            (0.5, 80.0, 96.0, true),
            // Below it, a node is below.
            (1.0, 50.0, 99.0, true),
        ] {
            let other = (1.0, 1.0, peers);
            let now = scaled(&[(usual, usual, value), other, other, other, other], 100.0, true).cells[0].now;
            let z = if counts { (value / (usual * peers) - 1.0) / 0.02 } else { 0.0 };
            assert!(near(now.z, z) && now.ready, "{value} beside {peers}: {now:?}");
        }
    }
}

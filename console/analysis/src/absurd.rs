//! Values that no machine can have measured: a node that is a million times its peers has a broken clock or lies.

use std::sync::Arc;

use muster_wire::{Direction, Unit};

use crate::{Observation, Sample};

/// Times the peers' median past which a value is no measurement.
pub const ABSURD: f64 = 1e6;
/// Others of whom the median must be known.
const PEERS: usize = 2;

/// Places in `observed` whose values are absurd beside those of the others, and why, so that they count as a failed benchmark: they
/// must not stretch what everybody is compared on. A rate is absurd by its largest value; of a time it takes the median, since one
/// step may stand still for long.
#[must_use]
pub fn absurd(observed: &[(Arc<str>, Observation)], unit: Unit, direction: Direction) -> Vec<(usize, String)> {
    let samples = || observed.iter().enumerate().filter_map(|(at, (_, one))| Some((at, one.sample()?)));
    let worst = |sample: &Sample| match direction {
        Direction::HigherIsBetter => sample.values().last().copied().unwrap_or(0.0),
        Direction::LowerIsBetter => sample.median(),
    };
    let (low, high) = samples().fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), (_, sample)| {
        (low.min(sample.median()), high.max(worst(sample)))
    });
    // Nearly always: nobody has to be sorted.
    if high <= low * ABSURD {
        return Vec::new();
    }
    let mut medians: Vec<f64> = samples().map(|(_, sample)| sample.median()).collect();
    medians.sort_unstable_by(f64::total_cmp);
    let peers = medians.len().saturating_sub(1);
    // Of the others: without one of the highest, which is what an absurd one is.
    let Some(usual) = medians.get(peers.saturating_sub(1) / 2).copied().filter(|m| peers >= PEERS && *m > 0.0) else {
        return Vec::new();
    };
    let found = samples().filter(|(_, sample)| worst(sample) > usual * ABSURD);
    let why = |sample: &Sample| {
        let (own, usual) = (unit.show(worst(sample)), unit.show(usual));
        format!(
            "{own} is more than a million times what {peers} peers have (median {usual}): it cannot be a measurement"
        )
    };
    found.map(|(at, sample)| (at, why(sample))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(direction: Direction, nodes: &[&[f64]]) -> Vec<(usize, String)> {
        let observed: Vec<(Arc<str>, Observation)> = nodes
            .iter()
            .enumerate()
            .map(|(at, values)| (format!("n{at}").into(), Observation::from_steps(values)))
            .collect();
        absurd(&observed, Unit::BytesPerSec, direction)
    }

    #[test]
    fn a_value_a_million_times_its_peers_is_no_measurement_and_others_stay() {
        let (rate, time) = (Direction::HigherIsBetter, Direction::LowerIsBetter);
        let found = said(rate, &[&[3e9, 3.1e9], &[1e308, 1e308], &[2.9e9, 3e9], &[3e9, 3e9]]);
        assert_eq!(found.len(), 1);
        let why = "1.00e308 B/s is more than a million times what 3 peers have (median 3.00 GB/s): it cannot be a measurement";
        assert_eq!((found[0].0, found[0].1.as_str()), (1, why));
        assert_eq!(said(rate, &[&[3.0, 1e300], &[3.0, 3.0], &[3.0, 3.0]]).len(), 1, "one value is enough for a rate");
        assert_eq!(said(time, &[&[3.0, 3.0, 1e300], &[3.0; 3], &[3.0; 3]]), [], "a step may stand still");
        assert_eq!(said(time, &[&[1e300; 3], &[3.0; 3], &[3.0; 3]]).len(), 1);
        assert_eq!(said(rate, &[&[1e6], &[1.5], &[1.0]]), [], "a fast node is no liar");
        assert_eq!(said(rate, &[&[1e300], &[1.0]]), [], "of two nobody knows who is right");
        assert_eq!(said(rate, &[&[1e300], &[1e300], &[1.0], &[1.0], &[1.1]]).len(), 2);
    }
}

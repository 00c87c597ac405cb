//! How far the nodes of a fleet lie apart, measured so that a few bad nodes do not widen it.
//!
//! Levels are compared as logarithms of *cost* (time for the same work): a node at half speed is `ln 2` worse in
//! both directions, and a spread is a relative one.

use muster_wire::Direction;
use serde::{Deserialize, Serialize};

/// Makes the median absolute deviation of normal values their standard deviation.
const MAD_TO_SIGMA: f64 = 1.4826;
/// Fleets quieter than this are treated as this quiet: below half a percent, clocks and rounding decide.
const SCALE_FLOOR: f64 = 0.005;
/// From this size on a node hardly moves its own fleet's median, and leaving it out is not worth the sort.
const LEAVE_OUT_BELOW: usize = 64;

/// Robust summary of the node medians of one metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Median of the node medians, in the metric's unit.
    pub centre: f64,
    /// Robust relative standard deviation of the node medians (MAD of logarithms * 1.4826), at least 0.005.
    pub scale: f64,
    /// Lower quartile of the node medians, in the metric's unit.
    pub low: f64,
    /// Upper quartile of the node medians, in the metric's unit.
    pub high: f64,
}

impl Spread {
    /// Spread of the node medians, `None` for fewer than two nodes or a centre of zero.
    #[must_use]
    pub fn of(medians: &[f64]) -> Option<Self> {
        let mut values = medians.to_vec();
        let centre = median_in_place(&mut values);
        if values.len() < 2 || centre <= 0.0 {
            return None;
        }
        let mut logs: Vec<f64> = values.iter().map(|v| log_cost(*v, Direction::LowerIsBetter)).collect();
        let (low, high) = (quantile_in_place(&mut values, 0.25), quantile_in_place(&mut values, 0.75));
        Some(Self { centre, scale: centre_and_scale(&mut logs).1, low, high })
    }

    /// How much worse `value` is than the centre: the ratio of costs (1.5 = takes 1.5 times as long), and how
    /// many spreads that is.
    #[must_use]
    pub fn slowdown(&self, value: f64, dir: Direction) -> (f64, f64) {
        let log = log_cost(value, dir) - log_cost(self.centre, dir);
        (log.exp(), log / self.scale)
    }
}

/// Logarithm of the cost a value stands for, kept finite at zero.
pub(crate) fn log_cost(value: f64, dir: Direction) -> f64 {
    let log = value.max(f64::MIN_POSITIVE).ln();
    match dir {
        Direction::HigherIsBetter => -log,
        Direction::LowerIsBetter => log,
    }
}

/// Linear quantile without a full sort; reorders `values`, NaN when there are none.
fn quantile_in_place(values: &mut [f64], q: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else {
        return f64::NAN;
    };
    let at = q * last as f64;
    let (_, low, above) = values.select_nth_unstable_by(at.floor() as usize, f64::total_cmp);
    let low = *low;
    let high = above.iter().copied().min_by(f64::total_cmp).unwrap_or(low);
    (high - low).mul_add(at.fract(), low)
}

fn median_in_place(values: &mut [f64]) -> f64 {
    quantile_in_place(values, 0.5)
}

/// Median and robust standard deviation; leaves the deviations in `values`.
fn centre_and_scale(values: &mut [f64]) -> (f64, f64) {
    let centre = median_in_place(values);
    values.iter_mut().for_each(|v| *v = (*v - centre).abs());
    (centre, (median_in_place(values) * MAD_TO_SIGMA).max(SCALE_FLOOR))
}

/// How far a node lies from its peers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offset {
    /// Natural logarithm of its cost over the peers' median cost: `ln 2` at half speed.
    pub slowdown: f64,
    /// Robust standard deviation of the peers' own logarithms, at least 0.005.
    pub scale: f64,
}

impl Offset {
    /// The slowdown in spreads of the peers.
    #[must_use]
    pub fn spreads(&self) -> f64 {
        self.slowdown / self.scale
    }
}

/// How far every node lies from its peers, in the logarithms of cost given, the node itself left out of the fleet it
/// is compared with.
pub(crate) fn against_peers(logs: &[f64]) -> Vec<Offset> {
    if logs.len() < 2 {
        return vec![Offset { slowdown: 0.0, scale: SCALE_FLOOR }; logs.len()];
    }
    let mut peers = logs.to_vec();
    if logs.len() >= LEAVE_OUT_BELOW {
        let (centre, scale) = centre_and_scale(&mut peers);
        return logs.iter().map(|l| Offset { slowdown: l - centre, scale }).collect();
    }
    (0..logs.len())
        .map(|own| {
            peers.clone_from_slice(logs);
            peers.swap_remove(own);
            let (centre, scale) = centre_and_scale(&mut peers);
            peers.push(0.0);
            Offset { slowdown: logs[own] - centre, scale }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_wire::Direction::{HigherIsBetter, LowerIsBetter};

    #[test]
    fn half_speed_is_a_factor_of_two_in_both_directions() {
        let spread = Spread::of(&[100.0, 101.0, 99.0, 100.0, 100.0]).unwrap();
        assert_eq!(spread.centre, 100.0);
        assert!((spread.slowdown(50.0, HigherIsBetter).0 - 2.0).abs() < 1e-12);
        assert!((spread.slowdown(200.0, LowerIsBetter).0 - 2.0).abs() < 1e-12);
        assert!(spread.slowdown(200.0, HigherIsBetter).1 < 0.0);
    }

    #[test]
    fn one_bad_node_does_not_widen_the_spread() {
        let quiet = Spread::of(&[100.0, 101.0, 99.0, 100.0, 100.5, 99.5]).unwrap();
        let with_bad = Spread::of(&[100.0, 101.0, 99.0, 100.0, 100.5, 99.5, 10.0]).unwrap();
        assert!(with_bad.scale < 2.0 * quiet.scale);
        assert_eq!(Spread::of(&[5.0]), None);
        assert_eq!(Spread::of(&[0.0, 0.0, 0.0]), None);
    }

    #[test]
    fn a_node_is_measured_against_the_others_only() {
        // With itself included, the bad node of three would drag the spread with it.
        let logs = [0.0, 0.0, 2.0_f64.ln()];
        let off = against_peers(&logs);
        assert!((off[2].slowdown - 2.0_f64.ln()).abs() < 1e-12);
        assert!((off[2].spreads() - 2.0_f64.ln() / SCALE_FLOOR).abs() < 1e-9);
        assert_eq!(against_peers(&[1.0])[0].slowdown, 0.0);
    }
}

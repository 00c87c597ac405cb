//! What share survived, without any shape assumed? The product-limit estimate of Kaplan and Meier (1958).

use serde::{Deserialize, Serialize};

use super::exponential::same_for_all;
use crate::risk::{Curves, FitError, Survival, Table};

/// A falling step function, right-continuous; 1 before its first step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KaplanMeier {
    times: Vec<f64>,
    values: Vec<f64>,
    at_risk: Vec<usize>,
    width: usize,
}

impl KaplanMeier {
    /// Estimate from `table`; where censoring and an event coincide the event comes first.
    ///
    /// # Errors
    /// Without rows or without events.
    pub fn fit(table: &Table) -> Result<Self, FitError> {
        FitError::check(table)?;
        Ok(Self { width: table.width(), ..Self::of(table.duration(), table.event()) })
    }

    /// The estimate from bare times; without events it stays at 1.
    #[must_use]
    pub fn of(duration: &[f64], event: &[bool]) -> Self {
        let mut order: Vec<usize> = (0..duration.len()).collect();
        order.sort_by(|&a, &b| duration[a].total_cmp(&duration[b]));
        let mut curve = Self { times: Vec::new(), values: Vec::new(), at_risk: Vec::new(), width: 1 };
        let (mut start, mut survival) = (0, 1.0);
        while start < order.len() {
            let time = duration[order[start]];
            let same = order[start..].iter().take_while(|&&i| duration[i] == time).count();
            let events = order[start..start + same].iter().filter(|&&i| event[i]).count();
            let at_risk = order.len() - start;
            if events > 0 {
                survival *= 1.0 - events as f64 / at_risk as f64;
                curve.times.push(time);
                curve.values.push(survival);
                curve.at_risk.push(at_risk);
            }
            start += same;
        }
        curve
    }

    /// Survival just after `time`.
    #[must_use]
    pub fn at(&self, time: f64) -> f64 {
        let steps = self.times.partition_point(|t| *t <= time);
        if steps == 0 { 1.0 } else { self.values[steps - 1] }
    }

    /// Survival just before `time`.
    #[must_use]
    pub fn before(&self, time: f64) -> f64 {
        let steps = self.times.partition_point(|t| *t < time);
        if steps == 0 { 1.0 } else { self.values[steps - 1] }
    }

    /// Steps as (time, survival after it, number at risk before it), for drawing.
    pub fn steps(&self) -> impl Iterator<Item = (f64, f64, usize)> + '_ {
        self.times.iter().zip(&self.values).zip(&self.at_risk).map(|((t, s), n)| (*t, *s, *n))
    }
}

impl Survival for KaplanMeier {
    fn survive(&self, rows: &[f64], times: &[f64]) -> Curves {
        same_for_all(self.count(rows), times, |t| self.at(t))
    }

    fn width(&self) -> usize {
        self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::risk::sets::{LEUKAEMIA_TREATED, survival_set};

    #[test]
    fn the_leukaemia_curve_is_the_published_one() {
        // Kalbfleisch and Prentice, table 1.1; any textbook's 6-MP example.
        let km = KaplanMeier::fit(&survival_set(LEUKAEMIA_TREATED)).unwrap();
        let expected = [
            (6.0, 0.857, 21),
            (7.0, 0.807, 17),
            (10.0, 0.753, 15),
            (13.0, 0.690, 12),
            (16.0, 0.627, 11),
            (22.0, 0.538, 7),
            (23.0, 0.448, 6),
        ];
        let steps: Vec<_> = km.steps().collect();
        assert_eq!(steps.len(), expected.len());
        for ((t, s, n), (time, survival, at_risk)) in steps.into_iter().zip(expected) {
            assert_eq!((t, n), (time, at_risk));
            assert!((s - survival).abs() < 6e-4, "{t}: {s}");
        }
        assert_eq!(km.before(6.0), 1.0);
        assert!(km.at(6.0) < 1.0);
    }

    #[test]
    fn a_censored_node_leaves_the_risk_set_without_lowering_the_curve() {
        let km = KaplanMeier::of(&[1.0, 2.0, 3.0], &[false, true, false]);
        assert_eq!(km.at(1.5), 1.0);
        assert_eq!(km.at(2.0), 0.5);
        assert_eq!(KaplanMeier::of(&[1.0], &[false]).at(9.0), 1.0);
    }
}

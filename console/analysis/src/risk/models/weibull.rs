//! What if the hazard rises or falls as a power of time? Weibull's law by maximum likelihood.

use serde::{Deserialize, Serialize};

use super::exponential::same_for_all;
use crate::risk::{Curves, FitError, Survival, Table};

/// `S(t) = exp(-(t / scale)^shape)`: shape 1 is a constant hazard, below 1 a falling one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Weibull {
    shape: f64,
    scale: f64,
    width: usize,
}

impl Weibull {
    /// Solves the profile likelihood equation in the shape (Kalbfleisch and Prentice 2002, section 3.3) by
    /// bisection on its monotone form. Durations of zero count as a millionth of the mean duration.
    ///
    /// # Errors
    /// Without an event.
    pub fn fit(table: &Table) -> Result<Self, FitError> {
        FitError::check(table)?;
        let n = table.len() as f64;
        let mean = table.duration().iter().sum::<f64>() / n;
        let logs: Vec<f64> = table.duration().iter().map(|t| (t / mean).max(1e-6).ln()).collect();
        let events = table.events() as f64;
        let at_events = logs.iter().zip(table.event()).filter(|(_, e)| **e).map(|(l, _)| l).sum::<f64>() / events;
        // sum t^k ln t / sum t^k - 1/k - mean of ln t over events: rises with k.
        let slope = |shape: f64| {
            let top = logs.iter().fold(f64::NEG_INFINITY, |m, l| m.max(shape * l));
            let (mut up, mut down) = (0.0, 0.0);
            for l in &logs {
                let power = (shape * l - top).exp();
                up += power * l;
                down += power;
            }
            up / down - 1.0 / shape - at_events
        };
        let (mut low, mut high) = (1e-3_f64, 1e3_f64);
        for _ in 0..200 {
            let middle = (low * high).sqrt();
            if slope(middle) > 0.0 { high = middle } else { low = middle }
        }
        let shape = (low * high).sqrt();
        let sum: f64 = logs.iter().map(|l| (shape * l).exp()).sum();
        Ok(Self { shape, scale: mean * (sum / events).powf(1.0 / shape), width: table.width() })
    }

    /// Exponent of time in the cumulative hazard.
    #[must_use]
    pub fn shape(&self) -> f64 {
        self.shape
    }

    /// Time by which 63 % have had an event.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.scale
    }
}

impl Survival for Weibull {
    fn survive(&self, rows: &[f64], times: &[f64]) -> Curves {
        same_for_all(self.count(rows), times, |t| (-(t.max(0.0) / self.scale).powf(self.shape)).exp())
    }

    fn width(&self) -> usize {
        self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chance;
    use crate::risk::Table;
    use crate::risk::sets::{LEUKAEMIA_TREATED, survival_set};

    /// Log likelihood of a Weibull law.
    fn likelihood(table: &Table, shape: f64, scale: f64) -> f64 {
        table
            .duration()
            .iter()
            .zip(table.event())
            .map(|(t, e)| {
                let z = t / scale;
                f64::from(u8::from(*e)) * (shape.ln() - scale.ln() + (shape - 1.0) * z.ln()) - z.powf(shape)
            })
            .sum()
    }

    #[test]
    fn the_fit_is_the_top_of_the_likelihood() {
        // R survreg(Surv(time, status) ~ 1) on the 6-MP arm: shape 1.354, scale 33.77.
        let table = survival_set(LEUKAEMIA_TREATED);
        let w = Weibull::fit(&table).unwrap();
        assert!((w.shape() - 1.354).abs() < 2e-3 && (w.scale() - 33.77).abs() < 0.02, "{w:?}");
        let top = likelihood(&table, w.shape(), w.scale());
        for (a, b) in [(0.01, 0.0), (-0.01, 0.0), (0.0, 0.1), (0.0, -0.1)] {
            assert!(likelihood(&table, w.shape() + a, w.scale() + b) < top);
        }
    }

    #[test]
    fn a_law_is_found_again_through_censoring() {
        let mut chance = Chance::new(1);
        let (mut duration, mut event) = (Vec::new(), Vec::new());
        for _ in 0..20_000 {
            let t = 100.0 * chance.exponential().powf(1.0 / 0.7);
            let c = 300.0 * chance.unit();
            duration.push(t.min(c));
            event.push(t <= c);
        }
        let rows = duration.len();
        let w = Weibull::fit(&Table::new(vec!["x".into()], vec![0.0; rows], duration, event).unwrap()).unwrap();
        assert!((w.shape() - 0.7).abs() < 0.02 && (w.scale() - 100.0).abs() < 3.0, "{w:?}");
    }
}

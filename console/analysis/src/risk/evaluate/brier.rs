//! How far are predicted probabilities from what happened? Brier score and binomial log likelihood at a time,
//! with weights for the rows that censoring hides (Graf et al. 1999), and both integrated over time.

use crate::risk::{Curves, KaplanMeier, Table};

/// Probability of still being watched: the product-limit curve of censoring on the test rows.
#[derive(Clone, Debug)]
pub struct Censoring {
    watched: KaplanMeier,
}

impl Censoring {
    /// Censoring of `table`.
    #[must_use]
    pub fn of(table: &Table) -> Self {
        let censored: Vec<bool> = table.event().iter().map(|e| !e).collect();
        Self { watched: KaplanMeier::of(table.duration(), &censored) }
    }

    /// What is known of row `i` at `time`: whether it survived, and its weight; none when censored before.
    #[must_use]
    pub fn outcome(&self, table: &Table, i: usize, time: f64) -> Option<(bool, f64)> {
        let (duration, event) = (table.duration()[i], table.event()[i]);
        if duration > time {
            return Some((true, 1.0 / self.watched.at(time).max(1e-9)));
        }
        event.then(|| (false, 1.0 / self.watched.before(duration).max(1e-9)))
    }

    /// Weighted mean over all rows of `loss(predicted survival, survived)` at `time`.
    fn mean(&self, table: &Table, time: f64, curve: impl Fn(usize) -> f64, loss: impl Fn(f64, bool) -> f64) -> f64 {
        let (mut sum, mut weights) = (0.0, 0.0);
        for i in 0..table.len() {
            if let Some((survived, weight)) = self.outcome(table, i, time) {
                sum += weight * loss(curve(i), survived);
                weights += weight;
            }
        }
        if weights > 0.0 { sum / weights } else { 0.0 }
    }
}

fn squared(s: f64, survived: bool) -> f64 {
    if survived { (1.0 - s).powi(2) } else { s * s }
}

fn surprise(s: f64, survived: bool) -> f64 {
    let s = s.clamp(1e-7, 1.0 - 1e-7);
    if survived { -s.ln() } else { -(1.0 - s).ln() }
}

/// Brier score of `curves` (row by row those of `table`) at `time`: 0 is perfect, 0.25 a coin.
#[must_use]
pub fn brier(table: &Table, curves: &Curves, time: f64) -> f64 {
    Censoring::of(table).mean(table, time, |i| curves.at(i, time), squared)
}

/// Negative binomial log likelihood per row at `time`, in nats; probabilities are kept 1e-7 away from 0 and 1.
#[must_use]
pub fn log_likelihood(table: &Table, curves: &Curves, time: f64) -> f64 {
    Censoring::of(table).mean(table, time, |i| curves.at(i, time), surprise)
}

/// Means over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Integrated {
    /// Integrated Brier score.
    pub brier: f64,
    /// Integrated negative binomial log likelihood.
    pub log_likelihood: f64,
}

/// Both scores integrated over `grid` (rising) by the trapezoid rule, divided by its length. O(rows x grid).
#[must_use]
pub fn integrated(table: &Table, curves: &Curves, grid: &[f64]) -> Integrated {
    let censoring = Censoring::of(table);
    let at = |loss: fn(f64, bool) -> f64| -> Vec<f64> {
        grid.iter().map(|&t| censoring.mean(table, t, |i| curves.at(i, t), loss)).collect()
    };
    Integrated { brier: mean_over(grid, &at(squared)), log_likelihood: mean_over(grid, &at(surprise)) }
}

fn mean_over(grid: &[f64], values: &[f64]) -> f64 {
    let length = grid.last().zip(grid.first()).map_or(0.0, |(b, a)| b - a);
    if length <= 0.0 {
        return values.first().copied().unwrap_or(0.0);
    }
    let area: f64 = (1..grid.len()).map(|k| 0.5 * (grid[k] - grid[k - 1]) * (values[k] + values[k - 1])).sum();
    area / length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(time: &[f64], event: &[bool]) -> Table {
        Table::new(vec!["x".into()], vec![0.0; time.len()], time.to_vec(), event.to_vec()).unwrap()
    }

    #[test]
    fn without_censoring_the_score_is_the_plain_mean_square() {
        let t = table(&[1.0, 2.0, 3.0, 4.0], &[true; 4]);
        let c = Curves::new(vec![2.5], vec![0.1, 0.4, 0.7, 1.0]);
        let plain = (0.01 + 0.16 + 0.09 + 0.0) / 4.0;
        assert!((brier(&t, &c, 2.5) - plain).abs() < 1e-12);
        let nll = -(0.9_f64.ln() + 0.6_f64.ln() + 0.7_f64.ln() + (1.0_f64 - 1e-7).ln()) / 4.0;
        assert!((log_likelihood(&t, &c, 2.5) - nll).abs() < 1e-9);
    }

    #[test]
    fn a_censored_row_gives_its_weight_to_those_watched_longer() {
        // Row 0 leaves at 1; of four watched, three remain: weight 4/3 each later.
        let t = table(&[1.0, 2.0, 3.0, 4.0], &[false, true, true, true]);
        let c = Curves::new(vec![2.5], vec![0.9, 0.4, 0.7, 1.0]);
        let censoring = Censoring::of(&t);
        assert_eq!(censoring.outcome(&t, 0, 2.5), None);
        assert!((censoring.outcome(&t, 1, 2.5).unwrap().1 - 4.0 / 3.0).abs() < 1e-12);
        assert!((brier(&t, &c, 2.5) - (0.16 + 0.09) / 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_integral_of_a_constant_is_the_constant() {
        let t = table(&[5.0, 5.0], &[false, false]);
        let c = Curves::new(vec![1.0, 4.0], vec![0.5; 4]);
        let i = integrated(&t, &c, &[1.0, 2.0, 4.0]);
        assert!((i.brier - 0.25).abs() < 1e-12 && (i.log_likelihood - 2.0_f64.ln()).abs() < 1e-12);
    }
}

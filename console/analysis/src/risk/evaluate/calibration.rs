//! Do the nodes said to fail with 10 % fail in 10 of 100 cases? Predicted against observed, in groups of equal
//! size by risk.

use crate::risk::{Curves, KaplanMeier, Table};

/// One group of rows of similar risk.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Bin {
    /// Mean predicted probability of an incident by the horizon.
    pub predicted: f64,
    /// What happened: one minus the product-limit survival of the group at the horizon.
    pub observed: f64,
    /// Rows.
    pub rows: usize,
}

/// At most `bins` groups by rising predicted risk at `horizon`; rows of equal risk stay together.
#[must_use]
pub fn calibration(table: &Table, curves: &Curves, horizon: f64, bins: usize) -> Vec<Bin> {
    let risk: Vec<f64> = (0..table.len()).map(|i| 1.0 - curves.at(i, horizon)).collect();
    let mut order: Vec<usize> = (0..table.len()).collect();
    order.sort_by(|&a, &b| risk[a].total_cmp(&risk[b]).then(a.cmp(&b)));
    let size = order.len().div_ceil(bins.max(1)).max(1);
    let mut found = Vec::new();
    let mut start = 0;
    while start < order.len() {
        let mut end = (start + size).min(order.len());
        while end < order.len() && risk[order[end]] == risk[order[end - 1]] {
            end += 1;
        }
        let group = table.select(&order[start..end]);
        let rows = end - start;
        found.push(Bin {
            predicted: order[start..end].iter().map(|&i| risk[i]).sum::<f64>() / rows as f64,
            observed: 1.0 - KaplanMeier::of(group.duration(), group.event()).at(horizon),
            rows,
        });
        start = end;
    }
    found
}

/// Mean distance between predicted and observed, weighted by rows: 0 is perfect.
#[must_use]
pub fn calibration_error(bins: &[Bin]) -> f64 {
    let rows: usize = bins.iter().map(|b| b.rows).sum();
    bins.iter().map(|b| b.rows as f64 * (b.predicted - b.observed).abs()).sum::<f64>() / rows.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chance;

    #[test]
    fn the_true_law_is_calibrated_and_a_doubled_one_is_not() {
        let mut chance = Chance::new(1);
        let rates: Vec<f64> = (0..20_000).map(|_| 0.05 * chance.unit()).collect();
        let time: Vec<f64> = rates.iter().map(|r| (chance.exponential() / r).min(100.0)).collect();
        let event = time.iter().map(|t| *t < 100.0).collect();
        let table = Table::new(vec![], vec![], time, event).unwrap();
        let curves = |k: f64| Curves::new(vec![10.0], rates.iter().map(|r| (-k * r * 10.0).exp()).collect());
        let right = calibration(&table, &curves(1.0), 10.0, 10);
        assert_eq!(right.len(), 10);
        assert!(right.windows(2).all(|w| w[0].predicted < w[1].predicted));
        assert!(calibration_error(&right) < 0.01);
        assert!(calibration_error(&calibration(&table, &curves(2.0), 10.0, 10)) > 0.1);
    }

    #[test]
    fn equal_risks_are_one_group() {
        let table = Table::new(vec![], vec![], vec![1.0; 10], vec![true; 10]).unwrap();
        let bins = calibration(&table, &Curves::new(vec![1.0], vec![0.5; 10]), 1.0, 5);
        assert_eq!(bins, [Bin { predicted: 0.5, observed: 1.0, rows: 10 }]);
    }
}

//! What would SuperBench report? Its accuracy of the predicted time to the next incident (ATC'24, section 5.3).
//!
//! The paper prints `||prediction| - |time|| / 2400`; that would call a perfect model 0 % accurate, so the
//! missing `1 -` is supplied. It mostly rewards predicting the cap, which is why it stands beside other scores.

use crate::risk::{Curves, Table};

/// Which point of a curve is the prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Forecast {
    /// The median, right for an absolute error.
    Median,
    /// The restricted mean, as the paper describes.
    Mean,
}

/// Mean of `1 - |prediction - time| / cap`, both cut at `cap`; rows censored before the cap are left out, since
/// their time is unknown. None without a known row.
#[must_use]
pub fn accuracy(table: &Table, curves: &Curves, cap: f64, forecast: Forecast) -> Option<f64> {
    let (mut sum, mut rows) = (0.0, 0_usize);
    for i in 0..table.len() {
        let time = table.duration()[i];
        if table.event()[i] || time >= cap {
            let prediction = match forecast {
                Forecast::Median => curves.median(i, cap),
                Forecast::Mean => curves.restricted_mean(i, cap),
            };
            sum += 1.0 - (prediction - time.min(cap)).abs() / cap;
            rows += 1;
        }
    }
    (rows > 0).then(|| sum / rows as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predicting_the_cap_scores_the_mean_of_the_capped_times() {
        let table = Table::new(vec![], vec![], vec![600.0, 2400.0, 2400.0], vec![true, false, false]).unwrap();
        let sure = Curves::new(vec![2400.0], vec![0.9; 3]);
        let got = accuracy(&table, &sure, 2400.0, Forecast::Median).unwrap();
        assert!((got - (600.0 + 2400.0 + 2400.0) / 3.0 / 2400.0).abs() < 1e-12);
    }
}

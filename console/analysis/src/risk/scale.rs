//! How are features brought to one size? Numbers to mean 0 and standard deviation 1; yes/no features stay.

use serde::{Deserialize, Serialize};

use super::Table;

/// Centre and size of each feature, as found in the training rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    centre: Vec<f64>,
    size: Vec<f64>,
}

impl Scale {
    /// Scale of the rows of `table`. A feature that takes only 0 and 1, or does not vary, keeps its size.
    #[must_use]
    pub fn of(table: &Table) -> Self {
        let (centre, size) = (0..table.width()).map(|j| one(table, j)).unzip();
        Self { centre, size }
    }

    /// One row, scaled.
    pub fn apply<'a>(&'a self, row: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        row.iter().zip(self.centre.iter().zip(&self.size)).map(|(x, (c, s))| (x - c) / s)
    }

    /// Number of features.
    #[must_use]
    pub fn width(&self) -> usize {
        self.centre.len()
    }
}

fn one(table: &Table, j: usize) -> (f64, f64) {
    let column = || (0..table.len()).map(|i| table.row(i)[j]);
    if table.is_empty() || column().all(|v| v == 0.0 || v == 1.0) {
        return (0.0, 1.0);
    }
    let n = table.len() as f64;
    let mean = column().sum::<f64>() / n;
    let sd = (column().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
    (mean, if sd > 1e-12 * (1.0 + mean.abs()) { sd } else { 1.0 })
}

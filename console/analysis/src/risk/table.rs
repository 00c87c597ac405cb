//! What do survival models learn from? Rows of features, each with the time watched and whether it ended in an
//! incident.

use serde::{Deserialize, Serialize};

/// Why rows are not a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTable {
    /// Lengths disagree.
    #[error("{rows} rows of {width} features need {} values and as many durations and events as rows", rows * width)]
    Shape {
        /// Number of durations.
        rows: usize,
        /// Number of names.
        width: usize,
    },
    /// A value that is not a finite number, or a negative duration.
    #[error("row {row}: features must be finite numbers and durations finite and not negative")]
    NotFinite {
        /// Index of the row.
        row: usize,
    },
}

/// Right-censored observations, row-major.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    names: Vec<String>,
    values: Vec<f64>,
    duration: Vec<f64>,
    event: Vec<bool>,
}

impl Table {
    /// Table of `values` (rows x names, row-major), `duration` (any one unit of time, hours for incidents) and
    /// `event` (false: censored).
    ///
    /// # Errors
    /// When the lengths do not fit, or a value is not finite.
    pub fn new(names: Vec<String>, values: Vec<f64>, duration: Vec<f64>, event: Vec<bool>) -> Result<Self, BadTable> {
        let (rows, width) = (duration.len(), names.len());
        if event.len() != rows || values.len() != rows * width {
            return Err(BadTable::Shape { rows, width });
        }
        let table = Self { names, values, duration, event };
        let bad = |row: &usize| {
            let time = table.duration[*row];
            !time.is_finite() || time < 0.0 || table.row(*row).iter().any(|v| !v.is_finite())
        };
        match (0..rows).find(bad) {
            Some(row) => Err(BadTable::NotFinite { row }),
            None => Ok(table),
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.duration.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.duration.is_empty()
    }

    /// Names of the features.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of features.
    #[must_use]
    pub fn width(&self) -> usize {
        self.names.len()
    }

    /// Position of the feature `name`.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|n| n == name)
    }

    /// Features of row `i`.
    #[must_use]
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.width()..(i + 1) * self.width()]
    }

    /// All features, rows x width, row-major.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Time watched, one per row.
    #[must_use]
    pub fn duration(&self) -> &[f64] {
        &self.duration
    }

    /// Whether the watch ended in an event, one per row.
    #[must_use]
    pub fn event(&self) -> &[bool] {
        &self.event
    }

    /// Number of events.
    #[must_use]
    pub fn events(&self) -> usize {
        self.event.iter().filter(|e| **e).count()
    }

    /// The rows `rows`, in that order; rows may repeat.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            names: self.names.clone(),
            values: rows.iter().flat_map(|&i| self.row(i).iter().copied()).collect(),
            duration: rows.iter().map(|&i| self.duration[i]).collect(),
            event: rows.iter().map(|&i| self.event[i]).collect(),
        }
    }

    /// The rows of both tables; none when their features differ.
    #[must_use]
    pub fn joined(&self, other: &Self) -> Option<Self> {
        (self.names == other.names).then(|| Self {
            names: self.names.clone(),
            values: [self.values.as_slice(), &other.values].concat(),
            duration: [self.duration.as_slice(), &other.duration].concat(),
            event: [self.event.as_slice(), &other.event].concat(),
        })
    }

    /// The same rows watched no longer than `limit[row]`: what was known at that age.
    #[must_use]
    pub fn censored_at(mut self, limit: &[f64]) -> Self {
        for ((duration, event), limit) in self.duration.iter_mut().zip(&mut self.event).zip(limit) {
            if *duration > *limit {
                *duration = limit.max(0.0);
                *event = false;
            }
        }
        self
    }

    /// Row numbers by rising duration; among equal ones events come first, as risk sets ask.
    #[must_use]
    pub fn by_duration(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by(|&a, &b| {
            self.duration[a].total_cmp(&self.duration[b]).then(self.event[b].cmp(&self.event[a])).then(a.cmp(&b))
        });
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_refuses_what_is_not_one() {
        let names = || vec!["a".to_owned()];
        assert!(Table::new(names(), vec![1.0, 2.0], vec![1.0], vec![true]).is_err());
        assert_eq!(
            Table::new(names(), vec![1.0, f64::NAN], vec![1.0, 1.0], vec![true, true]),
            Err(BadTable::NotFinite { row: 1 })
        );
        assert!(Table::new(names(), vec![1.0], vec![-1.0], vec![true]).is_err());
    }

    #[test]
    fn censoring_forgets_what_came_later() {
        let t = Table::new(vec![], vec![], vec![5.0, 5.0, 2.0], vec![true, true, true]).unwrap();
        let t = t.censored_at(&[5.0, 3.0, 3.0]);
        assert_eq!((t.duration(), t.event()), ([5.0, 3.0, 2.0].as_slice(), [true, false, true].as_slice()));
    }
}

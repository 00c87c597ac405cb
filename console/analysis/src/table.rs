//! One value per node and metric, by metric: what a results file of a whole fleet holds.

use std::collections::HashMap;

/// Values of a fleet, column by column. NaN stands for a value that is not there, and nothing else does: a reader
/// that meets a NaN has no value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    nodes: Vec<String>,
    metrics: Vec<String>,
    columns: Vec<Vec<f64>>,
    index: HashMap<String, usize>,
}

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a row; a node may have several (its history), one after the other.
    pub fn row(&mut self, node: impl Into<String>) {
        self.nodes.push(node.into());
    }

    /// Column of `metric`, made when it is new.
    pub fn column_of(&mut self, metric: &str) -> usize {
        if let Some(&at) = self.index.get(metric) {
            return at;
        }
        let at = self.columns.len();
        self.metrics.push(metric.to_owned());
        self.columns.push(Vec::new());
        self.index.insert(metric.to_owned(), at);
        at
    }

    /// Puts `value` into the last row; the last of several wins. Without a row, nothing happens.
    pub fn put(&mut self, column: usize, value: f64) {
        let Some(row) = self.nodes.len().checked_sub(1) else { return };
        let values = &mut self.columns[column];
        if values.len() > row {
            values[row] = value;
        } else {
            values.resize(row, f64::NAN);
            values.push(value);
        }
    }

    /// Node names, one per row.
    #[must_use]
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// Metric names, one per column.
    #[must_use]
    pub fn metrics(&self) -> &[String] {
        &self.metrics
    }

    /// Values of a column from the first row on; rows past its end have none.
    #[must_use]
    pub fn column(&self, column: usize) -> &[f64] {
        &self.columns[column]
    }

    /// Where `metric` is.
    #[must_use]
    pub fn find(&self, metric: &str) -> Option<usize> {
        self.index.get(metric).copied()
    }

    /// The value of one cell, `None` when it is not there.
    #[must_use]
    pub fn value(&self, row: usize, column: usize) -> Option<f64> {
        self.columns[column].get(row).copied().filter(|v| !v.is_nan())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_put_is_not_there() {
        let mut table = Table::new();
        let a = table.column_of("a");
        table.put(a, 9.0);
        table.row("n0");
        table.row("n1");
        table.put(a, 1.0);
        let b = table.column_of("b");
        table.row("n2");
        table.put(b, 2.0);
        table.put(b, 3.0);
        assert_eq!((table.column_of("a"), table.find("b"), table.find("c")), (a, Some(b), None));
        assert_eq!([0, 1, 2].map(|row| table.value(row, a)), [None, Some(1.0), None]);
        assert_eq!([0, 1, 2].map(|row| table.value(row, b)), [None, None, Some(3.0)]);
    }
}

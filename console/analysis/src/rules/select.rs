//! Which metrics of a table a rule means: the benchmark's name literally, the rest by regular expression.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};

use crate::Table;

/// Largest compiled expression, bytes.
const LARGEST: usize = 1 << 20;

/// One entry of a rule's `metrics`.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// As written.
    pub(super) text: String,
    benchmark: Option<String>,
    regex: Regex,
}

impl Pattern {
    /// Compiles `text` in SuperBench's sense: found anywhere in a metric of the same benchmark.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        // Linear-time matching has no look-around and no back-references; such an expression is refused.
        let regex = RegexBuilder::new(text).size_limit(LARGEST).build().map_err(|e| e.to_string())?;
        Ok(Self { text: text.to_owned(), benchmark: benchmark(text).map(str::to_owned), regex })
    }

    /// Whether `metric` is meant, its benchmark aside.
    pub(super) fn finds(&self, metric: &str) -> bool {
        self.regex.is_match(metric)
    }
}

/// `mem-bw` of `mem-bw:perf/h2d_bw:0`; `None` without a slash.
fn benchmark(metric: &str) -> Option<&str> {
    let (benchmark, _) = metric.split_once('/')?;
    Some(benchmark.split_once(':').map_or(benchmark, |(name, _)| name))
}

/// Columns by benchmark.
pub(super) struct Columns<'a> {
    table: &'a Table,
    by_benchmark: BTreeMap<&'a str, Vec<usize>>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(table: &'a Table) -> Self {
        let mut by_benchmark: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (column, metric) in table.metrics().iter().enumerate() {
            if let Some(benchmark) = benchmark(metric) {
                by_benchmark.entry(benchmark).or_default().push(column);
            }
        }
        Self { table, by_benchmark }
    }

    /// Columns meant by any of `patterns`, by name.
    pub(super) fn meant(&self, patterns: &[Pattern]) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        for pattern in patterns {
            let own = pattern.benchmark.as_deref().and_then(|b| self.by_benchmark.get(b));
            for &column in own.into_iter().flatten() {
                let metric = &self.table.metrics()[column];
                if *metric == pattern.text || pattern.finds(metric) {
                    found.push(column);
                }
            }
        }
        found.sort_unstable_by(|&a, &b| self.table.metrics()[a].cmp(&self.table.metrics()[b]));
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_benchmark_is_literal_and_its_annotation_is_not_part_of_it() {
        let mut table = Table::new();
        for metric in ["mem-bw/h2d_bw:0", "mem-bw:perf/h2d_bw:1", "mem-bw-2/h2d_bw:0", "plain"] {
            table.column_of(metric);
        }
        let columns = Columns::of(&table);
        let meant = |text: &str| columns.meant(&[Pattern::new(text).unwrap()]);
        assert_eq!(meant(r"mem-bw/h2d_bw:\d+"), [0]);
        assert_eq!(meant(r"mem-bw:*.*/.*_bw"), [0, 1]);
        assert!(meant("plain").is_empty());
        assert!(Pattern::new("mem-bw/(?=x)").is_err());
        assert!(Pattern::new("mem-bw/(").is_err());
    }
}

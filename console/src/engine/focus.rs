//! What is too large to keep for every node, for the one that the screen looks at.

use std::sync::Arc;

use muster_analysis::{Sample, cdf_points};
use muster_store::Record;
use muster_tui::snapshot::{Focus, FocusSeries, MetricRow, NodeLog};

use super::picture::POINTS;

/// Values of a series that a sparkline can show.
const VALUES: usize = 400;

/// Series and log of `node`, of its newest records.
pub fn focus(node: &str, metrics: &[Arc<MetricRow>], records: &[Arc<Record>], log: Vec<NodeLog>) -> Focus {
    let own: Vec<&Arc<Record>> = records.iter().rev().filter(|r| r.node == node).collect();
    let series = metrics.iter().enumerate().filter_map(|(metric, row)| {
        let values = own.iter().map(|record| record.values_of(&row.id)).find(|values| !values.is_empty())?;
        let curve = cdf_points(&Sample::new(&values).ok()?, POINTS).into();
        Some(FocusSeries { metric, values: thinned(&values).into(), curve })
    });
    Focus { node: node.to_owned(), series: series.collect(), log: log.into(), past: None }
}

/// Every k-th value, so that at most [`VALUES`] are left.
fn thinned(values: &[f64]) -> Vec<f64> {
    values.iter().copied().step_by(values.len().div_ceil(VALUES).max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_is_thinned_and_a_short_one_is_not() {
        let long: Vec<f64> = (0..1_000).map(f64::from).collect();
        assert_eq!(thinned(&long).len(), 334);
        assert_eq!(thinned(&long[..5]), &long[..5]);
        assert!(thinned(&[]).is_empty());
    }
}

//! What is too large to keep for every node, for the one that the screen looks at.

use std::sync::Arc;

use muster_analysis::{Sample, cdf_points};
use muster_run::{Record, joined};
use muster_tui::snapshot::{Focus, FocusSeries, MetricRow, NodeLog};

use super::picture::POINTS;
use super::picture::series::newest;
use crate::judge::Told;

/// Values of a series that a sparkline can show.
const VALUES: usize = 400;

/// Series and log of `node`, of its newest records.
pub fn focus(
    node: &str,
    metrics: &[Arc<MetricRow>],
    (live, told): (&[Arc<Record>], &[Arc<Told>]),
    log: Vec<NodeLog>,
) -> Focus {
    let live = live.iter().rev().filter(|r| r.node == node);
    let own = live.chain(told.iter().flat_map(|told| told.records(node).iter().rev()));
    let newest = newest(own.map(AsRef::as_ref));
    let series = metrics.iter().filter_map(|row| {
        let values = joined(newest.get(&row.id)?.iter().copied());
        let curve = cdf_points(&Sample::new(&values).ok()?, POINTS).into();
        Some(FocusSeries { metric: row.id.clone(), values: thinned(&values).into(), curve })
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

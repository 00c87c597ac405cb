//! What is too large to keep for every node, for the one that the screen looks at.

use std::collections::HashMap;
use std::sync::Arc;

use muster_analysis::{Sample, cdf_points};
use muster_run::{Record, joined};
use muster_tui::snapshot::{Focus, FocusSeries, MetricRow, NodeLog};
use muster_wire::{MetricId, Series};

use super::picture::POINTS;

/// Values of a series that a sparkline can show.
const VALUES: usize = 400;

/// Series and log of `node`, of its newest records: those of the current run, oldest first, then its `stored` ones, newest first.
pub fn focus(
    node: &str,
    metrics: &[Arc<MetricRow>],
    (live, stored): (&[Arc<Record>], &[Record]),
    log: Vec<NodeLog>,
) -> Focus {
    let live = live.iter().rev().filter(|r| r.node == node).map(AsRef::as_ref);
    let newest = newest(live.chain(stored));
    let series = metrics.iter().filter_map(|row| {
        let values = joined(newest.get(&row.id)?.iter().copied());
        let curve = cdf_points(&Sample::new(&values).ok()?, POINTS).into();
        Some(FocusSeries { metric: row.id.clone(), values: thinned(&values).into(), curve })
    });
    Focus { node: node.to_owned(), series: series.collect(), log: log.into(), past: None, service: None }
}

/// The series of each metric in the newest record that has it; `records` come newest first. Gathered in one pass: searching
/// metric by metric would take minutes with thousands of them.
fn newest<'r>(records: impl IntoIterator<Item = &'r Record>) -> HashMap<&'r MetricId, Vec<&'r Series>> {
    let mut found = HashMap::new();
    for (metric, own) in records.into_iter().flat_map(Record::by_metric) {
        if own.iter().any(|series| !series.values.is_empty()) {
            found.entry(metric).or_insert(own);
        }
    }
    found
}

/// Every k-th value, so that at most [`VALUES`] are left.
fn thinned(values: &[f64]) -> Vec<f64> {
    values.iter().copied().step_by(values.len().div_ceil(VALUES).max(1)).collect()
}

#[cfg(test)]
mod tests {
    use muster_wire::{Direction, MetricId, Outcome, Series, Unit};

    use super::*;

    fn record(metrics: &[(&str, &[f64])]) -> Record {
        let series = |(name, values): &(&str, &[f64])| Series {
            metric: MetricId::new("disk", *name, "own"),
            unit: Unit::BytesPerSec,
            direction: Direction::HigherIsBetter,
            values: values.to_vec(),
            warmup: 0,
            started_ns: 0,
        };
        Record {
            run: "r".to_owned(),
            node: "n".to_owned(),
            work: "disk".to_owned(),
            outcome: Outcome::Done,
            at_ms: 1,
            elapsed_ns: 1,
            series: metrics.iter().map(series).collect(),
            facts: Vec::new(),
        }
    }

    #[test]
    fn a_long_series_is_thinned_and_a_short_one_is_not() {
        let long: Vec<f64> = (0..1_000).map(f64::from).collect();
        assert_eq!(thinned(&long).len(), 334);
        assert_eq!(thinned(&long[..5]), &long[..5]);
        assert!(thinned(&[]).is_empty());
    }

    #[test]
    fn the_newest_record_that_has_values_of_a_metric_gives_all_of_its_series() {
        let newer = record(&[("read", &[1.0]), ("read", &[2.0]), ("write", &[])]);
        let older = record(&[("read", &[9.0]), ("write", &[3.0])]);
        let found = newest([&newer, &older]);
        let values = |name: &str| joined(found[&MetricId::new("disk", name, "own")].iter().copied());
        assert_eq!((values("read"), values("write")), (vec![1.0, 2.0], vec![3.0]));
    }
}

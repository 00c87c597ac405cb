//! The newest series of every metric, gathered in one pass: searching metric by metric would take minutes in a fleet with
//! thousands of metrics.

use std::collections::HashMap;

use muster_analysis::Sample;
use muster_run::{Record, joined};
use muster_wire::{MetricId, Series};

use crate::judge::Told;

/// The series of each metric in the newest record that has it; `records` come newest first.
pub fn newest<'r>(records: impl IntoIterator<Item = &'r Record>) -> HashMap<&'r MetricId, Vec<&'r Series>> {
    let mut found = HashMap::new();
    for (metric, own) in records.into_iter().flat_map(Record::by_metric) {
        if own.iter().any(|series| !series.values.is_empty()) {
            found.entry(metric).or_insert(own);
        }
    }
    found
}

/// The series of every metric in one run, node by node.
pub(super) struct OfFleet<'t>(HashMap<&'t MetricId, Vec<(usize, &'t Series)>>);

impl<'t> OfFleet<'t> {
    /// Of the nodes called `names`.
    pub(super) fn of(told: &'t Told, names: &[String]) -> Self {
        let mut all: HashMap<&MetricId, Vec<(usize, &Series)>> = HashMap::new();
        for (node, name) in names.iter().enumerate() {
            for (metric, own) in newest(told.records(name).iter().rev().map(AsRef::as_ref)) {
                all.entry(metric).or_default().extend(own.into_iter().map(|series| (node, series)));
            }
        }
        Self(all)
    }

    /// The sample of the node with this index; `None` if nothing valid was measured.
    pub(super) fn sample(&self, metric: &MetricId, node: usize) -> Option<Sample> {
        let all = self.0.get(metric)?;
        let own = &all[all.partition_point(|(of, _)| *of < node)..];
        let own = &own[..own.partition_point(|(of, _)| *of == node)];
        Sample::new(&joined(own.iter().map(|(_, series)| *series))).ok()
    }
}

#[cfg(test)]
mod tests {
    use muster_wire::{Direction, Outcome, Unit};

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
    fn the_newest_record_that_has_values_of_a_metric_gives_all_of_its_series() {
        let newer = record(&[("read", &[1.0]), ("read", &[2.0]), ("write", &[])]);
        let older = record(&[("read", &[9.0]), ("write", &[3.0])]);
        let found = newest([&newer, &older]);
        let values = |name: &str| joined(found[&MetricId::new("disk", name, "own")].iter().copied());
        assert_eq!((values("read"), values("write")), (vec![1.0, 2.0], vec![3.0]));
    }
}

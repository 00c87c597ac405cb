//! What do the records of a run say of the collectives in it?

use std::collections::BTreeMap;

use muster_analysis::Sample;
use muster_playbook::report::{CollectiveFailure, CollectiveReport, CollectiveResult, LeftOut, SizeResult};
use muster_run::{Record, Run};
use muster_wire::{Collective, Outcome, whole_bytes};

use super::{cause, kept};

/// Prefix of the metrics, before the size that was asked for, bytes.
const METRIC: &str = "busbw-";

/// The collectives of `run`; nothing where it has none.
#[must_use]
pub fn collectives(run: &Run, records: &[Record]) -> Option<CollectiveReport> {
    let of = |what: Collective| {
        let own: Vec<Record> = records.iter().filter(|record| record.work == what.benchmark()).cloned().collect();
        (!own.is_empty()).then(|| result(what, own))
    };
    let results: Vec<CollectiveResult> = Collective::ALL.into_iter().filter_map(of).collect();
    (!results.is_empty()).then(|| CollectiveReport::new(&run.id, results))
}

fn result(collective: Collective, mut records: Vec<Record>) -> CollectiveResult {
    let rank = |record: &Record| kept::count(record, kept::RANK).map(|rank| rank as u64);
    records.sort_by_key(rank);
    let cause = cause::cause(&records);
    let (ranked, rest): (Vec<&Record>, Vec<&Record>) = records.iter().partition(|record| rank(record).is_some());
    let engine = ranked.iter().flat_map(|record| &record.series).next().map(|series| series.metric.engine.clone());
    let reason = |record: &Record| record.outcome.why().unwrap_or_default().to_owned();
    let left_out = rest.into_iter().map(|record| LeftOut { node: record.node.clone(), reason: reason(record) });
    let wrong_data = records.iter().any(|record| kept::told(record, cause::TROUBLE) == Some(cause::WRONG));
    // Who never took part is told as left out, and is no reason for the others to end.
    let failure = cause.filter(|_| ranked.iter().any(|record| record.outcome != Outcome::Done) || ranked.is_empty());
    CollectiveResult {
        collective,
        engine: engine.unwrap_or_else(|| "tcp".to_owned()),
        ranks: ranked.iter().map(|record| record.node.clone()).collect(),
        sizes: sizes(collective, &ranked),
        checked_bytes: ranked.iter().filter_map(|record| kept::count(record, "checked.bytes")).sum(),
        failure: failure.map(|cause| CollectiveFailure { wrong_data, nodes: cause.accused, reason: cause.text }),
        left_out: left_out.collect(),
    }
}

/// Sizes that all ranks measured. An operation is over when the last rank has its result, so of each the slowest counts.
fn sizes(collective: Collective, ranked: &[&Record]) -> Vec<SizeResult> {
    let mut all: BTreeMap<u64, (usize, Vec<f64>)> = BTreeMap::new();
    for series in ranked.iter().flat_map(|record| &record.series) {
        let Some(bytes) = series.metric.name.strip_prefix(METRIC).and_then(|size| size.parse().ok()) else { continue };
        let (ranks, worst) = all.entry(bytes).or_insert_with(|| (0, vec![f64::INFINITY; series.values.len()]));
        *ranks += 1;
        worst.truncate(series.values.len());
        worst.iter_mut().zip(&series.values).for_each(|(worst, value)| *worst = worst.min(*value));
    }
    let factor = collective.bus_factor(ranked.len());
    let size = |(asked, (ranks, busbw)): (u64, (usize, Vec<f64>))| {
        let sample = Sample::new(&busbw).ok().filter(|_| ranks == ranked.len())?;
        let busbw = sample.median();
        let (algbw, bytes) = (busbw / factor, whole_bytes(asked, ranks));
        let (operations, interval) = (sample.len(), sample.median_interval());
        Some(SizeResult { bytes, operations, time_ns: bytes as f64 / algbw * 1e9, algbw, busbw, interval })
    };
    all.into_iter().filter_map(size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_wire::{Direction, MetricId, Series, Unit};

    fn record(rank: u32, asked: u64, values: &[f64]) -> Record {
        Record {
            run: "r".into(),
            node: format!("n{rank}"),
            work: "net-allreduce".into(),
            outcome: Outcome::Done,
            at_ms: 0,
            elapsed_ns: 0,
            series: vec![Series {
                metric: MetricId::new("net-allreduce", format!("busbw-{asked}"), "tcp-4"),
                unit: Unit::BytesPerSec,
                direction: Direction::HigherIsBetter,
                values: values.to_vec(),
                warmup: 2,
                started_ns: 1,
            }],
            facts: vec![kept::number(kept::RANK, rank.into()), kept::number("checked.bytes", 500.0)],
        }
    }

    #[test]
    fn a_size_is_told_as_what_the_nodes_used_of_it_and_its_time_is_of_that() {
        let found = result(Collective::AllReduce, (0..3).map(|rank| record(rank, 100, &[64.0; 3])).collect());
        let size = found.sizes[0];
        // Of 100 bytes three nodes have eight whole elements each.
        assert_eq!((size.bytes, size.algbw, (size.time_ns / 1e9).round()), (96, 48.0, 2.0));
    }

    #[test]
    fn the_slowest_rank_of_each_operation_counts() {
        let records = vec![record(1, 1000, &[90.0, 50.0, 80.0]), record(0, 1000, &[100.0, 100.0, 60.0])];
        let found = result(Collective::AllReduce, records);
        assert_eq!((found.ranks, found.failure, found.checked_bytes), (vec!["n0".into(), "n1".into()], None, 1000.0));
        let size = found.sizes[0];
        assert_eq!((size.bytes, size.operations, size.busbw, size.algbw), (1000, 3, 60.0, 60.0));
        assert_eq!((size.interval, (size.time_ns / 1e9 * 60.0).round()), ([50.0, 90.0], 1000.0));
    }
}

//! What do the visits kept in a run come to: matrices, topology, and what they point at?

use std::collections::BTreeMap;

use muster_run::{PAIRS, Record, Run};
use muster_wire::Outcome;

use super::kept;
use crate::Params;
use crate::network::localise::Localisation;
use crate::network::topology::from_labels;
use crate::network::{
    LOSS, LeftOut, Matrix, PairsReport, PairsRun, Topology, direction_of, guess, judged, localise_beside,
};

/// Metric in which a visit that failed counts as one, unless its engine has another.
const FAILS: &str = "throughput";

/// One matrix per metric, from the records of a run.
fn matrices(records: &[&Record]) -> BTreeMap<String, Matrix> {
    let mut out: BTreeMap<String, Matrix> = BTreeMap::new();
    for record in records {
        let (Some(src), Some(dst)) = (kept::sender(record), kept::receiver(record)) else { continue };
        let up = kept::told(record, kept::UP);
        let mut push = |metric: &str, values: &[f64]| {
            let matrix = out.entry(metric.to_owned()).or_insert_with(|| Matrix::new(metric, direction_of(metric)));
            matrix.push_named(&src, dst, values, up);
        };
        if matches!(record.outcome, Outcome::Failed(_)) {
            push(kept::told(record, kept::ENGINE).unwrap_or(FAILS), &[]);
            continue;
        }
        // The windows of one visit are no independent values: one hiccup touches many of them.
        record.series.iter().for_each(|series| push(&series.metric.name, median(&series.values).as_slice()));
    }
    out
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// Everything known of the pairs of a run.
#[derive(Debug)]
pub struct Found {
    /// One per metric.
    pub matrices: BTreeMap<String, Matrix>,
    /// As given, as the run kept it, or as latencies suggest.
    pub topology: Topology,
    /// What each of the judged matrices points at.
    pub localised: BTreeMap<String, Localisation>,
    /// The same, put together.
    pub report: PairsReport,
}

/// What the pairs of a run point at; nothing where it has none. A topology `given` stands above the run's own.
#[must_use]
pub fn network<'a>(
    run: &Run,
    records: impl IntoIterator<Item = &'a Record>,
    given: Option<Topology>,
    params: &Params,
) -> Option<Found> {
    let records: Vec<&Record> = records.into_iter().filter(|record| super::is_pair(record)).collect();
    if records.is_empty() {
        return None;
    }
    let matrices = matrices(&records);
    let members: Vec<&Record> = records.iter().copied().filter(|record| record.work == PAIRS).collect();
    let topology = given.or_else(|| topology(&members)).unwrap_or_else(|| guess(matrices.values()));
    let mut report = PairsReport::new(topology.source());
    if let Some(source) = members.iter().find_map(|record| kept::told(record, kept::SOURCE)) {
        source.clone_into(&mut report.topology);
    }
    let localise = |matrix: &Matrix| localise_beside(matrix, matrices.get(LOSS), &topology, params);
    let own = matrices.iter().filter(|(metric, _)| judged(metric));
    let localised: BTreeMap<String, Localisation> =
        own.map(|(metric, matrix)| (metric.clone(), localise(matrix))).collect();
    localised.iter().for_each(|(metric, found)| report.add(metric, found.clone()));
    let (again, pairs): (Vec<&Record>, Vec<&Record>) = records
        .iter()
        .filter(|record| kept::receiver(record).is_some())
        .partition(|record| kept::count(record, kept::LOOK).is_some());
    let left_out = members.iter().filter_map(|record| match &record.outcome {
        Outcome::Failed(why) => Some(LeftOut { node: record.node.clone(), reason: why.clone() }),
        _ => None,
    });
    report.run = Some(PairsRun {
        id: run.id.clone(),
        visits: pairs.len() / 2,
        again: again.len() / 2,
        failed: pairs.iter().filter(|record| record.outcome != Outcome::Done).count() / 2,
        rounds: rounds(&pairs),
        left_out: left_out.collect(),
    });
    Some(Found { matrices, topology, localised, report })
}

/// When each direction of each pair was measured: `src,dst,round,begin_ms,end_ms,clock_error_ms,outcome`, times in
/// milliseconds since 1970 UTC on the console's clock.
#[must_use]
pub fn visits<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<[String; 7]> {
    let row = |record: &'a Record| {
        let number = |key: &str| kept::count(record, key).map_or_else(String::new, |number| format!("{number:.3}"));
        let outcome = record.outcome.why().unwrap_or("done").to_owned();
        let round = kept::count(record, kept::ROUND).map_or_else(String::new, |round| format!("{round}"));
        let [begin, end, error] = kept::INSTANTS.map(number);
        Some([kept::sender(record)?, kept::receiver(record)?.to_owned(), round, begin, end, error, outcome])
    };
    records.into_iter().filter_map(row).collect()
}

fn rounds(records: &[&Record]) -> usize {
    let seen: std::collections::BTreeSet<u64> =
        records.iter().filter_map(|record| kept::count(record, kept::ROUND)).map(|round| round as u64).collect();
    seen.len()
}

fn topology(members: &[&Record]) -> Option<Topology> {
    let own = members.iter().filter_map(|record| Some((record.node.clone(), kept::told(record, kept::PLACE)?)));
    let rails = members.iter().flat_map(|record| kept::rail_places(record));
    let places: Vec<(String, &str)> = own.chain(rails).collect();
    let places: Vec<(&str, Vec<&str>)> =
        places.iter().map(|(name, place)| (name.as_str(), place.split('/').collect())).collect();
    if places.is_empty() { None } else { from_labels(&places).ok() }
}

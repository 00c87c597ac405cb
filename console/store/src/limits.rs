//! Settles what is too large or too oddly named to be stored.

use muster_wire::limits::{BENCHMARK_BYTES, FACTS, SERIES_VALUES};
use muster_wire::{Datum, Fact, Outcome, Reading};

use crate::{Incident, StoreError, place};
use muster_run::{Record, Run};

/// Text of one incident, bytes.
const INCIDENT_BYTES: usize = 16 << 10;

/// Refuses a run whose names cannot be kept.
pub(crate) fn run(run: &Run) -> Result<(), StoreError> {
    place::run_id(&run.id)?;
    run.nodes.iter().try_for_each(|node| place::name("node", node))?;
    run.plan.iter().try_for_each(|work| place::name("work", work))
}

/// Refuses a record over the limits of the contract: nothing a node may say comes near them.
pub(crate) fn record(record: &Record) -> Result<(), StoreError> {
    place::run_id(&record.run)?;
    place::name("node", &record.node)?;
    place::name("work", &record.work)?;
    let over = |what: String| Err(StoreError::TooLarge { node: record.node.clone(), work: record.work.clone(), what });
    if let Some(series) = record.series.iter().find(|s| s.values.len() > SERIES_VALUES) {
        return over(format!("{} has {} values, at most {SERIES_VALUES}", series.metric, series.values.len()));
    }
    // One benchmark or collector may send several frames of facts.
    let (facts, most) = (record.facts.len(), FACTS * 16);
    if facts > most {
        return over(format!("{facts} facts, at most {most}"));
    }
    let bytes = size(record);
    if bytes > BENCHMARK_BYTES {
        return over(format!("{bytes} bytes, at most {BENCHMARK_BYTES}"));
    }
    Ok(())
}

/// Refuses a criterion that no reader would take back.
pub(crate) fn criterion(name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    if bytes.len() > BENCHMARK_BYTES {
        let what = format!("{} bytes, at most {BENCHMARK_BYTES}", bytes.len());
        return Err(StoreError::TooLarge { node: "the fleet".to_owned(), work: format!("criterion {name}"), what });
    }
    Ok(())
}

/// Refuses an incident without a node, that ends before it starts, or with words no log needs.
pub(crate) fn incident(incident: &Incident) -> Result<(), StoreError> {
    place::name("node", &incident.node)?;
    let bad = |why: String| Err(StoreError::BadIncident { node: incident.node.clone(), why });
    if incident.end_ms.is_some_and(|end| end < incident.start_ms) {
        return bad("it ends before it starts".to_owned());
    }
    let words = [&incident.category, &incident.reason, &incident.source, &incident.who];
    let found = incident.found_by.iter().flatten();
    let bytes: usize = words.into_iter().chain(found).map(|w| w.len()).sum();
    if bytes > INCIDENT_BYTES { bad(format!("{bytes} bytes of text, at most {INCIDENT_BYTES}")) } else { Ok(()) }
}

/// Refuses a model that no reader would take back.
pub(crate) fn model(bytes: &[u8]) -> Result<(), StoreError> {
    criterion("of the incident model", bytes)
}

/// At least the bytes of the record before compression.
fn size(record: &Record) -> usize {
    let series: usize = record.series.iter().map(|s| 256 + text(&s.metric.benchmark) + s.values.len() * 8).sum();
    let facts: usize = record.facts.iter().map(fact).sum();
    256 + series + facts + outcome(&record.outcome)
}

const fn text(text: &str) -> usize {
    text.len() + 8
}

fn fact(fact: &Fact) -> usize {
    let reading = match &fact.reading {
        Reading::Value(Datum::Text(words)) | Reading::Failed(words) => words.len(),
        _ => 16,
    };
    64 + text(&fact.key) + reading
}

fn outcome(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Done => 8,
        Outcome::NotApplicable(w) | Outcome::Denied(w) | Outcome::NotRun(w) | Outcome::Failed(w) => text(w),
    }
}

#[cfg(test)]
mod tests {
    use muster_wire::{Direction, MetricId, Series, Unit};

    use super::*;

    #[test]
    fn what_is_just_within_a_limit_is_kept_and_one_more_is_not() {
        let series = |values: usize| Series {
            metric: MetricId::new("bench", "m", "own"),
            unit: Unit::Seconds,
            direction: Direction::LowerIsBetter,
            values: vec![1.0; values],
            warmup: 0,
            started_ns: 0,
        };
        let fact = || Fact { key: "k".to_owned(), unit: None, reading: Reading::Absent };
        let of = |values: usize, facts: usize, text: usize| {
            record(&Record {
                run: "20261129T101500-quick-0a1b".to_owned(),
                node: "n".to_owned(),
                work: "w".to_owned(),
                outcome: if text > 0 { Outcome::Failed("x".repeat(text)) } else { Outcome::Done },
                at_ms: 0,
                elapsed_ns: 0,
                series: (0..usize::from(values > 0)).map(|_| series(values)).collect(),
                facts: (0..facts).map(|_| fact()).collect(),
            })
            .map_err(|e| e.to_string())
        };
        assert_eq!((of(SERIES_VALUES, 0, 0), of(0, 16 * FACTS, 0)), (Ok(()), Ok(())));
        assert!(of(SERIES_VALUES + 1, 0, 0).unwrap_err().contains(&format!("at most {SERIES_VALUES}")));
        assert!(of(0, 16 * FACTS + 1, 0).unwrap_err().contains("facts, at most"));
        let most = BENCHMARK_BYTES - 256 - 8;
        assert_eq!(of(0, 0, most), Ok(()));
        assert!(of(0, 0, most + 1).unwrap_err().contains("bytes, at most"));
    }

    #[test]
    fn the_size_of_a_record_is_that_of_all_its_parts() {
        let fact = |reading| Fact { key: "key".to_owned(), unit: None, reading };
        let series = Series {
            metric: MetricId::new("bench", "m", "own"),
            unit: Unit::Seconds,
            direction: Direction::LowerIsBetter,
            values: vec![1.0, 2.0, 3.0],
            warmup: 0,
            started_ns: 0,
        };
        let mut of = Record {
            run: "r".to_owned(),
            node: "n".to_owned(),
            work: "w".to_owned(),
            outcome: Outcome::Done,
            at_ms: 0,
            elapsed_ns: 0,
            series: Vec::new(),
            facts: Vec::new(),
        };
        assert_eq!(size(&of), 256 + 8);
        of.outcome = Outcome::Failed("why".to_owned());
        assert_eq!(size(&of), 256 + 3 + 8);
        of.series = vec![series.clone(), series];
        assert_eq!(size(&of), 256 + 11 + 2 * (256 + 5 + 8 + 3 * 8));
        of.facts = vec![fact(Reading::Value(Datum::Text("words".to_owned()))), fact(Reading::Absent)];
        assert_eq!(size(&of), 256 + 11 + 2 * 293 + (64 + 11 + 5) + (64 + 11 + 16));
    }

    #[test]
    fn an_incident_may_be_over_at_once_and_may_have_so_many_words_and_no_more() {
        let of = |end_ms, reason: usize, found_by: Option<usize>| {
            let found_by = found_by.map(|bytes| vec!["x".repeat(bytes), "yz".to_owned()]);
            let text = |bytes: usize| "r".repeat(bytes);
            incident(&Incident {
                node: "n1".to_owned(),
                start_ms: 10,
                end_ms,
                category: text(1),
                reason: text(reason),
                source: text(3),
                who: text(4),
                found_by,
            })
            .map_err(|e| e.to_string())
        };
        assert_eq!((of(None, 1, None), of(Some(10), 1, None), of(Some(11), 1, None)), (Ok(()), Ok(()), Ok(())));
        assert_eq!(of(Some(9), 1, None).unwrap_err(), "the incident of n1 is not recorded: it ends before it starts");
        let most = (16 << 10) - 1 - 3 - 4;
        assert_eq!((of(None, most, None), of(None, most - 100, Some(98))), (Ok(()), Ok(())));
        let why = "the incident of n1 is not recorded: 16385 bytes of text, at most 16384";
        assert_eq!(
            (of(None, most + 1, None).unwrap_err(), of(None, most - 100, Some(99)).unwrap_err()),
            (why.into(), why.into())
        );
    }

    #[test]
    fn a_criterion_or_a_model_may_be_as_large_as_what_a_benchmark_sends() {
        let (most, more) = (vec![0; BENCHMARK_BYTES], vec![0; BENCHMARK_BYTES + 1]);
        assert!(criterion("disk", &most).is_ok() && model(&most).is_ok());
        let why = criterion("disk", &more).unwrap_err().to_string();
        assert_eq!(why, "the record of criterion disk on the fleet is not stored: 67108865 bytes, at most 67108864");
        assert!(model(&more).unwrap_err().to_string().contains("criterion of the incident model"));
    }

    #[test]
    fn every_name_of_a_run_and_of_a_record_is_looked_at() {
        let of = |id: &str, node: &str, work: &str| {
            let run = Run {
                nodes: vec!["n0".to_owned(), node.to_owned()],
                plan: vec!["disk".to_owned(), work.to_owned()],
                ..crate::made::run(id)
            };
            let one = Record {
                run: id.to_owned(),
                node: node.to_owned(),
                work: work.to_owned(),
                outcome: Outcome::Done,
                at_ms: 0,
                elapsed_ns: 0,
                series: Vec::new(),
                facts: Vec::new(),
            };
            (super::run(&run).is_ok(), record(&one).is_ok())
        };
        assert_eq!(of("r", "n1", "cpu"), (true, true));
        for (id, node, work) in [("../r", "n1", "cpu"), ("r", "n\n1", "cpu"), ("r", "n1", "")] {
            assert_eq!(of(id, node, work), (false, false), "{id} {node} {work}");
        }
    }
}

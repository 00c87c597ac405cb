//! Turns one node's frames into records: everything a piece of work sent, closed by its `Finished`.

use std::collections::BTreeMap;

use muster_store::Record;
use muster_wire::limits::BENCHMARK_BYTES;
use muster_wire::{Fact, Finished, Frame, Outcome, Series};

/// Frames of one node that belong to no finished work yet.
#[derive(Debug)]
pub struct Gather {
    run: String,
    node: String,
    series: BTreeMap<String, Vec<Series>>,
    facts: BTreeMap<String, Vec<Fact>>,
    bytes: usize,
}

impl Gather {
    /// Starts with nothing.
    #[must_use]
    pub fn new(run: &str, node: &str) -> Self {
        Self { run: run.to_owned(), node: node.to_owned(), series: BTreeMap::new(), facts: BTreeMap::new(), bytes: 0 }
    }

    /// Takes one frame; a finished piece of work comes back as a record stamped `at_ms` (Unix, milliseconds).
    pub fn take(&mut self, frame: Frame, at_ms: u64) -> Option<Record> {
        match frame {
            Frame::Series(series) => {
                self.bytes += series.values.len() * size_of::<f64>();
                if self.bytes <= BENCHMARK_BYTES {
                    self.series.entry(series.metric.benchmark.clone()).or_default().push(series);
                }
                None
            }
            Frame::Facts(facts) => {
                self.bytes += facts.facts.len() * size_of::<Fact>();
                if self.bytes <= BENCHMARK_BYTES {
                    self.facts.entry(facts.collector).or_default().extend(facts.facts);
                }
                None
            }
            Frame::Finished(finished) => Some(self.close(finished, at_ms)),
            _ => None,
        }
    }

    fn close(&mut self, finished: Finished, at_ms: u64) -> Record {
        let series = self.series.remove(&finished.name).unwrap_or_default();
        let collector = finished.name.strip_prefix("collect/").unwrap_or(&finished.name);
        let facts = self.facts.remove(collector).unwrap_or_default();
        let outcome = if self.bytes > BENCHMARK_BYTES {
            Outcome::Failed(format!("sent more than {} MB", BENCHMARK_BYTES >> 20))
        } else {
            finished.outcome
        };
        self.bytes = 0;
        Record {
            run: self.run.clone(),
            node: self.node.clone(),
            work: finished.name,
            outcome,
            at_ms,
            elapsed_ns: finished.elapsed_ns,
            series,
            facts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_wire::{Direction, MetricId, Unit};

    fn series(benchmark: &str, count: usize) -> Frame {
        Frame::Series(Series {
            metric: MetricId::new(benchmark, "x", "own"),
            unit: Unit::Nanos,
            direction: Direction::LowerIsBetter,
            values: vec![1.0; count],
            warmup: 0,
            started_ns: 0,
        })
    }

    fn finished(name: &str) -> Frame {
        Frame::Finished(Finished { name: name.into(), outcome: Outcome::Done, elapsed_ns: 5 })
    }

    #[test]
    fn a_record_holds_what_its_work_sent_and_nothing_else() {
        let mut gather = Gather::new("r", "n");
        assert_eq!(gather.take(series("a", 3), 1), None);
        assert_eq!(gather.take(series("b", 4), 1), None);
        let record = gather.take(finished("a"), 2).unwrap();
        assert_eq!((record.work.as_str(), record.series.len(), record.at_ms), ("a", 1, 2));
        assert_eq!(gather.take(finished("b"), 3).unwrap().series[0].values.len(), 4);
    }

    #[test]
    fn a_flood_is_a_failed_work_and_not_a_full_memory() {
        let mut gather = Gather::new("r", "n");
        for _ in 0..200 {
            gather.take(series("a", 65_536), 1);
        }
        let record = gather.take(finished("a"), 2).unwrap();
        assert!(matches!(record.outcome, Outcome::Failed(_)));
        assert!(record.series.len() <= 128);
    }
}

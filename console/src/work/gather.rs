//! Turns one node's frames into records: everything a piece of work sent, closed by its `Finished`. A node is believed about
//! the work it was given and about nothing else.

use std::collections::BTreeMap;

use muster_playbook::collector_work;
use muster_run::Record;
use muster_wire::limits::BENCHMARK_BYTES;
use muster_wire::{Datum, Fact, Finished, Frame, Outcome, Request, Series, clean};

use crate::judge::health;

/// Longest piece of a refused name repeated to a person, bytes.
const SHOWN: usize = 60;

/// Frames of one node that belong to no finished work yet.
#[derive(Debug)]
pub struct Gather {
    run: String,
    node: String,
    /// What the node was told to do and has not finished, and how often: several steps may want the same.
    open: BTreeMap<String, usize>,
    held: BTreeMap<String, Held>,
    refused: u64,
    /// What was refused first.
    first: String,
}

/// What a piece of work has sent so far.
#[derive(Debug, Default)]
struct Held {
    series: Vec<Series>,
    facts: Vec<Fact>,
    bytes: usize,
}

impl Held {
    /// Makes room for `bytes` more; past the limit, what there was is let go, too.
    fn admits(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        let admits = self.bytes <= BENCHMARK_BYTES;
        if !admits {
            (self.series, self.facts) = (Vec::new(), Vec::new());
        }
        admits
    }
}

impl Gather {
    /// Starts with nothing.
    #[must_use]
    pub fn new(run: &str, node: &str) -> Self {
        let (run, node) = (run.to_owned(), node.to_owned());
        Self { run, node, open: BTreeMap::new(), held: BTreeMap::new(), refused: 0, first: String::new() }
    }

    /// Believes the node about the work of `request` from now on.
    pub fn expect(&mut self, request: &Request) {
        if let Request::Run { collectors, benchmarks, .. } = request {
            let names = collectors.iter().map(|name| collector_work(name)).chain(benchmarks.iter().cloned());
            names.for_each(|name| *self.open.entry(name).or_default() += 1);
        }
    }

    /// Takes one frame; a finished piece of work comes back as a record stamped `at_ms` (Unix, milliseconds).
    pub fn take(&mut self, frame: Frame, at_ms: u64) -> Option<Record> {
        match frame {
            Frame::Series(series) => {
                if !self.open.contains_key(&series.metric.benchmark) {
                    self.refuse("values of", &series.metric.benchmark);
                    return None;
                }
                let held = self.held.entry(series.metric.benchmark.clone()).or_default();
                if held.admits(series.values.len() * size_of::<f64>()) {
                    held.series.push(series);
                }
                None
            }
            Frame::Facts(facts) => {
                // A probe also says, unasked, how busy its node is. That belongs to no work and is kept nowhere.
                let held = self.held.entry(self.owner(facts.collector)?).or_default();
                if held.admits(facts.facts.iter().map(size).sum()) {
                    held.facts.extend(facts.facts);
                }
                None
            }
            Frame::Finished(finished) => {
                let Some(left) = self.open.get_mut(&finished.name) else {
                    self.refuse("a result of", &finished.name);
                    return None;
                };
                *left -= 1;
                if *left == 0 {
                    self.open.remove(&finished.name);
                }
                Some(self.close(finished, at_ms))
            }
            _ => None,
        }
    }

    /// The open work that facts of this collector or benchmark belong to.
    fn owner(&self, name: String) -> Option<String> {
        let look = collector_work(&name);
        if self.open.contains_key(&look) { Some(look) } else { Some(name).filter(|name| self.open.contains_key(name)) }
    }

    fn refuse(&mut self, what: &str, name: &str) {
        if self.refused == 0 {
            self.first = format!("{what} '{}'", clean(name, SHOWN));
        }
        self.refused += 1;
    }

    /// That the node sent what it was not asked for; `None` where it did not.
    #[must_use]
    pub fn out_of_turn(&self, at_ms: u64) -> Option<Record> {
        let times = if self.refused == 1 { "once".to_owned() } else { format!("{} times", self.refused) };
        let said = format!("sent what nobody asked for {times}, first {}", self.first);
        (self.refused > 0).then(|| health::out_of_turn(&self.run, &self.node, said, at_ms))
    }

    fn close(&mut self, finished: Finished, at_ms: u64) -> Record {
        let Held { series, facts, bytes } = self.held.remove(&finished.name).unwrap_or_default();
        let outcome = if bytes > BENCHMARK_BYTES {
            Outcome::Failed(format!("sent more than {} MB", BENCHMARK_BYTES >> 20))
        } else {
            finished.outcome
        };
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

/// Bytes of a fact with its texts.
fn size(fact: &Fact) -> usize {
    let text = match fact.reading.value() {
        Some(Datum::Text(text)) => text.len(),
        _ => 0,
    };
    size_of::<Fact>() + fact.key.len() + text
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_wire::{Direction, Facts, MetricId, Profile, Reading, Unit};

    /// Of a node that was told to look at its CPUs and to run `a` and `b`.
    fn gather() -> Gather {
        let [collectors, benchmarks] = [vec!["cpu".to_owned()], vec!["a".to_owned(), "b".to_owned()]];
        let (profile, steps) = (Profile::Smoke, BTreeMap::new());
        let mut gather = Gather::new("r", "n");
        gather.expect(&Request::Run { collectors, benchmarks, profile, scratch: None, steps });
        gather
    }

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
        let mut gather = gather();
        assert_eq!(gather.take(series("a", 3), 1), None);
        assert_eq!(gather.take(series("b", 4), 1), None);
        let record = gather.take(finished("a"), 2).unwrap();
        assert_eq!((record.work.as_str(), record.series.len(), record.at_ms), ("a", 1, 2));
        assert_eq!(gather.take(finished("b"), 3).unwrap().series[0].values.len(), 4);
    }

    #[test]
    fn a_flood_is_a_failed_work_and_not_a_full_memory() {
        let mut gather = gather();
        for _ in 0..200 {
            gather.take(series("a", 65_536), 1);
        }
        let record = gather.take(finished("a"), 2).unwrap();
        assert!(matches!(record.outcome, Outcome::Failed(_)));
        assert!(record.series.is_empty());
        assert_eq!(gather.out_of_turn(3), None);
    }

    #[test]
    fn what_nobody_asked_for_is_refused_counted_and_told() {
        let mut gather = gather();
        for name in ["console/asked", "link", "net-pair/n2", "a#2", "c"] {
            assert_eq!(gather.take(finished(name), 1), None, "{name}");
        }
        assert_eq!(gather.take(series("c", 3), 1), None);
        assert!(gather.held.is_empty());
        let told = gather.out_of_turn(2).unwrap();
        let Outcome::Failed(why) = &told.outcome else { panic!("{told:?}") };
        assert_eq!(why, "sent what nobody asked for 6 times, first a result of 'console/asked'");
        assert!(!muster_run::is_work(&told.work));
    }

    #[test]
    fn work_that_two_steps_want_is_finished_twice() {
        let mut gather = gather();
        let (benchmarks, steps) = (vec!["a".to_owned(), "c".to_owned()], BTreeMap::new());
        gather.expect(&Request::Run { collectors: vec![], benchmarks, profile: Profile::Smoke, scratch: None, steps });
        for name in ["a", "c", "a"] {
            assert!(gather.take(finished(name), 1).is_some(), "{name}");
        }
        assert_eq!(gather.out_of_turn(2), None);
        assert_eq!(gather.take(finished("a"), 3), None);
    }

    #[test]
    fn a_work_is_finished_once() {
        let mut gather = gather();
        assert!(gather.take(finished("a"), 1).is_some());
        assert_eq!(gather.take(series("a", 3), 2), None);
        assert_eq!(gather.take(finished("a"), 2), None);
        assert!(gather.out_of_turn(3).is_some());
    }

    #[test]
    fn facts_belong_to_the_work_that_is_open_and_others_say_nothing_of_the_node() {
        let mut gather = gather();
        let facts = |collector: &str| {
            let fact = Fact { key: "cpu.count".to_owned(), reading: Reading::Value(Datum::Number(2.0)), unit: None };
            Frame::Facts(Facts { collector: collector.to_owned(), facts: vec![fact] })
        };
        for name in ["cpu", "load", "a"] {
            assert_eq!(gather.take(facts(name), 1), None);
        }
        assert_eq!(gather.take(finished("collect/cpu"), 2).unwrap().facts.len(), 1);
        assert_eq!(gather.take(finished("a"), 2).unwrap().facts.len(), 1);
        assert_eq!(gather.out_of_turn(3), None);
    }
}

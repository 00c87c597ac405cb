//! Turns one node's frames into records: everything a piece of work sent, closed by its `Finished`. A node is believed about
//! the work it was given and about nothing else.

use std::collections::{BTreeMap, VecDeque};

use muster_fleet::Failure;
use muster_playbook::collector_work;
use muster_run::Record;
use muster_wire::limits::work_bytes;
use muster_wire::{Datum, Fact, Facts, Finished, Frame, Outcome, Profile, Request, Series, clean};

use super::excess::Ordered;
use super::spill::{Part, Spill};
use crate::judge::notes;

/// Longest piece of a refused name repeated to a person, bytes.
const SHOWN: usize = 60;
/// Bytes of facts that a collector may send.
const COLLECTOR: usize = 1 << 20;
/// Facts that are put aside in one frame: the longest of them fit.
const FACTS: usize = 128;
/// Bytes of unfinished works of one node that stay in memory: a frame of the largest, or all that most works send.
const MEMORY: usize = 640 << 10;

/// What one node was told to do in a run, and what it sent that belongs to no finished work yet.
#[derive(Debug)]
pub struct Gather {
    run: String,
    node: String,
    /// What the node was told to do and has not finished, order by order: it does one after the other.
    orders: VecDeque<BTreeMap<String, Open>>,
    held: BTreeMap<String, Held>,
    spill: Spill,
    refused: u64,
    /// What was refused first.
    first: String,
    /// Refusals that were told.
    told: u64,
}

/// A piece of work that was ordered.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// How often: several steps may want the same.
    times: usize,
    profile: Profile,
    /// Bytes that all unfinished works together may have sent.
    limit: usize,
}

/// What a piece of work has sent so far: first what was put aside, then what is in memory.
#[derive(Debug, Default)]
struct Held {
    series: Vec<Series>,
    facts: Vec<Fact>,
    parts: Vec<Part>,
    bytes: usize,
    /// Those of them that are in memory.
    in_memory: usize,
    /// Why nothing of it is kept.
    lost: Option<Outcome>,
}

impl Held {
    /// Keeps nothing more of this work, because of `why`.
    fn lose(&mut self, why: Outcome) {
        *self = Self { lost: Some(why), ..Self::default() };
    }

    /// Puts what is in memory aside, in few pieces however many frames it came in.
    fn put_aside(&mut self, spill: &Spill) {
        let facts = std::mem::take(&mut self.facts);
        let facts = facts.chunks(FACTS).map(|facts| Facts { collector: String::new(), facts: facts.to_vec() });
        let frames = std::mem::take(&mut self.series).into_iter().map(Frame::Series).chain(facts.map(Frame::Facts));
        match spill.put(frames) {
            Ok(part) => self.parts.extend(part),
            Err(why) => self.lose(put_aside(&why)),
        }
        self.in_memory = 0;
    }

    /// Adds what is kept in `frame`.
    fn add(&mut self, frame: Frame) {
        match frame {
            Frame::Series(series) => self.series.push(series),
            Frame::Facts(facts) => self.facts.extend(facts.facts),
            _ => {}
        }
    }

    /// Brings everything into memory.
    fn gathered(mut self) -> Self {
        let (series, facts) = (std::mem::take(&mut self.series), std::mem::take(&mut self.facts));
        for part in std::mem::take(&mut self.parts) {
            match part.frames() {
                Ok(frames) => frames.into_iter().for_each(|frame| self.add(frame)),
                Err(why) => {
                    self.lose(put_aside(&why));
                    return self;
                }
            }
        }
        self.series.extend(series);
        self.facts.extend(facts);
        self
    }
}

/// What becomes of a work whose values this console could not keep until its end.
fn put_aside(why: &std::io::Error) -> Outcome {
    Outcome::NotRun(format!("this console could not put its values aside beside the database: {why}"))
}

impl Gather {
    /// Starts with nothing; what is too much for memory goes to `spill`.
    #[must_use]
    pub fn new(run: &str, node: &str, spill: Spill) -> Self {
        let (run, node) = (run.to_owned(), node.to_owned());
        let (orders, held, first) = (VecDeque::new(), BTreeMap::new(), String::new());
        Self { run, node, orders, held, spill, refused: 0, first, told: 0 }
    }

    /// Believes the node about the work of `request` once what was ordered before has ended.
    pub fn expect(&mut self, request: &Request) {
        let Request::Run { collectors, benchmarks, profile, .. } = request else { return };
        let looks = collectors.iter().map(|name| (collector_work(name), COLLECTOR));
        let works = benchmarks.iter().map(|name| (name.clone(), work_bytes(*profile)));
        let mut order: BTreeMap<String, Open> = BTreeMap::new();
        for (name, limit) in looks.chain(works) {
            let open = order.entry(name).or_insert(Open { times: 0, profile: *profile, limit });
            open.times += 1;
            open.limit = open.limit.max(limit);
        }
        self.orders.push_back(order);
    }

    /// The stream broke off: what it sent of unfinished works belongs to nothing, since they begin anew.
    pub fn interrupted(&mut self) {
        self.held.clear();
    }

    /// The first order was not begun, since the node had failed with one before it.
    pub fn skipped(&mut self) {
        self.held.clear();
        self.orders.pop_front();
    }

    /// The stream of the first order is over: nothing of that may come any more. Works that were ordered and have no result, although
    /// the stream ended well, come back as not run.
    pub fn ended(&mut self, failure: Option<&Failure>, at_ms: u64) -> Vec<Record> {
        self.held.clear();
        let open = self.orders.pop_front().unwrap_or_default();
        let Some(failure) = failure else {
            let missing = open.into_keys().filter(|work| muster_run::is_work(work));
            return missing.map(|name| self.record(unanswered(name), at_ms)).collect();
        };
        if failure.out_of_turn() {
            self.count(clean(failure.what(&self.node), 2 * SHOWN));
        }
        Vec::new()
    }

    /// Takes one frame; a finished piece of work comes back, stamped `at_ms` (Unix, milliseconds).
    pub fn take(&mut self, frame: Frame, at_ms: u64) -> Option<Closed> {
        match frame {
            Frame::Series(series) => {
                let work = series.metric.benchmark.clone();
                if self.is_open(&work) {
                    let bytes = weight(&series);
                    self.hold(&work, bytes, Frame::Series(series));
                } else {
                    self.refuse("values of", &work);
                }
                None
            }
            Frame::Facts(facts) => {
                // A probe also says, unasked, how busy its node is. That belongs to no work and is kept nowhere.
                let work = self.owner(facts.collector.clone())?;
                let bytes = facts.facts.iter().map(size).sum();
                self.hold(&work, bytes, Frame::Facts(facts));
                None
            }
            Frame::Finished(finished) => {
                let left = self.orders.front_mut().and_then(|order| {
                    let left = order.get_mut(&finished.name)?;
                    left.times -= 1;
                    let Open { times, profile, .. } = *left;
                    if times == 0 {
                        order.remove(&finished.name);
                    }
                    Some(profile)
                });
                let Some(profile) = left else {
                    self.refuse("a result of", &finished.name);
                    return None;
                };
                let held = self.held.remove(&finished.name).unwrap_or_default();
                let work = (profile, finished.name.clone());
                Some(Closed { work, record: self.record(finished, at_ms), held })
            }
            _ => None,
        }
    }

    /// Keeps `frame` of `work`, which takes `bytes`, in memory or beside it; past its limit nowhere, and what there was of it is let
    /// go, too.
    fn hold(&mut self, work: &str, bytes: usize, frame: Frame) {
        let sum = |of: fn(&Held) -> usize| self.held.values().map(of).sum::<usize>();
        let (all, in_memory) = (sum(|held| held.bytes), sum(|held| held.in_memory));
        let Some(limit) = self.orders.front().and_then(|order| order.get(work)).map(|open| open.limit) else { return };
        let held = self.held.entry(work.to_owned()).or_default();
        if held.lost.is_some() {
            return;
        }
        if all + bytes > limit {
            held.lose(Outcome::Failed("sent more than a work may; nothing is kept".to_owned()));
            return;
        }
        held.add(frame);
        held.in_memory += bytes;
        held.bytes += bytes;
        if in_memory + bytes > MEMORY {
            self.held.values_mut().for_each(|held| held.put_aside(&self.spill));
        }
    }

    /// The open work that facts of this collector or benchmark belong to.
    fn owner(&self, name: String) -> Option<String> {
        let look = collector_work(&name);
        if self.is_open(&look) { Some(look) } else { Some(name).filter(|name| self.is_open(name)) }
    }

    /// Whether `work` was ordered and has not finished.
    fn is_open(&self, work: &str) -> bool {
        self.orders.front().is_some_and(|order| order.contains_key(work))
    }

    fn refuse(&mut self, what: &str, name: &str) {
        self.count(format!("sent {what} '{}'", clean(name, SHOWN)));
    }

    fn count(&mut self, what: String) {
        if self.refused == 0 {
            self.first = what;
        }
        self.refused += 1;
    }

    /// That the node sent what it was not asked for: at once when it first does, and after the stream with the whole count.
    #[must_use]
    pub fn out_of_turn(&mut self, at_ms: u64) -> Option<Record> {
        let new = self.refused > self.told && (self.told == 0 || self.orders.iter().all(BTreeMap::is_empty));
        if !new {
            return None;
        }
        self.told = self.refused;
        let said = match self.refused {
            1 => self.first.clone(),
            times => format!("{}, and {} times more what nobody asked for", self.first, times - 1),
        };
        Some(notes::out_of_turn(&self.run, &self.node, said, at_ms))
    }

    /// Of a finished work, without what it sent.
    fn record(&self, finished: Finished, at_ms: u64) -> Record {
        Record {
            run: self.run.clone(),
            node: self.node.clone(),
            work: finished.name,
            outcome: finished.outcome,
            at_ms,
            elapsed_ns: finished.elapsed_ns,
            series: Vec::new(),
            facts: Vec::new(),
        }
    }
}

/// A finished piece of work whose values may still lie beside the database.
#[derive(Debug)]
pub struct Closed {
    /// As it was ordered.
    pub work: Ordered,
    /// Without values and facts.
    pub record: Record,
    held: Held,
}

impl Closed {
    /// Bytes that its values and facts take when they are read back.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.held.bytes
    }

    /// Whether the node did it, and nothing of what it sent was lost here.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.record.outcome == Outcome::Done && self.held.lost.is_none()
    }

    /// With all that it sent put aside until it is asked for.
    #[must_use]
    pub fn put_aside(mut self, spill: &Spill) -> Self {
        self.held.put_aside(spill);
        self
    }

    /// With all that it sent.
    #[must_use]
    pub fn whole(self) -> Record {
        let Held { series, facts, lost, .. } = self.held.gathered();
        let outcome = lost.unwrap_or(self.record.outcome);
        Record { outcome, series, facts, ..self.record }
    }

    /// With nothing of what it sent, because of `why`; a work that failed has failed all the same.
    #[must_use]
    pub fn refused(self, why: String) -> Record {
        let outcome = match self.record.outcome {
            Outcome::Done => Outcome::NotRun(why),
            failed => failed,
        };
        Record { outcome, ..self.record }
    }
}

fn unanswered(name: String) -> Finished {
    Finished { name, outcome: Outcome::NotRun("the probe ended without a result of it".to_owned()), elapsed_ns: 0 }
}

/// Bytes of a record's values and facts in memory.
pub(super) fn bytes(record: &Record) -> usize {
    record.series.iter().map(weight).sum::<usize>() + record.facts.iter().map(size).sum::<usize>()
}

/// Bytes of a series in memory.
fn weight(series: &Series) -> usize {
    let names = series.metric.benchmark.len() + series.metric.name.len() + series.metric.engine.len();
    size_of::<Series>() + size_of_val(&*series.metric) + names + size_of_val(series.values.as_slice())
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
    use muster_wire::{Direction, MetricId, Reading, Unit};

    impl Gather {
        /// What comes of a frame.
        fn got(&mut self, frame: Frame, at_ms: u64) -> Option<Record> {
            self.take(frame, at_ms).map(Closed::whole)
        }
    }

    /// Of a node that was told to look at its CPUs and to run `a` and `b`.
    fn gather() -> Gather {
        gather_of(Profile::Smoke)
    }

    fn gather_of(profile: Profile) -> Gather {
        let [collectors, benchmarks] = [vec!["cpu".to_owned()], vec!["a".to_owned(), "b".to_owned()]];
        let steps = BTreeMap::new();
        let mut gather = Gather::new("r", "n", Spill::new(&std::env::temp_dir()));
        gather.expect(&Request::Run { collectors, benchmarks, profile, scratch: None, steps });
        gather
    }

    #[test]
    fn a_second_order_is_open_when_the_first_has_ended_and_not_before() {
        let mut gather = gather();
        let (collectors, benchmarks) = (Vec::new(), vec!["c".to_owned()]);
        let (profile, steps) = (Profile::Smoke, BTreeMap::new());
        gather.expect(&Request::Run { collectors, benchmarks, profile, scratch: None, steps });
        let done = |name: &str| Frame::Finished(Finished { name: name.into(), outcome: Outcome::Done, elapsed_ns: 1 });
        for name in ["a", "b"] {
            gather.got(series(name, 1), 1);
            assert_eq!(gather.got(done(name), 1).unwrap().series.len(), 1);
        }
        let missing = gather.ended(None, 1);
        assert_eq!(missing.iter().map(|record| record.work.as_str()).collect::<Vec<_>>(), ["collect/cpu"]);
        gather.got(series("c", 1), 2);
        assert_eq!(gather.got(done("c"), 2).unwrap().series.len(), 1);
        assert!(gather.ended(None, 2).is_empty() && gather.out_of_turn(2).is_none());
        assert!(gather.got(done("c"), 3).is_none() && gather.out_of_turn(3).is_some());
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
        assert_eq!(gather.got(series("a", 3), 1), None);
        assert_eq!(gather.got(series("b", 4), 1), None);
        let record = gather.got(finished("a"), 2).unwrap();
        assert_eq!((record.work.as_str(), record.series.len(), record.at_ms), ("a", 1, 2));
        assert_eq!(gather.got(finished("b"), 3).unwrap().series[0].values.len(), 4);
    }

    #[test]
    fn a_flood_is_a_failed_work_and_not_a_full_memory() {
        let mut gather = gather();
        for _ in 0..200 {
            gather.got(series("a", 65_536), 1);
        }
        let record = gather.got(finished("a"), 2).unwrap();
        assert!(matches!(record.outcome, Outcome::Failed(_)));
        assert!(record.series.is_empty());
        assert_eq!(gather.out_of_turn(3), None);
    }

    /// Bytes of unfinished works that are in memory, as they lie there.
    fn in_memory(gather: &Gather) -> usize {
        let of =
            |held: &Held| held.series.iter().map(weight).sum::<usize>() + held.facts.iter().map(size).sum::<usize>();
        gather.held.values().map(of).sum()
    }

    #[test]
    fn in_the_longest_profile_too_little_of_a_work_is_in_memory_until_it_ends_and_then_all_of_it_is_there() {
        for profile in [Profile::Standard, Profile::Full] {
            let (mut gather, mut sent) = (gather_of(profile), Vec::new());
            for nr in 0..12_u32 {
                let Frame::Series(mut one) = series("a", 65_536) else { panic!() };
                one.values[7] = f64::from(nr);
                sent.push(one.clone());
                gather.got(Frame::Series(one), 1);
                gather.got(facts("a", nr), 1);
                gather.got(series("b", 10), 1);
                assert!(in_memory(&gather) <= MEMORY);
            }
            let record = gather.got(finished("a"), 2).unwrap();
            assert_eq!((&record.outcome, &record.series), (&Outcome::Done, &sent), "{profile}");
            let told: Vec<&str> = record.facts.iter().map(|fact| fact.key.as_str()).collect();
            assert_eq!(told, (0..12).map(|nr| format!("fact.{nr}")).collect::<Vec<_>>());
            assert_eq!(gather.got(finished("b"), 2).unwrap().series.len(), 12);
        }
    }

    #[test]
    fn a_finished_work_that_waits_has_nothing_in_memory_and_is_whole_when_it_is_asked_for() {
        for count in [3, 12] {
            let mut gather = gather_of(Profile::Standard);
            let sent: Vec<Series> = (0..count)
                .map(|nr| {
                    let Frame::Series(mut one) = series("a", 65_536) else { panic!() };
                    one.values[7] = f64::from(nr);
                    gather.take(Frame::Series(one.clone()), 1);
                    gather.take(facts("a", nr), 1);
                    one
                })
                .collect();
            let closed = gather.take(finished("a"), 2).unwrap();
            let (bytes, closed) = (closed.bytes(), closed.put_aside(&gather.spill));
            assert!(closed.held.series.is_empty() && closed.held.facts.is_empty());
            assert_eq!(closed.bytes(), bytes);
            let record = closed.whole();
            assert_eq!((&record.outcome, &record.series, bytes), (&Outcome::Done, &sent, super::bytes(&record)));
            let told: Vec<&str> = record.facts.iter().map(|fact| fact.key.as_str()).collect();
            assert_eq!(told, (0..count).map(|nr| format!("fact.{nr}")).collect::<Vec<_>>());
        }
    }

    #[test]
    fn many_small_series_are_put_aside_in_few_pieces() {
        let mut gather = gather_of(Profile::Full);
        for nr in 0..20_000 {
            gather.take(series(if nr % 2 == 0 { "a" } else { "b" }, 0), 1);
        }
        assert!(in_memory(&gather) <= MEMORY);
        assert!(gather.held.values().all(|held| held.parts.len() <= 8));
        assert_eq!(gather.got(finished("a"), 2).unwrap().series.len(), 10_000);
    }

    #[test]
    fn a_work_that_failed_and_is_refused_has_failed() {
        let refused = |outcome: Outcome| {
            let mut gather = gather();
            gather.take(series("a", 3), 1);
            let done = Frame::Finished(Finished { name: "a".into(), outcome, elapsed_ns: 1 });
            gather.take(done, 2).unwrap().refused("too much".to_owned())
        };
        let failed = Outcome::Failed("wrong bits".to_owned());
        assert_eq!(refused(failed.clone()).outcome, failed);
        let done = refused(Outcome::Done);
        assert_eq!((done.outcome, done.series), (Outcome::NotRun("too much".to_owned()), vec![]));
    }

    #[test]
    fn a_node_that_sends_as_much_as_it_may_and_never_ends_costs_no_more_memory_than_another() {
        let mut gather = gather_of(Profile::Full);
        for _ in 0..3 * work_bytes(Profile::Full) / (8 * 65_536) {
            gather.got(series("a", 65_536), 1);
            assert!(in_memory(&gather) <= MEMORY);
        }
        assert!(matches!(gather.got(finished("a"), 2).unwrap().outcome, Outcome::Failed(_)));
    }

    #[test]
    fn a_work_whose_values_cannot_be_put_aside_was_not_run_and_says_why() {
        let mut gather = gather_of(Profile::Standard);
        gather.spill = Spill::new(std::path::Path::new("/nowhere"));
        gather.got(series("a", 65_536), 1);
        gather.got(series("a", 65_536), 1);
        let record = gather.got(finished("a"), 2).unwrap();
        assert!(matches!(&record.outcome, Outcome::NotRun(why) if why.contains("beside the database")), "{record:?}");
        assert!(record.series.is_empty());
    }

    fn facts(collector: &str, nr: u32) -> Frame {
        let key = format!("fact.{nr}");
        let fact = Fact { key, reading: Reading::Value(Datum::Number(2.0)), unit: None };
        Frame::Facts(Facts { collector: collector.to_owned(), facts: vec![fact] })
    }

    #[test]
    fn works_that_never_end_share_the_room_of_one() {
        let mut gather = gather();
        for name in ["a", "b", "a", "b"] {
            for _ in 0..100 {
                gather.got(series(name, 1_024), 1);
            }
        }
        let held: usize = gather.held.values().map(|held| held.bytes).sum();
        assert!(held <= work_bytes(Profile::Smoke), "{held}");
        let missing = gather.ended(None, 2);
        assert_eq!(missing.iter().map(|r| r.work.as_str()).collect::<Vec<_>>(), ["a", "b", "collect/cpu"]);
        assert!(missing.iter().all(|record| matches!(record.outcome, Outcome::NotRun(_))));
        assert!(gather.held.is_empty());
        assert_eq!(gather.got(finished("a"), 3), None);
    }

    #[test]
    fn work_that_broke_off_begins_anew_with_nothing_of_before() {
        let mut gather = gather();
        gather.got(series("a", 3), 1);
        gather.interrupted();
        gather.got(series("a", 5), 2);
        assert_eq!(gather.got(finished("a"), 3).unwrap().series.len(), 1);
    }

    #[test]
    fn what_nobody_asked_for_is_refused_counted_and_told() {
        let mut gather = gather();
        for name in ["console/asked", "link", "net-pair/n2", "a#2", "c"] {
            assert_eq!(gather.got(finished(name), 1), None, "{name}");
        }
        assert_eq!(gather.got(series("c", 3), 1), None);
        assert!(gather.held.is_empty());
        let told = gather.out_of_turn(2).unwrap();
        let Outcome::Failed(why) = &told.outcome else { panic!("{told:?}") };
        assert_eq!(why, "sent a result of 'console/asked', and 5 times more what nobody asked for");
        assert!(!muster_run::is_work(&told.work));
        gather.got(finished("c"), 3);
        assert_eq!(gather.out_of_turn(4), None, "told once while the node works");
        gather.ended(None, 5);
        assert!(gather.out_of_turn(5).is_some(), "and once more with the whole count");
    }

    #[test]
    fn work_that_two_steps_want_is_finished_twice() {
        let mut gather = gather();
        let (benchmarks, steps) = (vec!["a".to_owned(), "c".to_owned()], BTreeMap::new());
        gather.expect(&Request::Run { collectors: vec![], benchmarks, profile: Profile::Smoke, scratch: None, steps });
        assert!(gather.got(finished("a"), 1).is_some());
        gather.ended(None, 1);
        for name in ["a", "c"] {
            assert!(gather.got(finished(name), 1).is_some(), "{name}");
        }
        assert_eq!(gather.out_of_turn(2), None);
        assert_eq!(gather.got(finished("a"), 3), None);
    }

    #[test]
    fn a_work_is_finished_once() {
        let mut gather = gather();
        assert!(gather.got(finished("a"), 1).is_some());
        assert_eq!(gather.got(series("a", 3), 2), None);
        assert_eq!(gather.got(finished("a"), 2), None);
        assert!(gather.out_of_turn(3).is_some());
    }

    #[test]
    fn facts_belong_to_the_work_that_is_open_and_others_say_nothing_of_the_node() {
        let mut gather = gather();
        for name in ["cpu", "load", "a"] {
            assert_eq!(gather.got(facts(name, 1), 1), None);
        }
        assert_eq!(gather.got(finished("collect/cpu"), 2).unwrap().facts.len(), 1);
        assert_eq!(gather.got(finished("a"), 2).unwrap().facts.len(), 1);
        assert_eq!(gather.out_of_turn(3), None);
    }
}

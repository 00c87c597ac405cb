//! Spreads short benchmarks over a whole visit.
//!
//! A neighbour on the same hardware disturbs for tenths of a second to seconds. Values taken side by side share its
//! mood; taken in passes over all benchmarks they see several of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use muster_wire::Unit;
use muster_wire::{
    BUSY, Datum, FOREIGN_CPU, Fact, Facts, Finished, Frame, Outcome, Profile, Progress, Reading, Series, Steps,
};

use crate::collect::Root;
use crate::{busy, fault, steps, work};

/// How benchmarks are run.
#[derive(Clone, Copy)]
pub(crate) struct How<'a> {
    /// How much work.
    pub(crate) profile: Profile,
    /// Where the disk benchmark must put its file.
    pub(crate) scratch: Option<&'a Path>,
    /// Set from outside: end at the next step.
    pub(crate) stop: &'a AtomicBool,
    /// Steps of benchmarks that are not to take those of the profile.
    pub(crate) steps: &'a BTreeMap<String, Steps>,
}

/// Runs the benchmarks called `names`; each says its series, how busy others were, and how it ended.
pub(crate) fn benchmarks(names: &[String], how: How<'_>, say: &mut dyn FnMut(Frame)) {
    let mut parts: Vec<Part<'_>> = names.iter().map(|name| Part::new(name)).collect();
    let passes = steps::passes(how.profile);
    for pass in 0..passes {
        for part in parts.iter_mut().filter(|part| !part.ended) {
            part.go((pass, passes), how, say);
        }
    }
}

/// What one benchmark has given so far.
struct Part<'a> {
    name: &'a str,
    series: Vec<Series>,
    elapsed_ns: u64,
    /// Largest share of the CPUs that others used in a pass.
    foreign: Option<f64>,
    ended: bool,
}

impl<'a> Part<'a> {
    const fn new(name: &'a str) -> Self {
        Self { name, series: Vec::new(), elapsed_ns: 0, foreign: None, ended: false }
    }

    fn go(&mut self, (pass, passes): (usize, usize), how: How<'_>, say: &mut dyn FnMut(Frame)) {
        if how.stop.load(Ordering::Acquire) {
            return self.end(Outcome::stopped(), say);
        }
        let root = Root::system();
        let others = busy::Watch::start(&root);
        let finished = work::benchmark(self.name, how, &mut |frame| match frame {
            Frame::Series(more) => self.add(more),
            Frame::Progress(at) => {
                say(Frame::Progress(Progress { done: (pass as f64 + at.done) / passes as f64, ..at }));
            }
            // What it has to say it said in the first pass.
            Frame::Log(_) if pass > 0 => {}
            other => say(other),
        });
        self.elapsed_ns = self.elapsed_ns.saturating_add(finished.elapsed_ns);
        self.foreign = self.foreign.into_iter().chain(others.share(&root)).max_by(f64::total_cmp);
        if pass + 1 == passes || finished.outcome != Outcome::Done {
            self.end(finished.outcome, say);
        }
    }

    fn add(&mut self, more: Series) {
        match self.series.iter_mut().find(|known| known.metric == more.metric) {
            Some(known) => {
                known.values.extend(more.values);
                known.warmup += more.warmup;
            }
            None => self.series.push(more),
        }
    }

    fn end(&mut self, outcome: Outcome, say: &mut dyn FnMut(Frame)) {
        self.ended = true;
        self.series.drain(..).for_each(|series| say(Frame::Series(series)));
        if let Some(share) = self.foreign {
            say(Frame::Facts(Facts { collector: self.name.to_owned(), facts: company(share) }));
        }
        say(Frame::Finished(Finished { name: self.name.to_owned(), outcome, elapsed_ns: self.elapsed_ns }));
    }
}

/// How busy others kept the node, and where that was too much, who they are.
fn company(share: f64) -> Vec<Fact> {
    let reading = Reading::Value(Datum::Number(share));
    let mut facts = vec![Fact { key: FOREIGN_CPU.to_owned(), reading, unit: Some(Unit::Ratio) }];
    if share > BUSY {
        let names = fault::caught(|| busy::look(&Root::system())).unwrap_or_default();
        facts.extend(names.into_iter().filter(|fact| fact.key != FOREIGN_CPU));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(names: &[&str], stop: bool) -> Vec<Frame> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut frames = Vec::new();
        let how = How { profile: Profile::Smoke, scratch: None, stop: &AtomicBool::new(stop), steps: &BTreeMap::new() };
        benchmarks(&names, how, &mut |frame| frames.push(frame));
        frames
    }

    #[test]
    fn each_benchmark_ends_once_and_its_metrics_come_as_one_series_each() {
        let frames = run(&["cpu-gemm", "cpu-dispatch"], false);
        let ended: Vec<&Finished> =
            frames.iter().filter_map(|f| if let Frame::Finished(end) = f { Some(end) } else { None }).collect();
        assert_eq!(ended.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(), ["cpu-gemm", "cpu-dispatch"]);
        assert!(ended.iter().all(|e| e.outcome == Outcome::Done && e.elapsed_ns > 0));
        let series: Vec<&Series> =
            frames.iter().filter_map(|f| if let Frame::Series(s) = f { Some(s) } else { None }).collect();
        assert_eq!(series.len(), 4, "fp32-1t, fp64-1t, syscall and thread-handoff");
        assert!(series.iter().all(|s| s.values.len() >= 32), "{:?}", series[0].values.len());
        let said = |frame: &&Frame| matches!(frame, Frame::Facts(f) if f.facts[0].key == FOREIGN_CPU);
        assert_eq!(frames.iter().filter(said).count(), 2);
        let progress = frames.iter().filter_map(|f| if let Frame::Progress(p) = f { Some(p.done) } else { None });
        assert!(progress.clone().all(|done| (0.0..=1.0).contains(&done)) && progress.count() > 0);
    }

    #[test]
    fn a_stop_before_the_first_pass_and_an_unknown_name_are_said_once() {
        let finished = |frames: Vec<Frame>| match &frames[..] {
            [Frame::Finished(end)] => end.outcome.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(finished(run(&["cpu-gemm"], true)), Outcome::NotRun("stopped".into()));
        let unknown = run(&["aura"], false);
        assert!(matches!(unknown.last(), Some(Frame::Finished(end)) if matches!(end.outcome, Outcome::NotRun(_))));
    }
}

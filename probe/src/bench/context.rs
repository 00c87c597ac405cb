//! What a benchmark is given, and how a name becomes a run that always ends in an outcome.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use muster_wire::{Direction, Facts, Frame, Level, LogLine, MetricId, Outcome, Profile, Progress, Series, Steps, Unit};

use super::{burn, cores, disk, dispatch, gemm, latency, net, numa, overlap, sharding, stream, train};
use crate::gpu;
use crate::steps::{Halt, Plan, Taken};

/// What a benchmark may use.
pub(crate) struct Context<'a> {
    /// How much work.
    pub(crate) profile: Profile,
    /// Where the disk benchmark must put its file; it chooses when absent.
    pub(crate) scratch: Option<&'a Path>,
    /// Set from outside: end at the next step.
    pub(crate) stop: &'a AtomicBool,
    /// Steps that replace those of the profile.
    pub(crate) steps: Option<Steps>,
    /// Takes `Series`, `Progress` and `Log` frames, between steps.
    pub(crate) emit: &'a mut dyn FnMut(Frame),
}

/// Identity, unit and direction of one metric.
#[derive(Clone, Debug)]
pub(super) struct Metric {
    pub(super) benchmark: &'static str,
    pub(super) name: Cow<'static, str>,
    pub(super) engine: &'static str,
    pub(super) unit: Unit,
    pub(super) direction: Direction,
}

impl Metric {
    /// More is better.
    pub(super) fn rate(benchmark: &'static str, name: impl Into<Cow<'static, str>>, unit: Unit) -> Self {
        Self { benchmark, name: name.into(), engine: "own", unit, direction: Direction::HigherIsBetter }
    }

    /// Nanoseconds, less is better.
    pub(super) fn latency(benchmark: &'static str, name: impl Into<Cow<'static, str>>) -> Self {
        let (unit, direction) = (Unit::Nanos, Direction::LowerIsBetter);
        Self { benchmark, name: name.into(), engine: "own", unit, direction }
    }

    /// The same, measured by `engine`.
    pub(super) fn by(self, engine: &'static str) -> Self {
        Self { engine, ..self }
    }
}

impl Context<'_> {
    /// Length and number of steps, where `metrics` share the time of the benchmark (see [`Plan::new`]).
    pub(super) fn plan(&self, smoke: Duration, metrics: usize) -> Plan {
        Plan::new(self.profile, smoke, metrics).of(self.profile, self.steps)
    }

    /// The same where they take turns (see [`Plan::in_turns`]).
    pub(super) fn turns(&self, smoke: Duration, metrics: usize) -> Plan {
        Plan::in_turns(self.profile, smoke, metrics).of(self.profile, self.steps)
    }

    /// Takes warm-up and steps of one metric, with progress, and emits its series. `share` is the part of the
    /// benchmark that is done when this metric starts and ends.
    pub(super) fn measure(
        &mut self,
        metric: Metric,
        plan: &Plan,
        share: (f64, f64),
        step: &mut dyn FnMut() -> Result<f64, Halt>,
    ) -> Result<(), Halt> {
        self.measure_all(vec![metric], plan, share, &mut || Ok(vec![step()?]))
    }

    /// The same for several metrics, of each of which a step gives one value, in their order.
    pub(super) fn measure_all(
        &mut self,
        metrics: Vec<Metric>,
        plan: &Plan,
        share: (f64, f64),
        step: &mut dyn FnMut() -> Result<Vec<f64>, Halt>,
    ) -> Result<(), Halt> {
        let Some(first) = metrics.first() else { return Ok(()) };
        let emit = &mut *self.emit;
        let more = if metrics.len() > 1 { format!(" and {} more", metrics.len() - 1) } else { String::new() };
        let taken = plan.take(self.stop, step, &mut |done, of| {
            let part = done as f64 / of as f64;
            emit(Frame::Progress(Progress {
                benchmark: first.benchmark.into(),
                done: share.0 + (share.1 - share.0) * part,
                note: format!("{}{more}, step {done} of {of}", first.name),
            }));
        })?;
        metrics.into_iter().zip(taken).for_each(|(metric, taken)| self.series(metric, taken));
        Ok(())
    }

    /// Emits a series that was taken otherwise.
    pub(super) fn series(&mut self, metric: Metric, taken: Taken) {
        (self.emit)(Frame::Series(Series {
            metric: MetricId::new(metric.benchmark, metric.name, metric.engine),
            unit: metric.unit,
            direction: metric.direction,
            values: taken.values,
            warmup: taken.warmup,
            started_ns: taken.started_ns,
        }));
    }

    /// What a benchmark found beside its series.
    pub(super) fn facts(&mut self, facts: Facts) {
        (self.emit)(Frame::Facts(facts));
    }

    /// A line for the person who reads the results.
    pub(super) fn log(&mut self, level: Level, text: String) {
        (self.emit)(Frame::Log(LogLine { level, text }));
    }
}

/// The part of a benchmark that is done when metric `at` of `of` starts, and when it ends.
pub(super) fn share(at: usize, of: usize) -> (f64, f64) {
    (at as f64 / of as f64, (at + 1) as f64 / of as f64)
}

/// Runs the benchmark called `name` and says how it ended. Never panics.
pub(crate) fn run(name: &str, context: &mut Context<'_>) -> Outcome {
    if context.stop.load(Ordering::Relaxed) {
        return Halt::Stopped.into();
    }
    let ended = catch_unwind(AssertUnwindSafe(|| match name {
        gemm::NAME => gemm::run(context),
        stream::NAME => stream::run(context),
        latency::NAME => latency::run(context),
        dispatch::NAME => dispatch::run(context),
        cores::NAME => cores::run(context),
        burn::NAME => burn::run(context),
        numa::NAME => numa::run(context),
        overlap::NAME => overlap::run(context),
        sharding::NAME => sharding::run(context),
        disk::NAME => disk::run(context),
        net::NAME => net::run(context),
        name if gpu::knows(name) => gpu::run(name, context),
        _ => match train::Family::called(name) {
            Some(family) => family.run(context),
            None => Err(Halt::NotRun(format!("this probe has no benchmark called '{name}'"))),
        },
    }));
    match ended {
        Ok(Ok(())) => Outcome::Done,
        Ok(Err(halt)) => halt.into(),
        Err(_) => Outcome::Failed(format!("{name} came to an internal error")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn smoke(name: &str, stop: bool) -> (Outcome, Vec<Frame>) {
        let mut frames = Vec::new();
        let dir = tempfile::tempdir().unwrap();
        let outcome = run(
            name,
            &mut Context {
                profile: Profile::Smoke,
                scratch: Some(dir.path()),
                stop: &AtomicBool::new(stop),
                steps: None,
                emit: &mut |frame| frames.push(frame),
            },
        );
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{name} left a file");
        (outcome, frames)
    }

    fn emits(name: &str, metrics: &[&str]) {
        let (outcome, frames) = smoke(name, false);
        assert_eq!(outcome, Outcome::Done);
        let mut seen = BTreeMap::new();
        let mut progress = 0;
        for frame in frames {
            match frame {
                Frame::Series(series) => {
                    assert_eq!(series.metric.benchmark, name);
                    // A step that completes no product says nothing of its bits.
                    let least = if series.metric.name.ends_with("_pass") { 1 } else { crate::steps::ENOUGH };
                    assert!(series.values.len() >= least, "{}: {} values", series.metric, series.values.len());
                    assert!(series.values.iter().all(|v| v.is_finite() && *v > 0.0), "{}", series.metric);
                    assert!(series.started_ns > 0);
                    seen.insert(series.metric.name, series.direction);
                }
                Frame::Progress(p) => {
                    assert!((0.0..=1.0).contains(&p.done), "{}", p.done);
                    progress += 1;
                }
                Frame::Log(_) | Frame::Facts(_) => {}
                other => panic!("unexpected {other:?}"),
            }
        }
        assert!(progress > 0);
        for metric in metrics {
            assert!(seen.contains_key(*metric), "{name} has no {metric}: {seen:?}");
        }
    }

    #[test]
    fn smoke_gemm_emits_its_metrics() {
        emits(gemm::NAME, &["fp32-1t", "fp64-1t"]);
    }

    #[test]
    fn smoke_stream_emits_its_metrics() {
        emits(stream::NAME, &["copy-1t", "scale-1t", "add-1t", "triad-1t"]);
    }

    #[test]
    fn smoke_latency_emits_its_metrics() {
        emits(latency::NAME, &["l1", "l2", "llc", "dram"]);
    }

    #[test]
    fn smoke_dispatch_emits_its_metrics() {
        emits(dispatch::NAME, &["syscall", "thread-handoff"]);
    }

    #[test]
    fn smoke_cores_and_burn_emit_metrics_per_core() {
        let core = crate::pin::Place::every_core()[0].cpu();
        emits(cores::NAME, &[&format!("speed:core{core}"), &format!("latency:core{core}")]);
        emits(burn::NAME, &["flops", &format!("core_{core}_flops"), &format!("core_{core}_pass")]);
    }

    #[test]
    fn smoke_numa_overlap_and_sharding_emit_their_metrics() {
        let node = crate::topology::numa_nodes()[0].id.unwrap_or(0);
        let pair = |what: &str| format!("mem_bandwidth_matrix_numa_{node}_{node}_{what}");
        emits(numa::NAME, &[&pair("bw"), &pair("lat"), "mem_loaded_latency_0_lat"]);
        emits(overlap::NAME, &["compute_alone", "comm_together", "overlap_efficiency", "comm_slowdown"]);
        emits(sharding::NAME, &["nosharding_time", "allreduce_time", "allgather_time"]);
    }

    #[test]
    fn smoke_disk_emits_its_metrics() {
        emits(disk::NAME, &["seq-write", "seq-read", "rand-read", "rand-write", "rand-read-latency"]);
    }

    #[test]
    fn smoke_training_emits_its_metrics_and_the_same_losses_every_time() {
        for (name, model) in
            [("train-gpt2", "gpt2"), ("train-bert", "bert"), ("train-lstm", "lstm"), ("train-resnet", "resnet")]
        {
            emits(name, &[&format!("{model}-nano_fp32_train_step_time")]);
            let digest = || {
                let facts = smoke(name, false).1.into_iter().filter_map(|frame| match frame {
                    Frame::Facts(facts) => Some(facts.facts),
                    _ => None,
                });
                let key = format!("digest.{model}-nano_fp32_train_loss");
                facts.flatten().find(|fact| fact.key == key).unwrap().reading
            };
            let first = digest();
            assert!(
                matches!(&first, muster_wire::Reading::Value(muster_wire::Datum::Text(t)) if t.len() == 16 * 9 - 1)
            );
            assert_eq!(digest(), first, "{name}");
        }
    }

    #[test]
    fn smoke_net_emits_its_metrics() {
        emits(net::NAME, &["throughput-1t", "rtt-1t"]);
    }

    #[test]
    fn every_benchmark_of_the_catalogue_is_known_and_obeys_stop() {
        for benchmark in muster_wire::BENCHMARKS {
            let (outcome, frames) = smoke(benchmark.name, true);
            assert_eq!(outcome, Outcome::NotRun("stopped".into()), "{}", benchmark.name);
            assert!(frames.is_empty());
        }
    }

    #[test]
    fn an_unknown_name_is_not_run() {
        assert!(matches!(smoke("no-such-thing", false).0, Outcome::NotRun(_)));
    }
}

//! What a benchmark is given.

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use muster_wire::{Facts, Frame, Level, LogLine, MetricId, Profile, Progress, Series, Steps};

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

/// Identity of one metric; its unit and direction stand in the metric catalogue.
#[derive(Clone, Debug)]
pub(super) struct Metric {
    pub(super) benchmark: &'static str,
    pub(super) name: Cow<'static, str>,
    pub(super) engine: &'static str,
}

impl Metric {
    /// Measured by muster's own code.
    pub(super) fn of(benchmark: &'static str, name: impl Into<Cow<'static, str>>) -> Self {
        Self { benchmark, name: name.into(), engine: "own" }
    }

    /// The same, measured by `engine`.
    pub(super) fn by(self, engine: &'static str) -> Self {
        Self { engine, ..self }
    }

    pub(super) fn entry(&self) -> Result<&'static muster_wire::Metric, Halt> {
        muster_wire::metric(self.benchmark, &self.name)
            .ok_or_else(|| Halt::Failed(format!("{}/{} is not in the metric catalogue", self.benchmark, self.name)))
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
        metrics.iter().try_for_each(|metric| metric.entry().map(drop))?;
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
        metrics.into_iter().zip(taken).try_for_each(|(metric, taken)| self.series(metric, taken))
    }

    /// Emits a series that was taken otherwise.
    pub(super) fn series(&mut self, metric: Metric, taken: Taken) -> Result<(), Halt> {
        let muster_wire::Metric { unit, direction, .. } = *metric.entry()?;
        (self.emit)(Frame::Series(Series {
            metric: MetricId::new(metric.benchmark, metric.name, metric.engine),
            unit,
            direction,
            values: taken.values,
            warmup: taken.warmup,
            started_ns: taken.started_ns,
        }));
        Ok(())
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

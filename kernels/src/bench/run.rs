//! One benchmark on one GPU: what it says, and how its work becomes series.

use muster_wire::{Datum, Fact, Facts, Frame, Metric, MetricId, Profile, Progress, Reading, Series};

use crate::driver::{Gpu, Trouble};
use crate::pace;

/// One benchmark on one GPU.
pub(super) struct Run<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) profile: Profile,
    name: &'static str,
    say: &'a mut dyn FnMut(Frame),
    /// Whose work is told of.
    pub(super) whom: String,
}

impl<'a> Run<'a> {
    pub(super) fn new(name: &'static str, gpu: &'a Gpu, profile: Profile, say: &'a mut dyn FnMut(Frame)) -> Self {
        Self { gpu, profile, name, say, whom: format!("GPU {}", gpu.index) }
    }

    /// Which card this is.
    pub(super) fn introduce(&mut self) {
        let Gpu { name, uuid, engine, .. } = self.gpu;
        let (name, uuid, engine) = (name.clone(), uuid.clone(), (*engine).to_owned());
        for (what, text) in [("name", name), ("uuid", uuid), ("engine", engine)] {
            self.fact(what, text);
        }
    }

    /// `[smoke, quick, standard, full]`.
    pub(super) fn pick<T: Copy>(&self, of: [T; 4]) -> T {
        pace::pick(self.profile, of)
    }

    /// Values of a series.
    pub(super) fn values(&self) -> usize {
        pace::values(self.profile)
    }

    pub(super) fn fact(&mut self, key: &str, text: String) {
        let fact = Fact {
            key: format!("gpu.{}.{key}", self.gpu.index),
            reading: Reading::Value(Datum::Text(text)),
            unit: None,
        };
        (self.say)(Frame::Facts(Facts { collector: self.name.to_owned(), facts: vec![fact] }));
    }

    pub(super) fn progress(&mut self, done: f64, what: &str) {
        let note = format!("{}: {what}", self.whom);
        (self.say)(Frame::Progress(Progress { benchmark: self.name.to_owned(), done, note }));
    }

    pub(super) fn series(&mut self, name: &str, values: Vec<f64>, warmup: usize) -> Result<(), Trouble> {
        // The number of the GPU belongs to the metric: the same slot of another node is its peer.
        let name = format!("{name}:{}", self.gpu.index);
        self.tell((name, self.gpu.engine.to_owned()), values, warmup)
    }

    /// Sends a series under a name and an engine of its own; the metric catalogue says its unit and direction.
    pub(super) fn tell(
        &mut self,
        (name, engine): (String, String),
        values: Vec<f64>,
        warmup: usize,
    ) -> Result<(), Trouble> {
        let Some(&Metric { unit, direction, .. }) = muster_wire::metric(self.name, &name) else {
            return Err(Trouble::Failed(format!("{}/{name} is not in the metric catalogue", self.name)));
        };
        let (metric, warmup) = (MetricId::new(self.name, name, engine), warmup as u32);
        (self.say)(Frame::Series(Series { metric, unit, direction, values, warmup, started_ns: 0 }));
        Ok(())
    }

    /// Takes a series: `work` puts one piece on the stream, `value` turns its milliseconds into what the metric says.
    pub(super) fn sample(
        &mut self,
        name: &str,
        part: (usize, usize),
        value: &dyn Fn(f64) -> f64,
        work: &mut dyn FnMut() -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let gpu = self.gpu;
        let mut batch = |count: u32| gpu.timed(&mut || (0..count).try_for_each(|_| work()));
        let (times, warmup) = self.times(name, part, &mut batch)?;
        self.series(name, times.into_iter().map(value).collect(), warmup)
    }

    /// Milliseconds of one piece of work, as often as a series has values, and how many batches warmed up. `batch` does so
    /// many pieces and says how long all of them took.
    pub(super) fn times(
        &mut self,
        what: &str,
        (part, parts): (usize, usize),
        batch: &mut dyn FnMut(u32) -> Result<f64, Trouble>,
    ) -> Result<(Vec<f64>, usize), Trouble> {
        let profile = self.profile;
        let mut done = |share: f64| self.progress((part as f64 + share) / parts as f64, what);
        pace::times(profile, &mut done, batch)
    }
}

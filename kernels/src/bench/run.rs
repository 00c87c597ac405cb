//! How work on a GPU becomes a series: batches long enough to be timed, warm-up until steady, then every value.

use muster_wire::{Datum, Fact, Facts, Frame, Metric, MetricId, Profile, Progress, Reading, Series};

use crate::driver::{Gpu, Trouble};

/// Most launches in one timed batch.
const BATCH: u32 = 4096;
/// Warm-up ends when the last values vary by less than this.
const STEADY: f64 = 0.005;
/// As many values are looked at for it.
const WINDOW: usize = 8;

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
        of[self.profile as usize]
    }

    /// Values of a series. The probe takes two passes in smoke, so these are half.
    pub(super) fn values(&self) -> usize {
        self.pick([16, 32, 64, 256])
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
        let mut batch = |count: u32| batch(count).map(|ms| ms / f64::from(count));
        let target = self.pick([2.0, 5.0, 20.0, 20.0]);
        let mut count = 1;
        loop {
            self.progress(part as f64 / parts as f64, what);
            let ms = batch(count)?;
            if ms * f64::from(count) >= target || count >= BATCH {
                break;
            }
            count = ((target / ms.max(1e-6)).ceil() as u32).clamp(count + 1, count * 16).min(BATCH);
        }
        let (mut warm, most) = (Vec::new(), self.pick([2, 48, 128, 256]));
        while warm.len() < most && !steady(&warm) {
            warm.push(batch(count)?);
        }
        let mut values = Vec::new();
        for taken in 0..self.values() {
            self.progress((part as f64 + taken as f64 / self.values() as f64) / parts as f64, what);
            values.push(batch(count)?);
        }
        Ok((values, warm.len()))
    }
}

/// Whether the last values of a warm-up agree.
fn steady(values: &[f64]) -> bool {
    let Some(last) = values.len().checked_sub(WINDOW).map(|from| &values[from..]) else { return false };
    let mean = last.iter().sum::<f64>() / WINDOW as f64;
    let variance = last.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / WINDOW as f64;
    variance.sqrt() <= STEADY * mean
}

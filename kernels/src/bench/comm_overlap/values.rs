//! How long GPUs were at it, as values of series.

/// Milliseconds by GPU, where they were asked for.
pub(super) struct Took {
    pub(super) compute: Vec<f64>,
    pub(super) sum: Vec<f64>,
}

impl Took {
    /// Of all of it.
    pub(super) fn most(&self) -> f64 {
        most(&self.compute).max(most(&self.sum))
    }
}

/// Nanoseconds of one piece of work, value by value.
#[derive(Default)]
pub(super) struct Values {
    /// By GPU.
    pub(super) alone: Vec<Vec<f64>>,
    pub(super) beside: Vec<Vec<f64>>,
    pub(super) sum_alone: Vec<f64>,
    pub(super) sum_beside: Vec<f64>,
    pub(super) step: Vec<f64>,
    pub(super) overlap: Vec<f64>,
}

impl Values {
    /// None yet, of so many GPUs.
    pub(super) fn new(gpus: usize) -> Self {
        Self { alone: vec![Vec::new(); gpus], beside: vec![Vec::new(); gpus], ..Self::default() }
    }

    /// Adds one value of each, of `count` pieces of work.
    pub(super) fn add(&mut self, (compute, sum): (&[f64], &[f64]), both: &Took, count: f64) {
        let nanos = |ms: f64| ms * 1e6 / count;
        self.alone.iter_mut().zip(compute).for_each(|(to, ms)| to.push(nanos(*ms)));
        self.beside.iter_mut().zip(&both.compute).for_each(|(to, ms)| to.push(nanos(*ms)));
        let step = both.most();
        self.sum_alone.push(nanos(most(sum)));
        self.sum_beside.push(nanos(most(&both.sum)));
        self.step.push(nanos(step));
        self.overlap.push(most(compute).max(most(sum)) / step);
    }
}

fn most(of: &[f64]) -> f64 {
    of.iter().copied().fold(0.0, f64::max)
}

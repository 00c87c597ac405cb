//! When is the network trained enough? Case-control loss by mini-batches, until the loss on held-out rows has not
//! fallen for a while; the best weights are kept.

use pulp::{Arch, Simd, WithSimd};

use super::Settings;
use super::adam::Adam;
use super::net::{Folded, Net, Units, WIDTH};
use super::pairs::Pairs;
use super::pass::Pass;
use crate::Chance;

/// Trains on `rows`, stops by `held_out`; the network and the number of passes over the events it took.
pub(super) fn train(rows: &Pairs, held_out: &Pairs, settings: &Settings) -> (Net, usize) {
    Arch::new().dispatch(Training { rows, held_out, settings })
}

/// Training in the widest vectors there are.
struct Training<'a> {
    rows: &'a Pairs,
    held_out: &'a Pairs,
    settings: &'a Settings,
}

impl WithSimd for Training<'_> {
    type Output = (Net, usize);

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        passes(self.rows, self.held_out, self.settings)
    }
}

#[inline(always)]
fn passes(rows: &Pairs, held_out: &Pairs, settings: &Settings) -> (Net, usize) {
    let mut chance = Chance::new(settings.seed);
    let judge = Judge::new(held_out, settings.seed);
    let mut net = Net::new(rows.row(0).len() + 1, &mut chance);
    let mut trainer = Trainer::new(&net, settings);
    let mut best = (f64::INFINITY, net.clone());
    let (mut since_best, mut epochs) = (0, 0);
    let mut order: Vec<usize> = (0..rows.cases.len()).collect();
    while epochs < settings.epochs && since_best < settings.patience {
        chance.shuffle(&mut order);
        for batch in order.chunks(settings.batch.max(2)) {
            trainer.step(&mut net, rows, batch, &mut chance);
        }
        epochs += 1;
        let loss = judge.loss(&net.folded());
        if loss < best.0 {
            best = (loss, net.clone());
            since_best = 0;
        } else {
            since_best += 1;
        }
    }
    (best.1, epochs)
}

struct Trainer {
    adam: Adam,
    gradient: Vec<Units>,
    by_output: Vec<f32>,
    pass: Pass,
    dropout: f64,
    shrink: f32,
}

impl Trainer {
    fn new(net: &Net, settings: &Settings) -> Self {
        let rows = net.layout().len();
        Self {
            adam: Adam::new(rows, settings.rate),
            gradient: vec![[0.0; WIDTH]; rows],
            by_output: Vec::new(),
            pass: Pass::default(),
            dropout: settings.dropout,
            shrink: settings.shrink as f32,
        }
    }

    /// One move on the cases `batch`: row 2k is the k-th case, row 2k + 1 its control, both at the case's time.
    #[inline(always)]
    fn step(&mut self, net: &mut Net, rows: &Pairs, batch: &[usize], chance: &mut Chance) {
        self.pass.clear();
        for &case in batch {
            let case = rows.cases[case];
            let time = rows.time[case.0];
            self.pass.push(rows.row(case.0), time);
            self.pass.push(rows.row(rows.control(case, chance)), time);
        }
        self.pass.forward(net, self.dropout, chance);
        let n = batch.len() as f32;
        self.by_output.clear();
        for pair in self.pass.out.chunks_exact(2) {
            // d softplus(z) / dz of z = control - case.
            let push = 1.0 / (1.0 + (pair[0] - pair[1]).exp()) / n;
            let pull = |g: f32| self.shrink * g.signum() / n;
            self.by_output.push(-push + pull(pair[0]));
            self.by_output.push(push + pull(pair[1]));
        }
        self.pass.backward(net, &self.by_output, &mut self.gradient);
        self.adam.step(&mut net.weights, &mut self.gradient);
    }
}

/// Held-out pairs, drawn once: the same comparisons each time tell a better network from a luckier draw.
struct Judge<'a> {
    rows: &'a Pairs,
    controls: Vec<usize>,
}

impl<'a> Judge<'a> {
    /// Controls per held-out case, as many as pycox's examples repeat the validation set.
    const CONTROLS: usize = 10;

    fn new(rows: &'a Pairs, seed: u64) -> Self {
        let mut chance = Chance::branch(seed, 1);
        let each = rows.cases.iter().flat_map(|&case| [case; Self::CONTROLS]);
        Self { rows, controls: each.map(|case| rows.control(case, &mut chance)).collect() }
    }

    #[inline(always)]
    fn loss(&self, net: &Folded) -> f64 {
        let entered: Vec<Units> = (0..self.rows.len()).map(|k| net.enter(self.rows.row(k))).collect();
        let mut sum = 0.0;
        for (case, controls) in self.rows.cases.iter().zip(self.controls.chunks_exact(Self::CONTROLS)) {
            let time = self.rows.time[case.0];
            let own = net.ask(&entered[case.0], time);
            sum += controls.iter().map(|&k| softplus(net.ask(&entered[k], time) - own)).sum::<f64>();
        }
        sum / self.controls.len().max(1) as f64
    }
}

/// `ln(1 + e^z)` without overflow.
fn softplus(z: f32) -> f64 {
    let z = f64::from(z);
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}

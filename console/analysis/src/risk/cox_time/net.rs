//! What is the network of Cox-Time? Two layers of 32 rectified units, each with batch normalisation, and one
//! output without bias; its input is a scaled row and the scaled time.
//!
//! All parameters lie in one flat vector, so that the optimiser, the saved file and the gradient check treat them
//! alike. A hand-written network of fixed width costs no build time (candle adds 90 s) and lets the compiler keep
//! a whole layer in registers.

use serde::{Deserialize, Serialize};

use crate::Chance;

/// Units per layer.
pub(super) const WIDTH: usize = 32;
/// One value per unit of a layer.
pub(super) type Units = [f32; WIDTH];
const EPSILON: f32 = 1e-5;

/// Where each group of parameters lies in the flat vector; `inputs` counts the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) inputs: usize,
}

impl Layout {
    /// First layer's weights in rows of units, one row per input; then bias, norm's scale and norm's shift.
    pub(super) const fn rows1(self) -> std::ops::Range<usize> {
        0..self.inputs
    }
    pub(super) const fn bias1(self) -> usize {
        self.inputs
    }
    pub(super) const fn scale1(self) -> usize {
        self.inputs + 1
    }
    pub(super) const fn shift1(self) -> usize {
        self.inputs + 2
    }
    pub(super) const fn rows2(self) -> std::ops::Range<usize> {
        self.inputs + 3..self.inputs + 3 + WIDTH
    }
    pub(super) const fn bias2(self) -> usize {
        self.inputs + 3 + WIDTH
    }
    pub(super) const fn scale2(self) -> usize {
        self.inputs + 4 + WIDTH
    }
    pub(super) const fn shift2(self) -> usize {
        self.inputs + 5 + WIDTH
    }
    pub(super) const fn out(self) -> usize {
        self.inputs + 6 + WIDTH
    }
    /// Number of rows of units.
    pub(super) const fn len(self) -> usize {
        self.inputs + 7 + WIDTH
    }
}

/// Weights and the running moments of both normalisations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Net {
    pub(super) inputs: usize,
    pub(super) weights: Vec<Units>,
    pub(super) mean: [Units; 2],
    pub(super) variance: [Units; 2],
}

impl Net {
    /// Fresh weights as pycox's: Kaiming's normal law for the layers (He et al. 2015), uniform within
    /// `1 / sqrt(inputs)` for biases and the output.
    pub(super) fn new(inputs: usize, chance: &mut Chance) -> Self {
        let layout = Layout { inputs };
        let mut weights = vec![[0.0; WIDTH]; layout.len()];
        fill(&mut weights[layout.rows1()], || (2.0 / inputs as f64).sqrt() * chance.normal());
        fill(&mut weights[layout.rows2()], || (2.0 / WIDTH as f64).sqrt() * chance.normal());
        let mut uniform = |fan_in: usize| (2.0 * chance.unit() - 1.0) / (fan_in as f64).sqrt();
        fill(&mut weights[layout.bias1()..=layout.bias1()], || uniform(inputs));
        for at in [layout.bias2(), layout.out()] {
            fill(&mut weights[at..=at], || uniform(WIDTH));
        }
        for at in [layout.scale1(), layout.scale2()] {
            weights[at] = [1.0; WIDTH];
        }
        Self { inputs, weights, mean: [[0.0; WIDTH]; 2], variance: [[1.0; WIDTH]; 2] }
    }

    pub(super) const fn layout(&self) -> Layout {
        Layout { inputs: self.inputs }
    }

    /// The same function without normalisation: each is affine once trained, so it merges into its neighbours.
    #[inline(always)]
    pub(super) fn folded(&self) -> Folded {
        let layout = self.layout();
        let w = &self.weights;
        let affine = |which: usize, scale: usize, shift: usize| -> (Units, Units) {
            let (mean, variance) = (&self.mean[which], &self.variance[which]);
            let a: Units = std::array::from_fn(|u| w[scale][u] / (variance[u] + EPSILON).sqrt());
            (a, std::array::from_fn(|u| w[shift][u] - mean[u] * a[u]))
        };
        let (a1, b1) = affine(0, layout.scale1(), layout.shift1());
        let (a2, b2) = affine(1, layout.scale2(), layout.shift2());
        let mut second = [[0.0; WIDTH]; WIDTH];
        let mut bias2 = w[layout.bias2()];
        for (i, row) in w[layout.rows2()].iter().enumerate() {
            second[i] = row.map(|v| v * a1[i]);
            add_scaled(&mut bias2, row, b1[i]);
        }
        let out = w[layout.out()];
        Folded {
            first: w[layout.rows1()].to_vec(),
            time: w[self.inputs - 1],
            bias1: w[layout.bias1()],
            second,
            bias2,
            out: std::array::from_fn(|u| out[u] * a2[u]),
            constant: (0..WIDTH).map(|u| out[u] * b2[u]).sum(),
        }
    }
}

fn fill(rows: &mut [Units], mut draw: impl FnMut() -> f64) {
    rows.iter_mut().flatten().for_each(|w| *w = draw() as f32);
}

/// `sum += row * factor`.
#[inline(always)]
pub(super) fn add_scaled(sum: &mut Units, row: &Units, factor: f32) {
    for u in 0..WIDTH {
        sum[u] += row[u] * factor;
    }
}

/// `sum += inputs * rows`: plain loops, since closures would not be compiled for wide vectors.
#[inline(always)]
pub(super) fn multiply(sum: &mut Units, inputs: &[f32], rows: &[Units]) {
    let mut own = *sum;
    for (x, row) in inputs.iter().zip(rows) {
        add_scaled(&mut own, row, *x);
    }
    *sum = own;
}

/// The rectifier.
#[inline(always)]
pub(super) fn rectify(units: &mut Units) {
    for unit in units {
        *unit = if *unit > 0.0 { *unit } else { 0.0 };
    }
}

#[inline(always)]
pub(super) fn dot(a: &Units, b: &Units) -> f32 {
    // Eight running sums let the compiler use vectors, and fix the order of additions.
    let mut sums = [0.0_f32; 8];
    for k in 0..WIDTH / 8 {
        for lane in 0..8 {
            sums[lane] += a[8 * k + lane] * b[8 * k + lane];
        }
    }
    ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]))
}

/// A trained network, ready to be asked often.
#[derive(Clone, Debug)]
pub(super) struct Folded {
    /// Weights of the features; those of the time stand apart.
    first: Vec<Units>,
    time: Units,
    bias1: Units,
    second: [Units; WIDTH],
    bias2: Units,
    out: Units,
    constant: f32,
}

impl Folded {
    /// What a row contributes to the first layer; the time comes on top.
    #[inline(always)]
    pub(super) fn enter(&self, row: &[f32]) -> Units {
        let mut units = self.bias1;
        multiply(&mut units, row, &self.first);
        units
    }

    /// Log of the relative hazard of an entered row at scaled time `t`.
    #[inline(always)]
    pub(super) fn ask(&self, entered: &Units, t: f32) -> f32 {
        let mut hidden = *entered;
        add_scaled(&mut hidden, &self.time, t);
        rectify(&mut hidden);
        let mut sum = self.bias2;
        multiply(&mut sum, &hidden, &self.second);
        rectify(&mut sum);
        self.constant + dot(&sum, &self.out)
    }
}

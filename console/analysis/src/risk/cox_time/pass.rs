//! How does the loss of a batch change with each weight? Forward and backward through the network in training:
//! batch normalisation by the batch's own moments, dropout by a seeded mask.

use super::net::{Net, Units, WIDTH, add_scaled, dot, multiply, rectify};
use crate::Chance;

const EPSILON: f32 = 1e-5;
/// Weight of a batch in the running moments, as in torch.
const MOMENTUM: f32 = 0.1;

/// One layer's values for each row of the batch.
#[derive(Default)]
struct Layer {
    rectified: Vec<Units>,
    normal: Vec<Units>,
    mask: Vec<Units>,
    output: Vec<Units>,
    inverse: Units,
}

/// Buffers of one batch, used again for the next.
#[derive(Default)]
pub(super) struct Pass {
    inputs: Vec<f32>,
    layers: [Layer; 2],
    slope: Vec<Units>,
    transposed: Vec<Units>,
    /// Output of each row.
    pub(super) out: Vec<f32>,
}

impl Pass {
    /// Empties the batch.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.inputs.clear();
    }

    /// Adds a scaled row and its scaled time.
    #[inline(always)]
    pub(super) fn push(&mut self, row: &[f32], time: f32) {
        self.inputs.extend_from_slice(row);
        self.inputs.push(time);
    }

    /// Runs the batch through `net`, updates the running moments, and leaves the outputs in [`Pass::out`].
    #[inline(always)]
    pub(super) fn forward(&mut self, net: &mut Net, dropout: f64, chance: &mut Chance) {
        let layout = net.layout();
        let rows = self.inputs.len() / net.inputs;
        let w = &net.weights;
        let [one, two] = &mut self.layers;
        one.resize(rows);
        two.resize(rows);
        for (sum, row) in one.rectified.iter_mut().zip(self.inputs.chunks_exact(net.inputs)) {
            *sum = w[layout.bias1()];
            multiply(sum, row, &w[layout.rows1()]);
            rectify(sum);
        }
        one.draw_mask(dropout, chance);
        one.normalise(&w[layout.scale1()], &w[layout.shift1()], (&mut net.mean[0], &mut net.variance[0]));
        for (sum, row) in two.rectified.iter_mut().zip(&one.output) {
            *sum = w[layout.bias2()];
            multiply(sum, row, &w[layout.rows2()]);
            rectify(sum);
        }
        two.draw_mask(dropout, chance);
        two.normalise(&w[layout.scale2()], &w[layout.shift2()], (&mut net.mean[1], &mut net.variance[1]));
        self.out.resize(rows, 0.0);
        for (out, row) in self.out.iter_mut().zip(&two.output) {
            *out = dot(row, &w[layout.out()]);
        }
    }

    /// Adds to `gradient` the derivative of a loss whose derivative by each output is `by_output`.
    #[inline(always)]
    pub(super) fn backward(&mut self, net: &Net, by_output: &[f32], gradient: &mut [Units]) {
        let layout = net.layout();
        let w = &net.weights;
        let [one, two] = &mut self.layers;
        self.slope.resize(by_output.len(), ZERO);
        let mut by_out = gradient[layout.out()];
        for ((d, row), slope) in by_output.iter().zip(&two.output).zip(&mut self.slope) {
            add_scaled(&mut by_out, row, *d);
            *slope = ZERO;
            add_scaled(slope, &w[layout.out()], *d);
        }
        gradient[layout.out()] = by_out;
        let (scale, shift) = two.back(&mut self.slope, &w[layout.scale2()]);
        gradient[layout.scale2()] = scale;
        gradient[layout.shift2()] = shift;
        transpose(&w[layout.rows2()], &mut self.transposed);
        for (slope, row) in self.slope.iter().zip(&one.output) {
            add_scaled(&mut gradient[layout.bias2()], slope, 1.0);
            spread(&mut gradient[layout.rows2()], slope, row);
        }
        for slope in &mut self.slope {
            let above = *slope;
            *slope = ZERO;
            multiply(slope, &above, &self.transposed);
        }
        let (scale, shift) = one.back(&mut self.slope, &w[layout.scale1()]);
        gradient[layout.scale1()] = scale;
        gradient[layout.shift1()] = shift;
        for (slope, row) in self.slope.iter().zip(self.inputs.chunks_exact(net.inputs)) {
            add_scaled(&mut gradient[layout.bias1()], slope, 1.0);
            spread(&mut gradient[layout.rows1()], slope, row);
        }
    }
}

const ZERO: Units = [0.0; WIDTH];

/// `rows += inputs x slope`, the outer product.
#[inline(always)]
fn spread(rows: &mut [Units], slope: &Units, inputs: &[f32]) {
    let slope = *slope;
    for (row, x) in rows.iter_mut().zip(inputs) {
        add_scaled(row, &slope, *x);
    }
}

impl Layer {
    #[inline(always)]
    fn resize(&mut self, rows: usize) {
        for part in [&mut self.rectified, &mut self.normal, &mut self.mask, &mut self.output] {
            part.resize(rows, ZERO);
        }
    }

    /// Each unit stays with probability `1 - dropout` and is then enlarged to keep the mean.
    #[inline(always)]
    fn draw_mask(&mut self, dropout: f64, chance: &mut Chance) {
        let limit = (dropout * 65_536.0) as u64;
        let keep = 1.0 / (1.0 - limit as f32 / 65_536.0);
        if limit == 0 {
            self.mask.fill([1.0; WIDTH]);
            return;
        }
        for mask in &mut self.mask {
            for four in mask.chunks_exact_mut(4) {
                let bits = chance.bits();
                for (k, unit) in four.iter_mut().enumerate() {
                    *unit = if (bits >> (16 * k)) & 0xFFFF < limit { 0.0 } else { keep };
                }
            }
        }
    }

    /// Moments of the batch, the normalised rows, and the layer's output.
    #[inline(always)]
    fn normalise(&mut self, scale: &Units, shift: &Units, running: (&mut Units, &mut Units)) {
        let n = self.rectified.len() as f32;
        let (mut mean, mut variance) = (ZERO, ZERO);
        for row in &self.rectified {
            add_scaled(&mut mean, row, 1.0 / n);
        }
        for row in &self.rectified {
            for u in 0..WIDTH {
                let off = row[u] - mean[u];
                variance[u] += off * off;
            }
        }
        let unbiased = n / (n - 1.0).max(1.0);
        let mut inverse = ZERO;
        for u in 0..WIDTH {
            variance[u] /= n;
            inverse[u] = 1.0 / (variance[u] + EPSILON).sqrt();
            running.0[u] += MOMENTUM * (mean[u] - running.0[u]);
            running.1[u] += MOMENTUM * (variance[u] * unbiased - running.1[u]);
        }
        self.inverse = inverse;
        for k in 0..self.rectified.len() {
            let (row, mask) = (&self.rectified[k], &self.mask[k]);
            let (normal, output) = (&mut self.normal[k], &mut self.output[k]);
            for u in 0..WIDTH {
                normal[u] = (row[u] - mean[u]) * inverse[u];
                output[u] = (normal[u] * scale[u] + shift[u]) * mask[u];
            }
        }
    }

    /// Turns derivatives by the layer's output into those by its input sums, and returns those by scale and shift.
    #[inline(always)]
    fn back(&self, slope: &mut [Units], scale: &Units) -> (Units, Units) {
        let (mut by_scale, mut by_shift) = (ZERO, ZERO);
        for ((s, mask), normal) in slope.iter_mut().zip(&self.mask).zip(&self.normal) {
            for u in 0..WIDTH {
                s[u] *= mask[u];
                by_shift[u] += s[u];
                by_scale[u] += s[u] * normal[u];
            }
        }
        let n = slope.len() as f32;
        let (mut factor, mut mean, mut tilt) = (ZERO, ZERO, ZERO);
        for u in 0..WIDTH {
            factor[u] = scale[u] * self.inverse[u];
            mean[u] = by_shift[u] / n;
            tilt[u] = by_scale[u] / n;
        }
        for ((s, normal), row) in slope.iter_mut().zip(&self.normal).zip(&self.rectified) {
            for u in 0..WIDTH {
                let open = if row[u] > 0.0 { factor[u] } else { 0.0 };
                s[u] = open * (s[u] - mean[u] - normal[u] * tilt[u]);
            }
        }
        (by_scale, by_shift)
    }
}

#[inline(always)]
fn transpose(rows: &[Units], into: &mut Vec<Units>) {
    into.resize(WIDTH, ZERO);
    for (i, row) in rows.iter().enumerate() {
        for u in 0..WIDTH {
            into[u][i] = row[u];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::net::Net;
    use super::*;

    const ROWS: i32 = 512;

    /// A fixed batch of rows with 3 features and a time; many, so that no single kink of the rectifier weighs.
    fn batch(pass: &mut Pass) {
        let mut chance = Chance::new(5);
        pass.clear();
        for _ in 0..ROWS {
            let row: Vec<f32> = (0..3).map(|_| chance.normal() as f32).collect();
            pass.push(&row, chance.normal() as f32);
        }
    }

    /// Sum of `sin(k) * out[k]`, a loss with a known derivative by the outputs.
    fn loss(net: &Net, dropout: f64) -> f64 {
        let mut pass = Pass::default();
        batch(&mut pass);
        pass.forward(&mut net.clone(), dropout, &mut Chance::new(9));
        pass.out.iter().enumerate().map(|(k, o)| (k as f64).sin() * f64::from(*o)).sum()
    }

    /// A network without kinks nearby: every fourth unit is always closed, the others always open.
    fn far_from_kinks() -> Net {
        let mut net = Net::new(4, &mut Chance::new(2));
        let layout = net.layout();
        for (bias, rows) in [(layout.bias1(), layout.rows1()), (layout.bias2(), layout.rows2())] {
            net.weights[bias] = std::array::from_fn(|u| if u % 4 == 3 { -20.0 } else { 20.0 });
            net.weights[rows].iter_mut().flatten().for_each(|w| *w = w.clamp(-0.6, 0.6));
        }
        let mut chance = Chance::new(3);
        for at in [layout.scale1(), layout.shift1(), layout.scale2(), layout.shift2()] {
            net.weights[at].iter_mut().for_each(|w| *w += 0.2 * chance.normal() as f32);
        }
        net
    }

    #[test]
    fn gradients_agree_with_finite_differences() {
        for dropout in [0.0, 0.3] {
            let net = far_from_kinks();
            let layout = net.layout();
            let mut pass = Pass::default();
            batch(&mut pass);
            pass.forward(&mut net.clone(), dropout, &mut Chance::new(9));
            let by_output: Vec<f32> = (0..ROWS).map(|k| f64::from(k).sin() as f32).collect();
            let mut gradient = vec![[0.0; WIDTH]; layout.len()];
            pass.backward(&net, &by_output, &mut gradient);
            let mut chance = Chance::new(4);
            for (group, exact) in gradient.iter().enumerate() {
                // Along a random direction within each row of weights.
                let direction: Units = std::array::from_fn(|_| chance.normal() as f32);
                let step = 1e-2_f32;
                let moved = |by: f32| {
                    let mut n = net.clone();
                    add_scaled(&mut n.weights[group], &direction, by);
                    loss(&n, dropout)
                };
                let numeric = (moved(step) - moved(-step)) / (2.0 * f64::from(step));
                let size = f64::from(dot(exact, exact)).sqrt() + 1.0;
                let exact = f64::from(dot(exact, &direction));
                assert!((numeric - exact).abs() < 0.01 * size, "row {group}: {numeric} {exact} of {size}");
            }
            for at in layout.rows1().chain([layout.bias1()]).chain(layout.rows2()).chain([layout.bias2()]) {
                assert!((3..WIDTH).step_by(4).all(|u| gradient[at][u] == 0.0), "a closed unit passes nothing back");
            }
        }
    }

    #[test]
    fn the_folded_network_is_the_trained_one() {
        let mut net = Net::new(4, &mut Chance::new(2));
        let mut pass = Pass::default();
        // Running moments converge to the moments of the one batch it sees.
        for _ in 0..400 {
            batch(&mut pass);
            pass.forward(&mut net, 0.0, &mut Chance::new(1));
        }
        // The running variance is unbiased, the batch's is not.
        net.variance.iter_mut().flatten().for_each(|v| *v *= (ROWS - 1) as f32 / ROWS as f32);
        let folded = net.folded();
        for (row, out) in pass.inputs.chunks_exact(4).zip(&pass.out) {
            let asked = folded.ask(&folded.enter(&row[..3]), row[3]);
            assert!((asked - out).abs() < 1e-4 * (1.0 + out.abs()), "{asked} {out}");
        }
    }
}

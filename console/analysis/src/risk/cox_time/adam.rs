//! How far is each weight moved? Adam (Kingma and Ba 2015).

use super::net::{Units, WIDTH};

/// Running moments of the gradient.
pub(super) struct Adam {
    rate: f64,
    step: i32,
    first: Vec<Units>,
    second: Vec<Units>,
}

impl Adam {
    const BETA1: f32 = 0.9;
    const BETA2: f32 = 0.999;

    /// Optimiser of `rows` rows of weights with learning rate `rate`.
    pub(super) fn new(rows: usize, rate: f64) -> Self {
        Self { rate, step: 0, first: vec![[0.0; WIDTH]; rows], second: vec![[0.0; WIDTH]; rows] }
    }

    /// Moves `weights` against `gradient`, and sets `gradient` back to zero.
    #[inline(always)]
    pub(super) fn step(&mut self, weights: &mut [Units], gradient: &mut [Units]) {
        self.step += 1;
        let fade1 = 1.0 - f64::from(Self::BETA1).powi(self.step);
        let fade2 = 1.0 - f64::from(Self::BETA2).powi(self.step);
        let rate = (self.rate / fade1) as f32;
        let size = (1.0 / fade2.sqrt()) as f32;
        for (k, gradient) in gradient.iter_mut().enumerate() {
            let (w, first, second) = (&mut weights[k], &mut self.first[k], &mut self.second[k]);
            for u in 0..WIDTH {
                let g = gradient[u];
                first[u] += (1.0 - Self::BETA1) * (g - first[u]);
                second[u] += (1.0 - Self::BETA2) * (g * g - second[u]);
                w[u] -= rate * first[u] / (second[u].sqrt() * size + 1e-8);
            }
            *gradient = [0.0; WIDTH];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bottom_of_a_bowl_is_found() {
        let mut w = vec![[3.0_f32; WIDTH]];
        let mut adam = Adam::new(1, 0.1);
        let mut g = vec![[0.0; WIDTH]];
        // The first step is the learning rate, whatever the size of the gradient.
        g[0] = w[0].map(|v| 200.0 * (v - 1.0));
        adam.step(&mut w, &mut g);
        assert!((w[0][0] - 2.9).abs() < 1e-4);
        assert_eq!(g[0][0], 0.0);
        for _ in 0..500 {
            g[0] = w[0].map(|v| 200.0 * (v - 1.0));
            adam.step(&mut w, &mut g);
        }
        assert!((w[0][7] - 1.0).abs() < 1e-2, "{}", w[0][7]);
    }
}

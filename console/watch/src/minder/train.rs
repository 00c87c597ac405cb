//! How does the network of a metric learn what windows look like?
//!
//! The paper names the loss and neither optimiser, weight of the divergence nor epochs. Chosen here: Adam (Kingma and Ba 2015), the usual optimiser
//! of such networks; a rate that falls to zero, so that the end does not depend on the last windows; as weight of the divergence 2σ²/8, with which the loss is the
//! evidence bound of eight values with Gaussian noise of variance σ², for the error of 1e-4 that the paper reports (a weight of one would make the latent
//! numbers say nothing); twenty epochs of 4,096 windows, after which the error on made waves no longer fell by much.

use super::vae::{LATENT, PARAMETERS, Vae, WIDTH};
use muster_analysis::Chance;

/// What a person may choose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// Windows that are learned from, drawn from all there are.
    pub windows: usize,
    /// Times that each is shown.
    pub epochs: usize,
    /// Weight of the divergence.
    pub beta: f64,
    /// Largest step of a weight.
    pub rate: f64,
}

impl Default for Training {
    fn default() -> Self {
        Self { windows: 4_096, epochs: 20, beta: 2.5e-5, rate: 0.02 }
    }
}

/// Windows that one step is made of.
const BATCH: usize = 16;
/// Memory of Adam's first and second moment, and what keeps it from dividing by zero: the published values.
const FIRST: f64 = 0.9;
const SECOND: f64 = 0.999;
const LEAST: f64 = 1e-8;

/// Adam's memory.
struct Adam {
    first: Vec<f64>,
    second: Vec<f64>,
    steps: i32,
}

impl Adam {
    fn step(&mut self, weights: &mut [f64], gradient: &[f64], rate: f64) {
        self.steps += 1;
        let (first_left, second_left) = (1.0 - FIRST.powi(self.steps), 1.0 - SECOND.powi(self.steps));
        for (at, weight) in weights.iter_mut().enumerate() {
            self.first[at] = FIRST * self.first[at] + (1.0 - FIRST) * gradient[at];
            self.second[at] = SECOND * self.second[at] + (1.0 - SECOND) * gradient[at] * gradient[at];
            let (first, second) = (self.first[at] / first_left, self.second[at] / second_left);
            *weight -= rate * first / (second.sqrt() + LEAST);
        }
    }
}

/// The network that learned from `windows`, and its mean squared error on them at the end, by the means of the latent numbers. The same for the same seed.
#[must_use]
pub fn train(windows: &[[f64; WIDTH]], settings: &Training, seed: u64) -> (Vae, f64) {
    let mut chance = Chance::new(seed);
    let mut vae = Vae::new(&mut chance);
    let mut adam = Adam { first: vec![0.0; PARAMETERS], second: vec![0.0; PARAMETERS], steps: 0 };
    let mut order: Vec<usize> = (0..windows.len()).collect();
    let all = (settings.epochs * windows.len().div_ceil(BATCH)).max(1) as f64;
    for _ in 0..settings.epochs {
        chance.shuffle(&mut order);
        for batch in order.chunks(BATCH) {
            let mut gradient = vec![0.0; PARAMETERS];
            for &at in batch {
                let noise: [f64; LATENT] = std::array::from_fn(|_| chance.normal());
                vae.learn(&windows[at], &noise, settings.beta, &mut gradient);
            }
            gradient.iter_mut().for_each(|sum| *sum /= batch.len() as f64);
            let left = 1.0 - f64::from(adam.steps) / all;
            adam.step(vae.weights_mut(), &gradient, settings.rate * left);
        }
    }
    let error = windows.iter().map(|window| error(&vae, window)).sum::<f64>() / windows.len().max(1) as f64;
    (vae, error)
}

/// Mean squared error of a window.
fn error(vae: &Vae, window: &[f64; WIDTH]) -> f64 {
    vae.reconstruct(window).iter().zip(window).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / WIDTH as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of a wave with a little noise, as a metric of a training job shows them.
    fn waves(count: usize, chance: &mut Chance) -> Vec<[f64; WIDTH]> {
        let one = |_| {
            let (phase, level) = (chance.between(0.0, 6.3), chance.between(0.3, 0.7));
            let noise: [f64; WIDTH] = std::array::from_fn(|_| 0.005 * chance.normal());
            std::array::from_fn(|at| level + 0.2 * (phase + 0.3 * at as f64).sin() + noise[at])
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn a_trained_network_gives_back_what_it_has_seen_and_an_untrained_one_does_not() {
        let windows = waves(1_024, &mut Chance::new(1));
        let settings = Training { windows: 1_024, epochs: 40, ..Training::default() };
        let (vae, trained) = train(&windows, &settings, 7);
        let untrained = Vae::new(&mut Chance::new(7));
        let before = windows.iter().map(|window| error(&untrained, window)).sum::<f64>() / 1_024.0;
        assert!(trained < 1e-3 && before > 20.0 * trained, "{trained} {before}");
        // Others of the same kind, too.
        let others = waves(64, &mut Chance::new(2));
        let unseen = others.iter().map(|window| error(&vae, window)).sum::<f64>() / 64.0;
        assert!(unseen < 2.0 * trained, "{unseen} {trained}");
        assert_eq!(train(&windows[..32], &settings, 7), train(&windows[..32], &settings, 7));
    }

    /// Weights that began at zero, after steps of half of these gradients' signs at most.
    fn stepped(gradients: &[[f64; 2]]) -> [f64; 2] {
        let (mut adam, mut weights) = (Adam { first: vec![0.0; 2], second: vec![0.0; 2], steps: 0 }, [0.0; 2]);
        gradients.iter().for_each(|gradient| adam.step(&mut weights, gradient, 0.5));
        weights
    }

    #[test]
    fn a_step_is_the_rate_whatever_the_size_of_the_gradient_and_small_where_the_gradient_turns() {
        for steps in 1..=5 {
            let [steep, flat] = stepped(&vec![[300.0, -0.02]; steps]);
            let down = 0.5 * steps as f64;
            assert!((steep + down).abs() < 1e-5 && (flat - down).abs() < 1e-5, "{steps}: {steep} {flat}");
        }
        // By hand: means 0.09 - 0.1 = -0.01 of the gradient and 0.000999 + 0.001 of its square, over 1 - 0.9^2 and 1 - 0.999^2.
        let [turned, _] = stepped(&[[1.0, 1.0], [-1.0, 1.0]]);
        assert!((turned - (-0.5 + 0.5 * 0.01 / 0.19)).abs() < 1e-6, "{turned}");
        assert_eq!(stepped(&[[0.0, 0.0]]), [0.0, 0.0]);
    }

    #[test]
    fn nothing_to_learn_from_is_no_error() {
        assert_eq!(train(&[], &Training::default(), 1).1, 0.0);
    }

    #[test]
    fn a_training_takes_the_course_that_it_took() {
        let windows = waves(40, &mut Chance::new(3));
        let errors = [(1, 0.02), (6, 0.02), (6, 0.002)].map(|(epochs, rate)| {
            let settings = Training { windows: 40, epochs, beta: 2.5e-5, rate };
            format!("{:.3e}", train(&windows, &settings, 5).1)
        });
        assert_eq!(errors, ["9.519e-1", "2.414e-1", "1.088e0"]);
    }
}

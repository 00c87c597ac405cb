//! What is left of a window of one metric once it went through a few numbers?
//!
//! A variational autoencoder (Kingma and Welling 2014) of the size that Minder prints: an LSTM of four cells reads eight seconds, two linear maps give
//! mean and logarithm of the variance of eight latent numbers, an LSTM of four cells that is shown the latent numbers in every second
//! writes eight seconds. The reconstruction is the embedding. The loss is the mean squared error plus `beta` times the Kullback-Leibler
//! divergence from independent standard normals.

use serde::{Deserialize, Serialize};

use super::lstm::{GATES, HIDDEN, RECURRENT, State, Step, back, step};
use muster_analysis::Chance;

/// Seconds of a window.
pub const WIDTH: usize = 8;
/// Latent numbers.
pub(super) const LATENT: usize = 8;

/// Weights of a linear map with its biases, after the inputs of each row.
const READ: usize = GATES * 2;
const MAP: usize = LATENT * (HIDDEN + 1);
const SHOWN: usize = GATES * (LATENT + 1);
const WRITE: usize = HIDDEN + 1;
/// Weights of all parts, in this order: what the reader's gates take from a second, and from the state before; means; log variances; what the writer's
/// gates take from the latent numbers, and from the state before; the second that is written.
const PARTS: [usize; 7] = [READ, RECURRENT, MAP, MAP, SHOWN, RECURRENT, WRITE];
/// Weights of the network.
pub const PARAMETERS: usize = READ + 2 * RECURRENT + 2 * MAP + SHOWN + WRITE;

/// The network of one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct Vae {
    weights: Vec<f64>,
}

/// Largest weight that is believed of a stored network.
const LARGEST: f64 = 1e6;

impl TryFrom<Vec<f64>> for Vae {
    type Error = String;

    fn try_from(weights: Vec<f64>) -> Result<Self, String> {
        match weights.len() {
            PARAMETERS if weights.iter().all(|weight| weight.abs() <= LARGEST) => Ok(Self { weights }),
            PARAMETERS => Err("a weight is no number, or larger than any that is learned".to_owned()),
            count => Err(format!("the network has {count} weights and needs {PARAMETERS}")),
        }
    }
}

impl From<Vae> for Vec<f64> {
    fn from(vae: Vae) -> Self {
        vae.weights
    }
}

/// Everything between a window and its reconstruction.
struct Pass {
    read: [Step; WIDTH],
    mean: [f64; LATENT],
    log_variance: [f64; LATENT],
    latent: [f64; LATENT],
    write: [Step; WIDTH],
    written: [f64; WIDTH],
}

/// The parts of all weights, or of a gradient.
fn parts(weights: &[f64]) -> [&[f64]; 7] {
    let mut rest = weights;
    PARTS.map(|count| {
        let (part, after) = rest.split_at(count);
        rest = after;
        part
    })
}

fn parts_mut(weights: &mut [f64]) -> [&mut [f64]; 7] {
    let mut rest = weights;
    PARTS.map(|count| {
        let (part, after) = std::mem::take(&mut rest).split_at_mut(count);
        rest = after;
        part
    })
}

/// A row of `inputs` and a bias for each output.
fn linear<const OUT: usize>(rows: &[f64], inputs: &[f64]) -> [f64; OUT] {
    let width = inputs.len() + 1;
    std::array::from_fn(|at| {
        let (row, bias) = rows[at * width..(at + 1) * width].split_at(inputs.len());
        bias[0] + row.iter().zip(inputs).map(|(w, x)| w * x).sum::<f64>()
    })
}

/// The gradient of [`linear`] by its rows, added to `rows_by`; that by its inputs.
fn linear_back<const IN: usize>(rows: &[f64], inputs: &[f64; IN], by: &[f64], rows_by: &mut [f64]) -> [f64; IN] {
    let mut inputs_by = [0.0; IN];
    for (out, by) in by.iter().enumerate() {
        let from = out * (IN + 1);
        for at in 0..IN {
            inputs_by[at] += by * rows[from + at];
            rows_by[from + at] += by * inputs[at];
        }
        rows_by[from + IN] += by;
    }
    inputs_by
}

impl Vae {
    /// A network that has learned nothing: weights uniform within one over the root of the inputs, and gates that forget nothing yet.
    #[must_use]
    pub fn new(chance: &mut Chance) -> Self {
        let mut weights = vec![0.0; PARAMETERS];
        let inputs = [HIDDEN, HIDDEN, HIDDEN, HIDDEN, LATENT, HIDDEN, HIDDEN];
        for (part, inputs) in parts_mut(&mut weights).into_iter().zip(inputs) {
            let most = 1.0 / (inputs as f64).sqrt();
            part.iter_mut().for_each(|weight| *weight = chance.between(-most, most));
        }
        let [read, _, _, _, shown, ..] = parts_mut(&mut weights);
        for (rows, width) in [(read, 2), (shown, LATENT + 1)] {
            rows.chunks_exact_mut(width).skip(HIDDEN).take(HIDDEN).for_each(|row| row[width - 1] = 1.0);
        }
        Self { weights }
    }

    /// The window as the network gives it back, by the means of the latent numbers.
    #[must_use]
    pub fn reconstruct(&self, window: &[f64; WIDTH]) -> [f64; WIDTH] {
        self.pass(window, &[0.0; LATENT]).written
    }

    /// All weights.
    pub(super) fn weights_mut(&mut self) -> &mut [f64] {
        &mut self.weights
    }

    /// Reads a window, draws the latent numbers with `noise` (standard normal; zeros give the means), and writes.
    fn pass(&self, window: &[f64; WIDTH], noise: &[f64; LATENT]) -> Pass {
        let [read_in, read_on, means, variances, shown, write_on, write_out] = parts(&self.weights);
        let mut before = State::default();
        let read = window.map(|second| {
            let now = step(&linear(read_in, &[second]), read_on, &before);
            before = now.state;
            now
        });
        let mean: [f64; LATENT] = linear(means, &before.hidden);
        let log_variance: [f64; LATENT] = linear(variances, &before.hidden);
        let latent = std::array::from_fn(|at| mean[at] + noise[at] * (0.5 * log_variance[at]).exp());
        let inputs = linear(shown, &latent);
        before = State::default();
        let write = [(); WIDTH].map(|()| {
            let now = step(&inputs, write_on, &before);
            before = now.state;
            now
        });
        let written = write.map(|now| linear::<1>(write_out, &now.state.hidden)[0]);
        Pass { read, mean, log_variance, latent, write, written }
    }

    /// Loss of a window with that noise and weight of the divergence, and its mean squared error; the gradient is added to `gradient`.
    pub(super) fn learn(
        &self,
        window: &[f64; WIDTH],
        noise: &[f64; LATENT],
        beta: f64,
        gradient: &mut [f64],
    ) -> (f64, f64) {
        let pass = self.pass(window, noise);
        let off: [f64; WIDTH] = std::array::from_fn(|at| pass.written[at] - window[at]);
        let error = off.iter().map(|off| off * off).sum::<f64>() / WIDTH as f64;
        let divergence: f64 = (0..LATENT)
            .map(|at| 0.5 * (pass.mean[at].powi(2) + pass.log_variance[at].exp() - 1.0 - pass.log_variance[at]))
            .sum();
        let [read_in, read_on, means, variances, shown, write_on, write_out] = parts(&self.weights);
        let [read_in_by, read_on_by, means_by, variances_by, shown_by, write_on_by, write_out_by] = parts_mut(gradient);
        let mut inputs_by = [0.0; GATES];
        let mut by = State::default();
        for at in (0..WIDTH).rev() {
            let second_by = [2.0 * off[at] / WIDTH as f64];
            let hidden = linear_back(write_out, &pass.write[at].state.hidden, &second_by, write_out_by);
            by.hidden.iter_mut().zip(hidden).for_each(|(sum, one)| *sum += one);
            let before = if at > 0 { pass.write[at - 1].state } else { State::default() };
            let gates = back(write_on, &before, &pass.write[at], &mut by, write_on_by);
            inputs_by.iter_mut().zip(gates).for_each(|(sum, one)| *sum += one);
        }
        let latent_by = linear_back(shown, &pass.latent, &inputs_by, shown_by);
        let mean_by: [f64; LATENT] = std::array::from_fn(|at| latent_by[at] + beta * pass.mean[at]);
        let variance_by: [f64; LATENT] = std::array::from_fn(|at| {
            let variance = pass.log_variance[at];
            0.5 * (latent_by[at] * noise[at] * (0.5 * variance).exp() + beta * (variance.exp() - 1.0))
        });
        let last = pass.read[WIDTH - 1].state.hidden;
        let hidden =
            [linear_back(means, &last, &mean_by, means_by), linear_back(variances, &last, &variance_by, variances_by)];
        by = State { hidden: std::array::from_fn(|at| hidden[0][at] + hidden[1][at]), ..State::default() };
        for at in (0..WIDTH).rev() {
            let before = if at > 0 { pass.read[at - 1].state } else { State::default() };
            let gates = back(read_on, &before, &pass.read[at], &mut by, read_on_by);
            linear_back(read_in, &[window[at]], &gates, read_in_by);
        }
        (error + beta * divergence, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn<const N: usize>(chance: &mut Chance) -> [f64; N] {
        std::array::from_fn(|_| chance.normal())
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences() {
        let mut chance = Chance::new(4);
        for beta in [0.0, 0.3] {
            let vae = Vae::new(&mut chance);
            let (window, noise) = (drawn(&mut chance), drawn(&mut chance));
            let mut gradient = vec![0.0; PARAMETERS];
            vae.learn(&window, &noise, beta, &mut gradient);
            let mut largest: f64 = 0.0;
            for (at, found) in gradient.iter().enumerate() {
                let loss = |by: f64| {
                    let mut moved = vae.clone();
                    moved.weights[at] += by;
                    moved.learn(&window, &noise, beta, &mut vec![0.0; PARAMETERS]).0
                };
                let expected = (loss(1e-4) - loss(-1e-4)) / 2e-4;
                // The curve of a gate is 4e-5 from the function whose slope the gradient takes.
                let off = (found - expected).abs();
                assert!(off < 1e-4 * (1.0 + expected.abs()), "{at}: {found} {expected}");
                largest = largest.max(expected.abs());
            }
            assert!(largest > 0.1, "{largest}");
        }
    }

    #[test]
    fn a_stored_network_of_another_size_or_with_absurd_weights_is_refused() {
        let vae = Vae::new(&mut Chance::new(1));
        let text = serde_json::to_string(&vae).unwrap();
        assert_eq!(serde_json::from_str::<Vae>(&text).unwrap(), vae);
        assert!(serde_json::from_str::<Vae>("[1.0, 2.0]").unwrap_err().to_string().contains("has 2 weights"));
        let mut weights: Vec<f64> = vae.into();
        weights[3] = 1e9;
        assert!(Vae::try_from(weights).unwrap_err().contains("larger than any"));
    }

    #[test]
    fn a_new_network_has_small_weights_and_gates_that_forget_nothing_yet() {
        let vae = Vae::new(&mut Chance::new(8));
        let [read, read_on, means, variances, shown, write_on, write_out] = parts(&vae.weights);
        assert_eq!([read.len(), read_on.len(), means.len(), variances.len()], [32, 64, 40, 40]);
        assert_eq!([shown.len(), write_on.len(), write_out.len(), PARAMETERS], [144, 64, 5, 389]);
        let forget = |rows: &[f64], width: usize, gate: usize| rows[gate * width + width - 1];
        for gate in 0..GATES {
            let is_forget = (HIDDEN..2 * HIDDEN).contains(&gate);
            assert_eq!((forget(read, 2, gate) == 1.0, forget(shown, 9, gate) == 1.0), (is_forget, is_forget), "{gate}");
        }
        let others = [(read_on, 0.5), (means, 0.5), (variances, 0.5), (write_on, 0.5), (write_out, 0.5)];
        for (part, most) in others {
            assert!(part.iter().all(|weight| weight.abs() <= most), "{part:?}");
            assert!(part.iter().any(|weight| *weight < 0.0) && part.iter().any(|weight| *weight > 0.0));
        }
        let inputs: Vec<f64> = shown.chunks_exact(9).flat_map(|row| row[..8].to_vec()).collect();
        assert!(
            inputs.iter().all(|weight| weight.abs() <= 1.0 / 8.0_f64.sqrt())
                && inputs.iter().any(|weight| weight.abs() > 0.3)
        );
    }

    #[test]
    fn the_loss_is_the_mean_squared_error_and_so_much_of_the_divergence() {
        let mut chance = Chance::new(6);
        let vae = Vae::new(&mut chance);
        let (window, noise): ([f64; WIDTH], [f64; LATENT]) = (drawn(&mut chance), drawn(&mut chance));
        let pass = vae.pass(&window, &noise);
        for (at, noise) in noise.iter().enumerate() {
            let drawn = pass.mean[at] + noise * pass.log_variance[at].exp().sqrt();
            assert!((pass.latent[at] - drawn).abs() < 1e-12);
        }
        let error = (0..WIDTH).map(|at| (pass.written[at] - window[at]).powi(2)).sum::<f64>() / 8.0;
        // Kullback and Leibler's divergence of a normal law from the standard one.
        let one = |at: usize| (pass.log_variance[at].exp() + pass.mean[at].powi(2) - 1.0 - pass.log_variance[at]) / 2.0;
        let divergence: f64 = (0..LATENT).map(one).sum();
        let found = vae.learn(&window, &noise, 0.3, &mut vec![0.0; PARAMETERS]);
        assert!((found.0 - error - 0.3 * divergence).abs() < 1e-12 && (found.1 - error).abs() < 1e-12);
        let again = vae.pass(&window, &[0.0; LATENT]);
        assert_eq!((again.latent, vae.reconstruct(&window)), (again.mean, again.written));
    }

    #[test]
    fn the_largest_weight_that_is_learned_is_a_million_and_none_is_no_number() {
        let with = |weight: f64| {
            let mut weights = vec![0.0; PARAMETERS];
            weights[7] = weight;
            Vae::try_from(weights).is_ok()
        };
        assert!(with(1e6) && with(-1e6) && !with(1.1e6) && !with(f64::NAN));
        assert!(Vae::try_from(vec![0.0; PARAMETERS + 1]).unwrap_err().contains("has 390 weights and needs 389"));
    }
}

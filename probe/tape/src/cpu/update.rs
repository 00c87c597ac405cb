//! Optimisers: weights after a step.

use crate::number::Number;

use super::element::chunk;
use super::memory::Io;

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPSILON: f64 = 1e-8;
const MOMENTUM: f64 = 0.9;

pub(super) fn adamw<T: Number>(io: &Io<'_, T>, (rate, decay): (f64, f64), part: usize) {
    let range = chunk(io.op.writes[0].len, part);
    let gradient = &io.read(0)[range.clone()];
    let (weights, first, second) = (io.write(0, range.clone()), io.write(1, range.clone()), io.write(2, range));
    // Powers by multiplication: `powi` may be anything.
    let power = |base: f64| (0..=io.step.min(100_000)).fold(1.0, |power, _| power * base);
    let scale1 = T::of(1.0 / (1.0 - power(BETA1)));
    let scale2 = T::of(1.0 / (1.0 - power(BETA2)));
    let (rate, shrink, tiny) = (T::of(rate), T::of(1.0 - rate * decay), T::of(EPSILON));
    let (b1, b2) = (T::of(BETA1), T::of(BETA2));
    let (a1, a2) = (T::of(1.0 - BETA1), T::of(1.0 - BETA2));
    for (((w, m), v), g) in weights.iter_mut().zip(first).zip(second).zip(gradient) {
        *m = b1 * *m + a1 * *g;
        *v = b2 * *v + a2 * *g * *g;
        *w = *w * shrink - rate * (*m * scale1) / ((*v * scale2).sqrt() + tiny);
    }
}

pub(super) fn nesterov<T: Number>(io: &Io<'_, T>, (rate, decay): (f64, f64), part: usize) {
    let range = chunk(io.op.writes[0].len, part);
    let gradient = &io.read(0)[range.clone()];
    let (weights, velocity) = (io.write(0, range.clone()), io.write(1, range));
    let (rate, decay, momentum) = (T::of(rate), T::of(decay), T::of(MOMENTUM));
    for ((w, v), g) in weights.iter_mut().zip(velocity).zip(gradient) {
        let g = *g + decay * *w;
        *v = momentum * *v + g;
        *w = *w - rate * (g + momentum * *v);
    }
}

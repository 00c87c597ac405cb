//! Layers that go through a sequence step by step.

use crate::op::{Gemm, Kind, Start};
use crate::random::Fill;

use super::builder::{Builder, Tensor};
use super::layers::{product, spread};

/// Sizes of an LSTM layer. Sequences lie step by step: rows of step 0 first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recurrent {
    pub(crate) seq: usize,
    pub(crate) batch: usize,
    pub(crate) inputs: usize,
    pub(crate) hidden: usize,
}

/// Buffers that the way back needs.
#[derive(Clone, Copy)]
struct Passed {
    x: Tensor,
    /// Weights of the input, of the hidden state, and the bias.
    weights: [Tensor; 3],
    /// Hidden states, cells and activated gates of all steps.
    states: [Tensor; 3],
    /// Zeros, the size of a state.
    nothing: Tensor,
}

impl Recurrent {
    const fn state(&self) -> usize {
        self.batch * self.hidden
    }

    /// Step `t` of a buffer with `width` elements a hidden unit.
    fn step(&self, tensor: Tensor, t: usize, width: usize) -> Tensor {
        tensor.part(t * self.state() * width, self.state() * width)
    }

    /// The last hidden state.
    pub(crate) fn last(&self, b: &mut Builder, states: Tensor) -> Tensor {
        let last = self.step(states, self.seq - 1, 1);
        let y = b.buffer(last.len);
        b.op(Kind::Copy, &[last], &[y]);
        let sizes = *self;
        b.on_the_way_back(move |b| {
            let Some(dy) = b.gradient(y) else { return };
            let all = b.gathered(states);
            b.op(Kind::Copy, &[dy], &[sizes.step(all, sizes.seq - 1, 1)]);
        });
        y
    }

    /// One layer; its hidden states of all steps.
    pub(crate) fn layer(&self, b: &mut Builder, name: &str, x: Tensor) -> Tensor {
        let (rows, wide) = (self.seq * self.batch, 4 * self.hidden);
        let spread = spread((1.0 / (3.0 * self.hidden as f64)).sqrt());
        let of_input = b.weight(format!("{name} input weights"), self.inputs * wide, spread);
        let of_state = b.weight(format!("{name} state weights"), self.hidden * wide, spread);
        let bias = b.weight(format!("{name} bias"), wide, Fill::Zero);
        let nothing = b.data(format!("{name} first state"), self.state(), Fill::Zero);
        let gates = b.buffer(rows * wide);
        let states = [b.buffer(rows * self.hidden), b.buffer(rows * self.hidden), b.buffer(rows * wide)];
        let kind = Kind::Gemm(Gemm { start: Start::Bias, ..product(rows, wide, self.inputs) });
        b.op(kind, &[x, of_input, bias], &[gates]);
        let [hidden, cells, active] = states;
        for t in 0..self.seq {
            let gates = self.step(gates, t, 4);
            let mut before = nothing;
            if t > 0 {
                let kind = Kind::Gemm(Gemm { start: Start::Add, ..product(self.batch, wide, self.hidden) });
                b.op(kind, &[self.step(hidden, t - 1, 1), of_state], &[gates]);
                before = self.step(cells, t - 1, 1);
            }
            let results = [self.step(hidden, t, 1), self.step(cells, t, 1), self.step(active, t, 4)];
            b.op(Kind::LstmCell { hidden: self.hidden }, &[gates, before], &results);
        }
        let passed = Passed { x, weights: [of_input, of_state, bias], states, nothing };
        let sizes = *self;
        b.on_the_way_back(move |b| sizes.backward(b, &passed));
        hidden
    }

    fn backward(&self, b: &mut Builder, passed: &Passed) {
        let [hidden, cells, active] = passed.states;
        let [of_input, of_state, bias] = passed.weights;
        let (rows, wide) = (self.seq * self.batch, 4 * self.hidden);
        let d_hidden = b.gathered(hidden);
        let d_gates = b.buffer(rows * wide);
        let mut d_cell = passed.nothing;
        for t in (0..self.seq).rev() {
            let before = if t > 0 { self.step(cells, t - 1, 1) } else { passed.nothing };
            let d_before = b.buffer(self.state());
            let reads = [self.step(active, t, 4), before, self.step(cells, t, 1), self.step(d_hidden, t, 1), d_cell];
            let results = [self.step(d_gates, t, 4), d_before];
            b.op(Kind::LstmCellBackward { hidden: self.hidden }, &reads, &results);
            d_cell = d_before;
            if t > 0 {
                let to_state = Gemm { b_transposed: true, start: Start::Add, ..product(self.batch, self.hidden, wide) };
                b.op(Kind::Gemm(to_state), &[results[0], of_state], &[self.step(d_hidden, t - 1, 1)]);
            }
        }
        let db = b.buffer(wide);
        b.op(Kind::ColumnSum { rows, columns: wide }, &[d_gates], &[db]);
        b.give(bias, db);
        let later = (self.seq - 1) * self.batch;
        let dw = b.buffer(of_state.len);
        let kind = Kind::Gemm(Gemm { a_transposed: true, ..product(self.hidden, wide, later) });
        let (states, gates) = (hidden.part(0, later * self.hidden), d_gates.part(self.state() * 4, later * wide));
        b.op(kind, &[states, gates], &[dw]);
        b.give(of_state, dw);
        b.product_backward((passed.x, of_input), d_gates, (rows, wide, self.inputs));
    }
}

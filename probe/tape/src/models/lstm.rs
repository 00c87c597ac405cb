//! A stack of LSTM layers that classifies sequences, as SuperBench trains it (one bias a layer: a second would have the
//! same gradient).

use crate::build::{Builder, Optimiser, Recurrent};
use crate::random::Fill;
use crate::tape::Tape;

/// Sizes of a stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lstm {
    pub(super) layers: usize,
    pub(super) inputs: usize,
    pub(super) hidden: usize,
    pub(super) classes: usize,
    pub(super) seq: usize,
    pub(super) batch: usize,
}

impl Lstm {
    pub(super) const NANO: Self = Self { layers: 2, inputs: 24, hidden: 48, classes: 10, seq: 12, batch: 4 };
    pub(super) const FULL: Self = Self { layers: 8, inputs: 224, hidden: 1000, classes: 100, seq: 32, batch: 8 };

    pub(super) fn tape(&self, optimiser: Optimiser) -> Tape {
        let Self { hidden, seq, batch, .. } = *self;
        let mut b = Builder::new(batch);
        let mut x = b.data("sequences", seq * batch * self.inputs, Fill::Uniform { bound: 1.0 });
        let classes = b.data("classes", batch, Fill::Index { below: self.classes as u32 });
        let mut sizes = Recurrent { seq, batch, inputs: self.inputs, hidden };
        for layer in 0..self.layers {
            x = sizes.layer(&mut b, &format!("layer {layer}"), x);
            sizes.inputs = hidden;
        }
        let last = sizes.last(&mut b, x);
        let logits = b.linear("classifier", last, (hidden, self.classes), false);
        let loss = b.cross_entropy(logits, classes, batch);
        b.finish(loss, optimiser)
    }
}

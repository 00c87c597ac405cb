//! What a step is: a flat list of operations over one memory, and what that memory holds at first.

use crate::op::{Kind, Op, Span};
use crate::random::Fill;

/// A training step of one model: forward, backward and update. Any back end can run it.
#[derive(Clone, Debug)]
pub struct Tape {
    /// In order.
    pub ops: Vec<Op>,
    /// Elements of memory in all.
    pub memory: usize,
    /// What outlives a step: weights, the optimiser's moments, data.
    pub state: Vec<State>,
    /// Where the loss of a step stands.
    pub loss: Span,
    /// Trained numbers of the model.
    pub parameters: usize,
    /// Tokens or samples of one step.
    pub items: usize,
    /// The first operation that only updates a weight, where these come last and gradients stay until then.
    pub updates: Option<usize>,
}

/// A buffer that is filled before the first step and outlives steps.
#[derive(Clone, Debug)]
pub struct State {
    /// What it is, such as `layer 3 attention weights`.
    pub name: String,
    /// Where it lies.
    pub span: Span,
    /// What it holds before the first step.
    pub fill: Fill,
    /// Where its gradient stands after a step, where that was asked for.
    pub gradient: Option<Span>,
}

impl Tape {
    /// Multiplications and additions of all matrix products of a step.
    #[must_use]
    pub fn product_flops(&self) -> f64 {
        let of = |op: &Op| match op.kind {
            Kind::Gemm(g) => 2.0 * g.m as f64 * g.n as f64 * g.k as f64,
            _ => 0.0,
        };
        self.ops.iter().map(of).sum()
    }
}

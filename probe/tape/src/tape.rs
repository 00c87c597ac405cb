//! What a step is: a flat list of operations over one memory, and what that memory holds at first.

use crate::op::{Gemm, Kind, Op, Span};
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

impl State {
    /// Whether a batch is made of it. To be asked of tapes whose gradients stay only: elsewhere weights look alike.
    #[must_use]
    pub const fn is_data(&self) -> bool {
        self.gradient.is_none() && self.fill.is_drawn()
    }
}

/// Gradients that lie one behind the other and are summed over all replicas together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// From the first gradient to the end of the last; no more than [`GAP`](crate::GAP) elements between two of them.
    pub span: Span,
    /// As many operations of a step have to be done first; none of the others touches it before the updates.
    pub after: usize,
}

impl Tape {
    /// The gradients in the order in which a step comes to them, in buckets of up to `most` elements, or of one gradient that is
    /// longer. Empty where gradients do not stay until the updates.
    #[must_use]
    pub fn buckets(&self, most: usize) -> Vec<Bucket> {
        let updates = self.updates.unwrap_or(0);
        let mut spans: Vec<Span> = self.state.iter().filter_map(|state| state.gradient).collect();
        spans.sort_unstable();
        let ready = |span: Span| {
            let touches =
                |op: &Op| op.reads.iter().chain(&op.writes).any(|of| of.offset < span.end() && span.offset < of.end());
            self.ops[..updates].iter().rposition(touches).map_or(0, |last| last + 1)
        };
        let mut buckets: Vec<Bucket> = Vec::new();
        for span in spans {
            let after = ready(span);
            match buckets.last_mut() {
                Some(Bucket { span: of, after: first }) if span.end() - of.offset <= most => {
                    (of.len, *first) = (span.end() - of.offset, (*first).max(after));
                }
                _ => buckets.push(Bucket { span, after }),
            }
        }
        buckets
    }

    /// Multiplications and additions of all matrix products of a step.
    #[must_use]
    pub fn product_flops(&self) -> f64 {
        let of = |op: &Op| match op.kind {
            Kind::Gemm(gemm) => Some(gemm),
            Kind::Convolve(of) | Kind::ConvolveBack(of) | Kind::ConvolveFilter(of) => Some(of.product()),
            _ => None,
        };
        let flops = |g: Gemm| 2.0 * g.m as f64 * g.n as f64 * g.k as f64;
        self.ops.iter().filter_map(of).map(flops).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GAP, Model, Size};

    /// Nano models, and some large ones at a size that costs little.
    fn tapes() -> impl Iterator<Item = (Model, Tape)> {
        let nano = Model::ALL.into_iter().filter(|model| model.name().ends_with("-nano"));
        let large = [Model::Gpt2Small, Model::BertBase, Model::Resnet50, Model::Densenet169, Model::Vgg11, Model::Lstm];
        let small = |model: Model| (model, model.parallel_sized(Size { batch: 1, seq: 8 }));
        nano.map(|model| (model, model.parallel_tape())).chain(large.into_iter().map(small))
    }

    #[test]
    fn every_gradient_is_in_one_bucket_and_nobody_touches_it_between_the_two_turns() {
        for (model, tape) in tapes() {
            let gradients: Vec<Span> = tape.state.iter().filter_map(|state| state.gradient).collect();
            let all = gradients.iter().map(|span| span.len).sum::<usize>();
            for most in [1, all / 5, usize::MAX] {
                let buckets = tape.buckets(most);
                let within = |of: &Span, bucket: &Span| bucket.offset <= of.offset && of.end() <= bucket.end();
                for gradient in &gradients {
                    let found = buckets.iter().filter(|bucket| within(gradient, &bucket.span)).count();
                    assert_eq!(found, 1, "{}", model.name());
                }
                for bucket in &buckets {
                    // As far as it may reach when it is cut into parts for many replicas.
                    let reach = Span { len: bucket.span.len + GAP, ..bucket.span };
                    let apart = |of: &Span| of.end() <= reach.offset || reach.end() <= of.offset;
                    let later = &tape.ops[bucket.after..tape.updates.unwrap()];
                    assert!(later.iter().all(|op| op.reads.iter().chain(&op.writes).all(apart)), "{}", model.name());
                    assert!(bucket.span.len <= most || gradients.contains(&bucket.span), "{}", model.name());
                    let held: usize = gradients.iter().filter(|of| within(of, &bucket.span)).map(|of| of.len).sum();
                    let holes = gradients.iter().filter(|of| within(of, &bucket.span)).count() * (GAP + 16);
                    assert!(bucket.span.len <= held + holes, "{}", model.name());
                }
                assert!(buckets.is_sorted_by_key(|bucket| bucket.after), "{}", model.name());
                assert!(
                    buckets.windows(2).all(|two| two[0].span.end() + GAP <= two[1].span.offset),
                    "{}",
                    model.name()
                );
            }
            assert!(model.tape().buckets(usize::MAX).is_empty(), "nothing stays there until the updates");
        }
    }

    #[test]
    fn most_of_a_step_is_still_to_be_done_when_the_first_bucket_is_full() {
        for (model, tape) in tapes() {
            let buckets = tape.buckets(tape.parameters / 5);
            let (first, updates) = (buckets[0].after, tape.updates.unwrap());
            assert!(buckets.len() > 1 && first < updates, "{}: {buckets:?} of {updates}", model.name());
        }
    }
}

//! GPT-2 (Radford et al. 2019): decoder, layer norm first, output weights tied to the token table.

use crate::build::{Builder, Optimiser, spread};
use crate::op::Heads;
use crate::random::Fill;
use crate::tape::Tape;

/// Sizes of a GPT-2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gpt2 {
    pub(super) layers: usize,
    pub(super) heads: usize,
    pub(super) width: usize,
    pub(super) vocabulary: usize,
    /// Rows of the table of positions; sequences may be shorter.
    pub(super) positions: usize,
    pub(super) seq: usize,
    pub(super) batch: usize,
}

impl Gpt2 {
    pub(super) const NANO: Self =
        Self { layers: 2, heads: 4, width: 64, vocabulary: 256, positions: 64, seq: 32, batch: 2 };
    pub(super) const SMALL: Self =
        Self { layers: 12, heads: 12, width: 768, vocabulary: 50_257, positions: 1024, seq: 128, batch: 1 };
    pub(super) const LARGE: Self = Self { layers: 36, heads: 20, width: 1280, ..Self::SMALL };

    pub(super) fn tape(&self, optimiser: Optimiser) -> Tape {
        let (width, tokens) = (self.width, self.batch * self.seq);
        let mut b = Builder::new(tokens);
        let numbers = b.data("tokens", tokens, Fill::Index { below: self.vocabulary as u32 });
        let places = b.data("positions", tokens, Fill::Cycle { period: self.seq as u32 });
        let next = b.data("next tokens", tokens, Fill::Index { below: self.vocabulary as u32 });
        let table = b.weight("token table", self.vocabulary * width, spread(0.02));
        let positions = b.weight("position table", self.positions * width, spread(0.01));
        let (of_token, of_place) = (b.embedding(numbers, table, width), b.embedding(places, positions, width));
        let mut x = b.add(of_token, of_place);
        let heads =
            Heads { batch: self.batch, seq: self.seq, heads: self.heads, width: width / self.heads, causal: true };
        for layer in 0..self.layers {
            let name = |part: &str| format!("layer {layer} {part}");
            let normal = b.layer_norm(&name("first norm"), x, width);
            let attended = b.attention(&name("attention"), normal, heads);
            x = b.add(x, attended);
            let normal = b.layer_norm(&name("second norm"), x, width);
            let wide = b.linear(&name("expansion"), normal, (width, 4 * width), true);
            let narrow = b.linear(&name("contraction"), wide, (4 * width, width), false);
            x = b.add(x, narrow);
        }
        let normal = b.layer_norm("last norm", x, width);
        let logits = b.tied(normal, (table, None), width);
        let loss = b.cross_entropy(logits, next, tokens);
        b.finish(loss, optimiser)
    }
}

//! BERT (Devlin et al. 2019) learning masked tokens: encoder, layer norm last, output weights tied to the token table.

use crate::build::{Builder, Optimiser, spread};
use crate::op::Heads;
use crate::random::Fill;
use crate::tape::Tape;

/// One token of so many is to be guessed.
const GUESSED: usize = 8;

/// Sizes of a BERT.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bert {
    pub(super) layers: usize,
    pub(super) heads: usize,
    pub(super) width: usize,
    pub(super) vocabulary: usize,
    /// Rows of the table of positions; sequences may be shorter.
    pub(super) positions: usize,
    pub(super) seq: usize,
    pub(super) batch: usize,
}

impl Bert {
    pub(super) const NANO: Self =
        Self { layers: 2, heads: 4, width: 64, vocabulary: 256, positions: 64, seq: 32, batch: 2 };
    pub(super) const BASE: Self =
        Self { layers: 12, heads: 12, width: 768, vocabulary: 30_522, positions: 512, seq: 128, batch: 1 };
    pub(super) const LARGE: Self = Self { layers: 24, heads: 16, width: 1024, ..Self::BASE };

    pub(super) fn tape(&self, optimiser: Optimiser) -> Tape {
        let (width, tokens) = (self.width, self.batch * self.seq);
        let mut b = Builder::new(tokens);
        let below = self.vocabulary as u32;
        let right = b.data("guessed tokens", tokens, Fill::Sparse { below, every: GUESSED as u32 });
        let table = b.weight("token table", self.vocabulary * width, spread(0.02));
        let mut x = self.embedded(&mut b, table);
        let heads =
            Heads { batch: self.batch, seq: self.seq, heads: self.heads, width: width / self.heads, causal: false };
        for layer in 0..self.layers {
            let name = |part: &str| format!("layer {layer} {part}");
            let attended = b.attention(&name("attention"), x, heads);
            let sum = b.add(x, attended);
            let normal = b.layer_norm(&name("attention norm"), sum, width);
            let wide = b.linear(&name("expansion"), normal, (width, 4 * width), true);
            let narrow = b.linear(&name("contraction"), wide, (4 * width, width), false);
            let sum = b.add(normal, narrow);
            x = b.layer_norm(&name("last norm"), sum, width);
        }
        let dense = b.linear("head", x, (width, width), true);
        let normal = b.layer_norm("head norm", dense, width);
        let bias = b.weight("token bias", self.vocabulary, Fill::Zero);
        let logits = b.tied(normal, (table, Some(bias)), width);
        let loss = b.cross_entropy(logits, right, tokens / GUESSED);
        b.finish(loss, optimiser)
    }

    /// Tokens, positions and sentences, summed and normalised.
    fn embedded(&self, b: &mut Builder, table: crate::build::Tensor) -> crate::build::Tensor {
        let (width, tokens) = (self.width, self.batch * self.seq);
        let numbers = b.data("tokens", tokens, Fill::Index { below: self.vocabulary as u32 });
        let places = b.data("positions", tokens, Fill::Cycle { period: self.seq as u32 });
        let sentences = b.data("sentences", tokens, Fill::Index { below: 2 });
        let positions = b.weight("position table", self.positions * width, spread(0.02));
        let kinds = b.weight("sentence table", 2 * width, spread(0.02));
        let (of_token, of_place) = (b.embedding(numbers, table, width), b.embedding(places, positions, width));
        let of_sentence = b.embedding(sentences, kinds, width);
        let sum = b.add(of_token, of_place);
        let sum = b.add(sum, of_sentence);
        b.layer_norm("embedding norm", sum, width)
    }
}

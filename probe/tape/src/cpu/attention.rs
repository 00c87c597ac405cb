//! Self-attention. The backward pass computes the probabilities again from the kept softmax denominators, so that
//! no matrix of seq x seq outlives an operation (Dao et al., "FlashAttention", 2022).

use crate::number::{Number, axpy, dot, sum};
use crate::op::Heads;

use super::gemm::Scratch;
use super::memory::Io;

/// Rows of a part.
const ROWS: usize = 16;

impl Heads {
    pub(super) const fn parts(&self) -> usize {
        self.batch * self.heads * self.seq.div_ceil(ROWS)
    }

    /// Where a token's query (`which` 0), key (1) or value (2) starts.
    const fn at(&self, batch: usize, head: usize, token: usize, which: usize) -> usize {
        let row = self.heads * self.width;
        (batch * self.seq + token) * 3 * row + which * row + head * self.width
    }

    /// Where a token's result starts.
    const fn out(&self, batch: usize, head: usize, token: usize) -> usize {
        (batch * self.seq + token) * self.heads * self.width + head * self.width
    }

    /// Tokens that `token` sees.
    const fn seen(&self, token: usize) -> usize {
        if self.causal { token + 1 } else { self.seq }
    }

    fn scale<T: Number>(&self) -> T {
        T::ONE / T::of(self.width as f64).sqrt()
    }
}

pub(super) fn forward<T: Number>(io: &Io<'_, T>, heads: &Heads, part: usize, scratch: &mut Scratch<T>) {
    let qkv = io.read(0);
    let blocks = heads.seq.div_ceil(ROWS);
    let (pair, block) = (part / blocks, part % blocks);
    let (batch, head) = (pair / heads.heads, pair % heads.heads);
    let of = |token: usize, which: usize| {
        let start = heads.at(batch, head, token, which);
        &qkv[start..start + heads.width]
    };
    for token in block * ROWS..heads.seq.min((block + 1) * ROWS) {
        let scores = &mut scratch.free;
        scores.clear();
        scores.extend((0..heads.seen(token)).map(|other| dot(of(token, 0), of(other, 1)) * heads.scale::<T>()));
        let most = scores.iter().copied().fold(scores[0], |a, b| if b > a { b } else { a });
        scores.iter_mut().for_each(|score| *score = (*score - most).exp());
        let total = sum(scores.len(), |i| scores[i]);
        let start = heads.out(batch, head, token);
        let out = io.write(0, start..start + heads.width);
        out.fill(T::ZERO);
        for (other, score) in scores.iter().enumerate() {
            axpy(*score / total, of(other, 2), out);
        }
        let at = pair * heads.seq + token;
        io.write(1, at..at + 1)[0] = most + total.ln();
    }
}

/// One part is one head of one sequence: keys and values gather gradients from all its tokens.
pub(super) fn backward<T: Number>(io: &Io<'_, T>, heads: &Heads, part: usize, scratch: &mut Scratch<T>) {
    let (qkv, out, log, gradient) = (io.read(0), io.read(1), io.read(2), io.read(3));
    let (batch, head) = (part / heads.heads, part % heads.heads);
    let width = heads.width;
    let of = |token: usize, which: usize| {
        let start = heads.at(batch, head, token, which);
        &qkv[start..start + width]
    };
    let area = heads.seq * width;
    scratch.free.clear();
    scratch.free.resize(3 * area, T::ZERO);
    let (dq, rest) = scratch.free.split_at_mut(area);
    let (dk, dv) = rest.split_at_mut(area);
    for token in 0..heads.seq {
        let start = heads.out(batch, head, token);
        let (out, gradient) = (&out[start..start + width], &gradient[start..start + width]);
        let inner = dot(out, gradient);
        let line = token * width..(token + 1) * width;
        for other in 0..heads.seen(token) {
            let lines = other * width..(other + 1) * width;
            let score = dot(of(token, 0), of(other, 1)) * heads.scale::<T>();
            let p = (score - log[part * heads.seq + token]).exp();
            let ds = p * (dot(gradient, of(other, 2)) - inner) * heads.scale::<T>();
            axpy(p, gradient, &mut dv[lines.clone()]);
            axpy(ds, of(other, 1), &mut dq[line.clone()]);
            axpy(ds, of(token, 0), &mut dk[lines]);
        }
    }
    for token in 0..heads.seq {
        for (which, from) in [&*dq, &*dk, &*dv].into_iter().enumerate() {
            let start = heads.at(batch, head, token, which);
            io.write(0, start..start + width).copy_from_slice(&from[token * width..(token + 1) * width]);
        }
    }
}

//! The cell of an LSTM (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000).

use std::ops::Range;

use crate::number::Number;

use super::memory::Io;

/// Elements of a part.
const CHUNK: usize = 256;

pub(super) fn parts(batch: usize, hidden: usize) -> usize {
    batch * hidden.div_ceil(CHUNK)
}

/// The sequence and the elements of a part.
fn of_part(hidden: usize, part: usize) -> (usize, Range<usize>) {
    let blocks = hidden.div_ceil(CHUNK);
    let start = part % blocks * CHUNK;
    (part / blocks, start..hidden.min(start + CHUNK))
}

pub(super) fn forward<T: Number>(io: &Io<'_, T>, hidden: usize, part: usize) {
    let (row, elements) = of_part(hidden, part);
    let (gates, before) = (io.read(0), io.read(1));
    let state = row * hidden + elements.start..row * hidden + elements.end;
    let (h, c) = (io.write(0, state.clone()), io.write(1, state.clone()));
    let before = &before[state];
    let gate = |number: usize| {
        let start = (row * 4 + number) * hidden;
        start + elements.start..start + elements.end
    };
    let active = [0, 1, 2, 3].map(|number| {
        let active = io.write(2, gate(number));
        for (y, x) in active.iter_mut().zip(&gates[gate(number)]) {
            *y = if number == 2 { x.tanh() } else { x.sigmoid() };
        }
        &*active
    });
    for at in 0..elements.len() {
        c[at] = active[1][at] * before[at] + active[0][at] * active[2][at];
        h[at] = active[3][at] * c[at].tanh();
    }
}

pub(super) fn backward<T: Number>(io: &Io<'_, T>, hidden: usize, part: usize) {
    let (row, elements) = of_part(hidden, part);
    let active = io.read(0);
    let state = row * hidden + elements.start..row * hidden + elements.end;
    let [before, c, dh, later] = [1, 2, 3, 4].map(|input| &io.read(input)[state.clone()]);
    let gate = |number: usize| {
        let start = (row * 4 + number) * hidden;
        start + elements.start..start + elements.end
    };
    let [i, f, g, o] = [0, 1, 2, 3].map(|number| &active[gate(number)]);
    let [di, df, dg, d_o] = [0, 1, 2, 3].map(|number| io.write(0, gate(number)));
    let d_before = io.write(1, state);
    for at in 0..elements.len() {
        let t = c[at].tanh();
        let dc = later[at] + dh[at] * o[at] * (T::ONE - t * t);
        di[at] = dc * g[at] * i[at] * (T::ONE - i[at]);
        df[at] = dc * before[at] * f[at] * (T::ONE - f[at]);
        dg[at] = dc * i[at] * (T::ONE - g[at] * g[at]);
        d_o[at] = dh[at] * t * o[at] * (T::ONE - o[at]);
        d_before[at] = dc * f[at];
    }
}

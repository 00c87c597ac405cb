//! Matrix products: tiles of C, their parts of A and B packed into panels for the innermost loop.

use std::ops::Range;

use crate::number::Number;
use crate::op::{Gemm, Start};

use super::element::gelu;
use super::isa::{Isa, TILE};
use super::memory::Io;

/// Inner dimension of a packed block.
const DEPTH: usize = 256;

/// A thread's own memory, used again by every operation.
#[derive(Debug)]
pub(super) struct Scratch<T> {
    isa: Isa,
    a: Vec<T>,
    b: Vec<T>,
    /// For operations other than products.
    pub(super) free: Vec<T>,
}

impl<T: Number> Scratch<T> {
    pub(super) const fn new(isa: Isa) -> Self {
        Self { isa, a: Vec::new(), b: Vec::new(), free: Vec::new() }
    }
}

/// A matrix in memory: lines (rows of A, columns of B) and the inner dimension, with the distances of neighbours.
struct Matrix<'a, T> {
    data: &'a [T],
    line: usize,
    inner: usize,
}

impl Gemm {
    /// Rows and columns of a part: large, and small enough for every thread to get some. No result depends on it.
    fn block(&self, threads: usize) -> (usize, usize) {
        let shapes = [(192, 512), (192, 256), (96, 256), (96, 128), (48, 128), (48, 64), (24, 32)];
        let enough = |shape: &&(usize, usize)| self.m.div_ceil(shape.0) * self.n.div_ceil(shape.1) >= 3 * threads;
        *if threads == 1 { &shapes[0] } else { shapes.iter().find(enough).unwrap_or(&(24, 32)) }
    }

    pub(super) fn parts(&self, threads: usize) -> usize {
        let (rows, columns) = self.block(threads);
        self.m.div_ceil(rows) * self.n.div_ceil(columns)
    }
}

pub(super) fn part<T: Number>(io: &Io<'_, T>, gemm: &Gemm, part: usize, scratch: &mut Scratch<T>) {
    let (rows, columns) = gemm.block(io.threads);
    let across = gemm.n.div_ceil(columns);
    let i = part / across * rows;
    let j = part % across * columns;
    let (rows, columns) = (i..gemm.m.min(i + rows), j..gemm.n.min(j + columns));
    let (line, inner) = if gemm.a_transposed { (1, gemm.m) } else { (gemm.k, 1) };
    let a = Matrix { data: io.read(0), line, inner };
    let (line, inner) = if gemm.b_transposed { (gemm.k, 1) } else { (1, gemm.n) };
    let b = Matrix { data: io.read(1), line, inner };
    let (tall, wide) = T::tile_shape(scratch.isa);
    for from in (0..gemm.k).step_by(DEPTH) {
        let depth = from..gemm.k.min(from + DEPTH);
        pack(&mut scratch.a, tall, &a, (rows.clone(), depth.clone()));
        pack(&mut scratch.b, wide, &b, (columns.clone(), depth.clone()));
        let block = Block { gemm, depth, rows: rows.clone(), columns: columns.clone() };
        block.multiply(io, scratch);
    }
}

/// Copies a block into panels of `width` lines and fills the last with zeros.
fn pack<T: Number>(
    panels: &mut Vec<T>,
    width: usize,
    matrix: &Matrix<'_, T>,
    (lines, depth): (Range<usize>, Range<usize>),
) {
    panels.clear();
    panels.resize(lines.len().div_ceil(width) * width * depth.len(), T::ZERO);
    for (panel, first) in panels.chunks_exact_mut(width * depth.len()).zip(lines.clone().step_by(width)) {
        let lines = first..lines.end.min(first + width);
        if matrix.inner == 1 {
            for (at, line) in lines.enumerate() {
                let start = line * matrix.line;
                let from = &matrix.data[start + depth.start..start + depth.end];
                panel[at..].iter_mut().step_by(width).zip(from).for_each(|(slot, x)| *slot = *x);
            }
        } else {
            for (row, k) in panel.chunks_exact_mut(width).zip(depth.clone()) {
                let start = k * matrix.inner;
                row[..lines.len()].copy_from_slice(&matrix.data[start + lines.start..start + lines.end]);
            }
        }
    }
}

/// A part of C and of the inner dimension.
struct Block<'a> {
    gemm: &'a Gemm,
    depth: Range<usize>,
    rows: Range<usize>,
    columns: Range<usize>,
}

impl Block<'_> {
    fn multiply<T: Number>(&self, io: &Io<'_, T>, scratch: &Scratch<T>) {
        let (tall, wide) = T::tile_shape(scratch.isa);
        let depth = self.depth.len();
        let last = self.depth.end == self.gemm.k;
        for (b, j) in scratch.b.chunks_exact(wide * depth).zip(self.columns.clone().step_by(wide)) {
            let columns = j..self.columns.end.min(j + wide);
            for (a, i) in scratch.a.chunks_exact(tall * depth).zip(self.rows.clone().step_by(tall)) {
                let rows = i..self.rows.end.min(i + tall);
                let mut sums = [T::ZERO; TILE];
                for (row, sums) in rows.clone().zip(sums.chunks_exact_mut(wide)) {
                    self.start(io, row, columns.clone(), sums);
                }
                T::tile(scratch.isa, a, b, &mut sums);
                for (row, sums) in rows.zip(sums.chunks_exact(wide)) {
                    let range = row * self.gemm.n + columns.start..row * self.gemm.n + columns.end;
                    let sums = &sums[..columns.len()];
                    io.write(0, range.clone()).copy_from_slice(sums);
                    if last && self.gemm.gelu {
                        io.write(1, range).iter_mut().zip(sums).for_each(|(y, x)| *y = gelu(*x));
                    }
                }
            }
        }
    }

    fn start<T: Number>(&self, io: &Io<'_, T>, row: usize, columns: Range<usize>, sums: &mut [T]) {
        let sums = &mut sums[..columns.len()];
        match self.gemm.start {
            Start::Zero if self.depth.start == 0 => {}
            Start::Bias if self.depth.start == 0 => sums.copy_from_slice(&io.read(2)[columns]),
            _ => {
                let line = row * self.gemm.n;
                sums.copy_from_slice(io.write(0, line + columns.start..line + columns.end));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::memory::Memory;
    use crate::op::{Kind, Op, Span};
    use crate::random::Fill;
    use proptest::prelude::*;

    fn run(gemm: Gemm, isa: Isa, threads: usize) -> Vec<f32> {
        let mut at = 0;
        let mut span = |len: usize| {
            at += len;
            Span { offset: at - len, len }
        };
        let (m, n, k) = (gemm.m, gemm.n, gemm.k);
        let op = Op {
            kind: Kind::Gemm(gemm),
            reads: vec![span(m * k), span(k * n), span(n)],
            writes: vec![span(m * n), span(m * n)],
        };
        let mut memory = Memory::<f32>::new(at).unwrap();
        for (i, x) in memory.all().iter_mut().enumerate() {
            *x = Fill::Uniform { bound: 1.0 }.element(1, 0, i) as f32;
        }
        let mut scratch = Scratch::new(isa);
        for index in 0..gemm.parts(threads) {
            let io = Io { op: &op, memory: &memory, step: 0, threads, written: None };
            part(&io, &gemm, index, &mut scratch);
        }
        memory.all().to_vec()
    }

    /// The same by definition, sums in the same order.
    fn naive(gemm: Gemm, before: &[f32]) -> Vec<f32> {
        let (m, n, k) = (gemm.m, gemm.n, gemm.k);
        let (a, rest) = before.split_at(m * k);
        let (b, rest) = rest.split_at(k * n);
        let (bias, c) = rest.split_at(n);
        let mut out = Vec::new();
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let mut sum = match gemm.start {
                Start::Zero => 0.0,
                Start::Bias => bias[j],
                Start::Add => c[i * n + j],
            };
            for l in 0..k {
                let a = if gemm.a_transposed { a[l * m + i] } else { a[i * k + l] };
                let b = if gemm.b_transposed { b[j * k + l] } else { b[l * n + j] };
                sum += a * b;
            }
            out.push(sum);
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn a_product_is_the_naive_one_bit_for_bit_on_every_instruction_set_and_number_of_threads(
            (m, n, k) in (1usize..70, 1usize..80, 1usize..600),
            a_transposed: bool, b_transposed: bool, gelu: bool,
            start in prop::sample::select(vec![Start::Zero, Start::Bias, Start::Add]),
        ) {
            let gemm = Gemm { m, n, k, a_transposed, b_transposed, start, gelu };
            let before: Vec<f32> = (0..m * k + k * n + n + 2 * m * n)
                .map(|i| Fill::Uniform { bound: 1.0 }.element(1, 0, i) as f32).collect();
            let right = naive(gemm, &before);
            let place = m * k + k * n + n;
            for isa in Isa::usable() {
                for threads in [1, 2, 7] {
                    let after = run(gemm, isa, threads);
                    prop_assert!(after[place..place + m * n] == right, "{isa:?} {threads}");
                    let act: Vec<f32> = right.iter().map(|x| super::gelu(*x)).collect();
                    prop_assert!(!gelu || after[place + m * n..] == act);
                }
            }
        }
    }
}

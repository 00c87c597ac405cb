//! Products of matrices, column-major and without gaps, alone or in a batch one behind the other.

use super::launch::{Cut, Launch, Place, Program, Word};
use super::{Exact, Precision};

/// The function of `cublas_v2.h` whose work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `cublasSgemm`.
    Sgemm,
    /// `cublasSgemmStridedBatched`.
    SgemmStridedBatched,
    /// `cublasGemmEx`.
    GemmEx,
    /// `cublasGemmStridedBatchedEx`.
    GemmStridedBatchedEx,
    /// `cublasCgemm`.
    Cgemm,
    /// `cublasCgemm3mStridedBatched`.
    Cgemm3mStridedBatched,
}

impl Function {
    /// Whether SuperBench calls it with beta = 1, so that it adds to what is there.
    #[must_use]
    pub const fn adds(self) -> bool {
        matches!(self, Self::Sgemm | Self::SgemmStridedBatched | Self::GemmStridedBatchedEx)
    }
}

/// C, m x n, is A, m x k, times B, k x n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    /// Whose work it is.
    pub function: Function,
    /// Of all three matrices.
    pub precision: Precision,
    /// Rows of A and C.
    pub m: u32,
    /// Columns of B and C.
    pub n: u32,
    /// Columns of A, rows of B.
    pub k: u32,
    /// Whether A and B lie transposed.
    pub transposed: [bool; 2],
    /// As many of them, one behind the other.
    pub batch: u32,
}

impl Product {
    /// Elements of A, B and C of one of the batch.
    const fn each(self) -> [u64; 3] {
        let (m, n, k) = (self.m as u64, self.n as u64, self.k as u64);
        [m * k, k * n, m * n]
    }

    pub(super) const fn lengths(self) -> [u64; 3] {
        let ([a, b, c], times) = (self.each(), self.batch as u64 * self.precision.parts());
        [a * times, b * times, c * times]
    }

    pub(super) fn exact(self, at: u64, a: &dyn Fn(u64) -> f64, b: &dyn Fn(u64) -> f64) -> Exact {
        let (parts, [size_a, size_b, size_c]) = (self.precision.parts(), self.each());
        let (m, n, k) = (u64::from(self.m), u64::from(self.n), u64::from(self.k));
        let (part, element) = (at % parts, at / parts);
        let (batch, place) = (element / size_c, element % size_c);
        let (row, column) = (place % m, place / m);
        let mut exact = Exact::default();
        for d in 0..k {
            let left = batch * size_a + if self.transposed[0] { row * k + d } else { d * m + row };
            let right = batch * size_b + if self.transposed[1] { d * n + column } else { column * k + d };
            if parts == 1 {
                exact.add(a(left) * b(right));
                continue;
            }
            let (x, y) = ([a(2 * left), a(2 * left + 1)], [b(2 * right), b(2 * right + 1)]);
            let products = if part == 0 { [x[0] * y[0], -x[1] * y[1]] } else { [x[0] * y[1], x[1] * y[0]] };
            products.into_iter().for_each(|product| exact.add(product));
            // What other ways to multiply complex numbers add and take away again may be as large as the other part.
            exact.scale += if part == 0 {
                (x[0] * y[1]).abs() + (x[1] * y[0]).abs()
            } else {
                (x[0] * y[0]).abs() + (x[1] * y[1]).abs()
            };
        }
        exact
    }

    /// The kernels are row-major: what they compute is C transposed, B transposed times A transposed.
    pub(super) fn program(self, alpha: f32) -> Program {
        let kernel = match self.precision {
            Precision::Fp32 => "batch_f32",
            Precision::Fp16 => "batch_half",
            Precision::Complex => "batch_c32",
        };
        let beta = Word::F32(f32::from(u8::from(self.function.adds())));
        let cut = Cut::of(self.precision, (self.n, self.m), self.k, self.batch);
        let flag = |is: bool| Word::U32(u32::from(is));
        let ends = [Word::At(Place::C), cut.parts(), Word::At(Place::B), Word::At(Place::A)];
        let sizes = [Word::U32(self.n), Word::U32(self.m), Word::U32(self.k)];
        let lie = [flag(self.transposed[1]), flag(!self.transposed[0])];
        let shares = [Word::U32(cut.down), Word::U32(cut.shares), Word::U32(cut.per), Word::F32(alpha), beta];
        let args = ends.into_iter().chain(sizes).chain(lie).chain(shares).collect();
        let grid = (cut.across, cut.down * cut.shares * self.batch);
        cut.program(self.precision, Launch { kernel, grid, args }, self.lengths()[2], [Word::F32(alpha), beta])
    }
}

//! The matrix product of `gemm`: tiles, panels, and the innermost loop for each instruction set.

use std::hint::black_box;

use crate::pin::filled;
use crate::steps::Halt;

/// Rows and columns of the matrices.
pub(super) const N: usize = 288;
/// Rows and columns of a tile.
const TILE: usize = 96;
const TILES: usize = N / TILE;
const AREA: usize = TILE * TILE;

/// Instruction sets that the innermost loop is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isa {
    /// What every x86-64 has, or another architecture.
    Portable,
    /// 256-bit vectors with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// The widest that this CPU and kernel support.
    pub(super) fn best() -> Self {
        *Self::usable().last().unwrap_or(&Self::Portable)
    }

    /// All usable here, narrowest first.
    fn usable() -> Vec<Self> {
        std::iter::once(Self::Portable).chain(Self::vectors()).collect()
    }

    /// Those with vectors of their own.
    #[cfg(target_arch = "x86_64")]
    fn vectors() -> Vec<Self> {
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let avx512 = avx2 && is_x86_feature_detected!("avx512f");
        [(Self::Avx2, avx2), (Self::Avx512, avx512)].into_iter().filter(|(_, has)| *has).map(|(isa, _)| isa).collect()
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn vectors() -> Vec<Self> {
        Vec::new()
    }
}

/// `f32` or `f64`.
pub(super) trait Number: Copy + Send + Sync + 'static {
    /// Relative rounding error.
    const UNIT_ERROR: f64;
    /// Neutral element of addition.
    const ZERO: Self;
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    /// `self * b + c`, with one rounding where `FUSED`.
    fn multiply_add<const FUSED: bool>(self, b: Self, c: Self) -> Self;
    /// `c = [c +] a * b` for one tile, with the widest loop of `isa`. Sizes: see [`shape`](Self::shape).
    fn tile(isa: Isa, a: &[Self], b: &[Self], c: &mut [Self], add: bool);
    /// Rows of a panel of A and columns of a panel of B for `isa`.
    fn shape(isa: Isa) -> (usize, usize);
}

/// One tile product with panels of `MR` rows and `NR` columns. The accumulators are meant to live in registers.
#[inline(always)]
fn tile<T: Number, const MR: usize, const NR: usize, const FUSED: bool>(a: &[T], b: &[T], c: &mut [T], add: bool) {
    for (b, columns) in b.chunks_exact(TILE * NR).zip(0..) {
        for (a, c) in a.chunks_exact(TILE * MR).zip(c.chunks_exact_mut(TILE * MR)) {
            let mut sums = [[T::ZERO; NR]; MR];
            for (a, b) in a.as_chunks::<MR>().0.iter().zip(b.as_chunks::<NR>().0) {
                for row in 0..MR {
                    for column in 0..NR {
                        sums[row][column] = a[row].multiply_add::<FUSED>(b[column], sums[row][column]);
                    }
                }
            }
            for (row, c) in sums.iter().zip(c.chunks_exact_mut(TILE)) {
                for (sum, c) in row.iter().zip(&mut c[columns * NR..(columns + 1) * NR]) {
                    *c = if add { T::from_f64(c.to_f64() + sum.to_f64()) } else { *sum };
                }
            }
        }
    }
}

macro_rules! number {
    ($type:ident, $sse:expr, $avx2:expr, $avx512:expr, $wide2:ident, $wide5:ident) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn $wide2(a: &[$type], b: &[$type], c: &mut [$type], add: bool) {
            tile::<$type, { $avx2.0 }, { $avx2.1 }, true>(a, b, c, add);
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,fma")]
        fn $wide5(a: &[$type], b: &[$type], c: &mut [$type], add: bool) {
            tile::<$type, { $avx512.0 }, { $avx512.1 }, true>(a, b, c, add);
        }

        impl Number for $type {
            const UNIT_ERROR: f64 = $type::EPSILON as f64;
            const ZERO: Self = 0.0;

            fn from_f64(value: f64) -> Self {
                value as Self
            }

            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            #[inline(always)]
            fn multiply_add<const FUSED: bool>(self, b: Self, c: Self) -> Self {
                if FUSED { self.mul_add(b, c) } else { self * b + c }
            }

            #[cfg_attr(
                target_arch = "x86_64",
                expect(unsafe_code, reason = "calls a function compiled for instructions that were detected")
            )]
            fn tile(isa: Isa, a: &[Self], b: &[Self], c: &mut [Self], add: bool) {
                match isa {
                    Isa::Portable => tile::<$type, { $sse.0 }, { $sse.1 }, false>(a, b, c, add),
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: `Isa::usable` gives `Avx2` only where AVX2 and FMA were detected.
                    Isa::Avx2 => unsafe { $wide2(a, b, c, add) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: `Isa::usable` gives `Avx512` only where AVX-512F and FMA were detected.
                    Isa::Avx512 => unsafe { $wide5(a, b, c, add) },
                }
            }

            fn shape(isa: Isa) -> (usize, usize) {
                match isa {
                    Isa::Portable => $sse,
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => $avx2,
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => $avx512,
                }
            }
        }
    };
}

number!(f32, (4, 8), (6, 16), (12, 32), single_avx2, single_avx512);
number!(f64, (4, 4), (6, 8), (12, 16), double_avx2, double_avx512);

/// Two matrices and their product, worked on tile by tile.
pub(super) struct Product<T> {
    isa: Isa,
    a: Vec<T>,
    b: Vec<T>,
    c: Vec<T>,
    /// Tile product that comes next: `(row * TILES + column) * TILES + depth`.
    at: usize,
}

impl<T: Number> Product<T> {
    pub(super) fn new(isa: Isa) -> Result<Self, Halt> {
        let (mr, nr) = T::shape(isa);
        let mut a = filled(N * N, T::ZERO)?;
        let mut b = filled(N * N, T::ZERO)?;
        for row in 0..N {
            for column in 0..N {
                let (tile, r, c) = place(row, column);
                a[tile + r / mr * mr * TILE + c * mr + r % mr] = T::from_f64(element_a(row, column));
                b[tile + c / nr * nr * TILE + r * nr + c % nr] = T::from_f64(element_b(row, column));
            }
        }
        Ok(Self { isa, a, b, c: filled(N * N, T::ZERO)?, at: 0 })
    }

    /// Does the next tile product; says how many operations that was.
    pub(super) fn advance(&mut self) -> f64 {
        let (depth, tile) = (self.at % TILES, self.at / TILES);
        let (row, column) = (tile / TILES, tile % TILES);
        let of = |row: usize, column: usize| {
            let start = (row * TILES + column) * AREA;
            start..start + AREA
        };
        let a = black_box(&self.a[of(row, depth)]);
        let b = black_box(&self.b[of(depth, column)]);
        T::tile(self.isa, a, b, &mut self.c[of(row, column)], depth > 0);
        self.at = (self.at + 1) % (TILES * TILES * TILES);
        (2 * AREA * TILE) as f64
    }

    /// Ends the product in progress and returns its largest error, relative to the largest element that a row can
    /// have. Uses a vector of signs, as Freivalds, "Probabilistic Machines Can Use Less Running Time" (1977).
    pub(super) fn finish_and_check(&mut self) -> f64 {
        let whole = if self.at == 0 { TILES * TILES * TILES } else { TILES * TILES * TILES - self.at };
        for _ in 0..whole {
            self.advance();
        }
        let sign = |i: usize| if mixed(i as u64 ^ 0x5157) & 1 == 0 { 1.0 } else { -1.0 };
        let rounded = |value: f64| T::from_f64(value).to_f64();
        let bx: Vec<f64> = (0..N).map(|r| (0..N).map(|c| rounded(element_b(r, c)) * sign(c)).sum()).collect();
        let mut worst = 0.0f64;
        for row in 0..N {
            let expected: f64 = (0..N).map(|k| rounded(element_a(row, k)) * bx[k]).sum();
            let seen: f64 = (0..N).map(|column| self.element(row, column) * sign(column)).sum();
            // A NaN must not pass: `max` would drop it.
            let error = (expected - seen).abs() / N as f64;
            worst = if error.is_nan() { f64::INFINITY } else { worst.max(error) };
        }
        worst
    }

    /// Whether the last tile product completed a whole one.
    pub(super) const fn is_whole(&self) -> bool {
        self.at == 0
    }

    /// The product's elements, in tiles.
    pub(super) fn elements(&mut self) -> &mut [T] {
        &mut self.c
    }

    fn element(&self, row: usize, column: usize) -> f64 {
        let (tile, r, c) = place(row, column);
        self.c[tile + r * TILE + c].to_f64()
    }
}

/// Start of the tile that holds an element, and the element's row and column in it.
fn place(row: usize, column: usize) -> (usize, usize, usize) {
    ((row / TILE * TILES + column / TILE) * AREA, row % TILE, column % TILE)
}

fn element_a(row: usize, column: usize) -> f64 {
    unit((row * N + column) as u64)
}

fn element_b(row: usize, column: usize) -> f64 {
    unit((N * N + row * N + column) as u64)
}

/// A fixed number in -1 to 1.
fn unit(index: u64) -> f64 {
    (mixed(index) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(super) fn mixed(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equals_naive<T: Number>() {
        let rounded = |value: f64| T::from_f64(value).to_f64();
        let a: Vec<f64> = (0..N * N).map(|i| rounded(element_a(i / N, i % N))).collect();
        let b: Vec<f64> = (0..N * N).map(|i| rounded(element_b(i / N, i % N))).collect();
        for isa in Isa::usable() {
            let mut product = Product::<T>::new(isa).unwrap();
            assert!(product.finish_and_check() <= T::UNIT_ERROR * N as f64, "{isa:?}");
            for (row, column) in (0..N).flat_map(|r| (0..N).step_by(7).map(move |c| (r, (c + r) % N))) {
                let expected: f64 = (0..N).map(|k| a[row * N + k] * b[k * N + column]).sum();
                let error = (product.element(row, column) - expected).abs();
                assert!(error <= T::UNIT_ERROR * N as f64, "{isa:?} {row} {column}: {error}");
            }
        }
    }

    #[test]
    fn the_fp32_product_equals_the_naive_one_on_every_instruction_set() {
        equals_naive::<f32>();
    }

    #[test]
    fn the_fp64_product_equals_the_naive_one_on_every_instruction_set() {
        equals_naive::<f64>();
    }

    #[test]
    fn one_wrong_element_is_found() {
        let mut product = Product::<f64>::new(Isa::best()).unwrap();
        product.finish_and_check();
        product.a[1234] += 1e-3;
        assert!(product.finish_and_check() > f64::UNIT_ERROR * N as f64);
        product.a[1234] = f64::NAN;
        assert!(product.finish_and_check().is_infinite());
    }

    #[test]
    fn a_check_in_the_middle_of_a_product_sees_a_whole_one() {
        let mut product = Product::<f32>::new(Isa::best()).unwrap();
        for _ in 0..TILES + 1 {
            product.advance();
        }
        assert!(product.finish_and_check() <= f32::UNIT_ERROR * N as f64);
        assert_eq!(product.at, 0);
    }
}

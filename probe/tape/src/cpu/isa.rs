//! The innermost loop of a product for each instruction set; all give the same bits.
//!
//! Each element of a tile is a sum of its own, in the order of the inner dimension, with a multiplication and an
//! addition a term. Wider vectors take more elements at a time, never another order.

use crate::number::Number;

/// Elements of the largest tile.
pub(crate) const TILE: usize = 12 * 32;

/// Sums of a tile, row by row, rows as long as the instruction set's tile.
pub(crate) type Tile<T> = [T; TILE];

/// Instruction sets that the loop is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isa {
    /// What every x86-64 has, or another architecture.
    Portable,
    /// 256-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// The widest of this CPU.
    pub(crate) fn best() -> Self {
        *Self::usable().last().unwrap_or(&Self::Portable)
    }

    /// All usable here, narrowest first.
    pub(crate) fn usable() -> Vec<Self> {
        std::iter::once(Self::Portable).chain(Self::vectors()).collect()
    }

    /// Those with vectors of their own.
    #[cfg(target_arch = "x86_64")]
    fn vectors() -> Vec<Self> {
        let (avx2, avx512) = (is_x86_feature_detected!("avx2"), is_x86_feature_detected!("avx512f"));
        [(Self::Avx2, avx2), (Self::Avx512, avx2 && avx512)]
            .into_iter()
            .filter(|(_, has)| *has)
            .map(|(isa, _)| isa)
            .collect()
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn vectors() -> Vec<Self> {
        Vec::new()
    }

    /// Rows and columns of a tile of `f32`.
    pub(crate) const fn shape(self) -> (usize, usize) {
        match self {
            Self::Portable => (4, 8),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => (4, 16),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => (12, 32),
        }
    }

    #[cfg_attr(
        target_arch = "x86_64",
        expect(unsafe_code, reason = "calls a function compiled for instructions that were detected")
    )]
    pub(crate) fn tile(self, a: &[f32], b: &[f32], sums: &mut Tile<f32>) {
        match self {
            Self::Portable => tile::<f32, 4, 8>(a, b, sums),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `usable` gives `Avx2` only where AVX2 was detected.
            Self::Avx2 => unsafe { avx2(a, b, sums) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `usable` gives `Avx512` only where AVX-512F was detected.
            Self::Avx512 => unsafe { avx512(a, b, sums) },
        }
    }
}

/// `sums += A B` for panels of `R` rows of A and `C` columns of B.
pub(crate) fn tile<T: Number, const R: usize, const C: usize>(a: &[T], b: &[T], sums: &mut Tile<T>) {
    for (a, b) in a.as_chunks::<R>().0.iter().zip(b.as_chunks::<C>().0) {
        for (a, row) in a.iter().zip(sums.as_chunks_mut::<C>().0) {
            row.iter_mut().zip(b).for_each(|(sum, b)| *sum += *a * *b);
        }
    }
}

/// The same with two vectors a row, written out: left to itself the compiler keeps the sums in memory.
macro_rules! wide {
    ($name:ident, $feature:literal, $rows:literal, $lanes:literal,
     $load:ident, $store:ident, $splat:ident, $add:ident, $mul:ident) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $feature)]
        #[expect(unsafe_code, reason = "vectors are loaded and stored through pointers")]
        fn $name(a: &[f32], b: &[f32], sums: &mut Tile<f32>) {
            use std::arch::x86_64::{$add, $load, $mul, $splat, $store};
            const C: usize = 2 * $lanes;
            let kept = &mut sums.as_chunks_mut::<C>().0[..$rows];
            let mut local = [[$splat(0.0); 2]; $rows];
            for row in 0..$rows {
                // SAFETY: a row has two vectors' elements.
                local[row] = unsafe { [$load(kept[row].as_ptr()), $load(kept[row].as_ptr().add($lanes))] };
            }
            for (a, b) in a.as_chunks::<$rows>().0.iter().zip(b.as_chunks::<C>().0) {
                // SAFETY: a row has two vectors' elements.
                let b = unsafe { [$load(b.as_ptr()), $load(b.as_ptr().add($lanes))] };
                for row in 0..$rows {
                    let a = $splat(a[row]);
                    local[row] = [$add(local[row][0], $mul(a, b[0])), $add(local[row][1], $mul(a, b[1]))];
                }
            }
            for row in 0..$rows {
                // SAFETY: a row has two vectors' elements.
                unsafe {
                    $store(kept[row].as_mut_ptr(), local[row][0]);
                    $store(kept[row].as_mut_ptr().add($lanes), local[row][1]);
                }
            }
        }
    };
}

wide!(avx2, "avx2", 4, 8, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_add_ps, _mm256_mul_ps);
wide!(avx512, "avx512f", 12, 16, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_add_ps, _mm512_mul_ps);

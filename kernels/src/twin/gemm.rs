//! Twins of the matrix products, in f64: what their operands are, and what comes out.

use super::pattern;

/// Type of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// The upper half of an f32.
    Bf16,
    /// IEEE 754 binary16.
    Fp16,
    /// An f32 whose lower 13 bits are zero.
    Tf32,
    /// Signed bytes.
    Int8,
    /// e4m3 of the OCP 8-bit formats.
    Fp8,
    /// IEEE 754 binary32.
    Fp32,
    /// IEEE 754 binary64.
    Fp64,
}

impl Number {
    /// Bytes of an element.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Int8 | Self::Fp8 => 1,
            Self::Bf16 | Self::Fp16 => 2,
            Self::Tf32 | Self::Fp32 => 4,
            Self::Fp64 => 8,
        }
    }

    /// Which bits of a random 64-bit word an operand keeps, and which it always has: any byte for integers, else a number
    /// between 1/8 and 2 in size with any sign and any mantissa.
    #[must_use]
    pub const fn mask(self) -> (u64, u64) {
        match self {
            Self::Bf16 => (0x81ff_81ff_81ff_81ff, 0x3e00_3e00_3e00_3e00),
            Self::Fp16 => (0x8fff_8fff_8fff_8fff, 0x3000_3000_3000_3000),
            Self::Tf32 => (0x81ff_e000_81ff_e000, 0x3e00_0000_3e00_0000),
            Self::Int8 => (u64::MAX, 0),
            Self::Fp8 => (0x9f9f_9f9f_9f9f_9f9f, 0x2020_2020_2020_2020),
            Self::Fp32 => (0x81ff_ffff_81ff_ffff, 0x3e00_0000_3e00_0000),
            Self::Fp64 => (0x803f_ffff_ffff_ffff, 0x3fc0_0000_0000_0000),
        }
    }

    /// Element number `at` of the operand `seed`, as the kernel `operand` writes it.
    #[must_use]
    pub fn element(self, seed: u32, at: u64) -> f64 {
        let (per_word, (keep, set)) = (8 / self.size() as u64, self.mask());
        let pair = at / per_word * 2;
        let random = u64::from(pattern(seed, pair)) | u64::from(pattern(seed, pair + 1)) << 32;
        let bits = ((random & keep) | set) >> (8 * self.size() as u64 * (at % per_word));
        match self {
            Self::Bf16 => f64::from(f32::from_bits((bits as u32) << 16)),
            Self::Fp16 => small(bits & 0xffff, 5, 10),
            Self::Fp8 => small(bits & 0xff, 4, 3),
            Self::Int8 => f64::from(bits as i8),
            Self::Tf32 | Self::Fp32 => f64::from(f32::from_bits(bits as u32)),
            Self::Fp64 => f64::from_bits(bits),
        }
    }

    /// Number `at` of a result that is `words`, in f16, f32 or f64.
    #[must_use]
    pub fn read(self, words: &[u32], at: u64) -> f64 {
        let word = |at: u64| words[at as usize];
        match self {
            Self::Fp64 => f64::from_bits(u64::from(word(2 * at)) | u64::from(word(2 * at + 1)) << 32),
            Self::Fp16 => half(word(at / 2) >> (16 * (at % 2)) & 0xffff),
            _ => f64::from(f32::from_bits(word(at))),
        }
    }

    /// Where element `k` of row `row` lies in an operand of `wgmma.cu` whose rows are `slices` times 128 bytes.
    #[must_use]
    pub const fn packed(self, slices: u64, row: u64, k: u64) -> u64 {
        let (size, byte) = (self.size() as u64, k * self.size() as u64);
        let block = row / 128 * slices + byte / 128;
        (block * 128 * 128 + row % 128 * 128 + ((byte % 128) ^ ((row % 8) << 4))) / size
    }

    /// The first `count` elements of the operand `seed`.
    #[must_use]
    pub fn elements(self, seed: u32, count: usize) -> Vec<f64> {
        (0..count as u64).map(|at| self.element(seed, at)).collect()
    }
}

/// A normal number of `exponent` and `mantissa` bits; operands have no others.
fn small(bits: u64, exponent: u32, mantissa: u32) -> f64 {
    let power = (bits >> mantissa & ((1 << exponent) - 1)) as i32 - ((1 << (exponent - 1)) - 1);
    let size = (1.0 + (bits & ((1 << mantissa) - 1)) as f64 / f64::from(1 << mantissa)) * 2.0_f64.powi(power);
    if bits >> (exponent + mantissa) == 0 { size } else { -size }
}

/// Any number of IEEE 754 binary16.
fn half(bits: u32) -> f64 {
    match bits & 0x7fff {
        0x7c01.. => f64::NAN,
        0x7c00 => {
            if bits & 0x8000 == 0 {
                f64::INFINITY
            } else {
                f64::NEG_INFINITY
            }
        }
        subnormal @ ..0x400 => f64::from(subnormal) * 2.0_f64.powi(-24) * if bits & 0x8000 == 0 { 1.0 } else { -1.0 },
        _ => small(u64::from(bits), 5, 10),
    }
}

/// `a * b` of row-major m x k and k x n.
#[must_use]
pub fn product(a: &[f64], b: &[f64], n: usize, k: usize) -> Vec<f64> {
    let mut c = Vec::with_capacity(a.len() / k * n);
    for row in a.chunks_exact(k) {
        for column in 0..n {
            c.push(row.iter().enumerate().map(|(d, x)| x * b[d * n + column]).sum());
        }
    }
    c
}

/// `a * b^T` of row-major m x k and n x k.
#[must_use]
pub fn transposed_product(a: &[f64], b: &[f64], k: usize) -> Vec<f64> {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum();
    a.chunks_exact(k).flat_map(|row| b.chunks_exact(k).map(move |column| dot(row, column))).collect()
}

/// Norm of the difference over the norm of the reference. Not a number where `got` has one.
#[must_use]
pub fn error(got: &[f64], reference: &[f64]) -> f64 {
    let square = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
    let difference = square(&mut got.iter().zip(reference).map(|(g, r)| g - r));
    (difference / square(&mut reference.iter().copied())).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_formats_are_read_by_their_definition() {
        let fp16 = [(0x3c00, 1.0), (0xc000, -2.0), (0x3555, 0.333_251_953_125), (0x3001, 0.125 + 2.0_f64.powi(-13))];
        assert!(fp16.iter().all(|(bits, value)| small(*bits, 5, 10) == *value));
        assert!(fp16.iter().all(|(bits, value)| half(*bits as u32) == *value));
        assert_eq!([0x0001, 0x83ff, 0x7bff].map(half), [2.0_f64.powi(-24), -1023.0 * 2.0_f64.powi(-24), 65504.0]);
        assert!([0x7c00, 0xfc00].map(half) == [f64::INFINITY, f64::NEG_INFINITY] && half(0x7e00).is_nan());
        assert_eq!(Number::Fp16.read(&[0x3c00_0000, 0xc000], 1), 1.0);
        assert_eq!(Number::Fp16.read(&[0x3c00_0000, 0xc000], 2), -2.0);
        let fp8 = [(0x38, 1.0), (0xc0, -2.0), (0x3f, 1.875), (0x7e, 448.0)];
        assert!(fp8.iter().all(|(bits, value)| small(*bits, 4, 3) == *value));
    }

    #[test]
    fn operands_are_of_moderate_size_and_use_every_sign_and_mantissa() {
        use Number::{Bf16, Fp8, Fp16, Fp32, Fp64, Int8, Tf32};
        for (number, different) in
            [(Bf16, 800), (Fp16, 1700), (Tf32, 1700), (Int8, 256), (Fp8, 64), (Fp32, 1999), (Fp64, 2000)]
        {
            let mut values = number.elements(3, 2000);
            assert!(number == Int8 || values.iter().all(|v| (0.125..2.0).contains(&v.abs())), "{number:?}");
            assert!(values.iter().filter(|v| **v < 0.0).count() > 900, "{number:?}");
            values.sort_by(f64::total_cmp);
            values.dedup();
            assert!(values.len() >= different, "{number:?}: {}", values.len());
        }
    }
}

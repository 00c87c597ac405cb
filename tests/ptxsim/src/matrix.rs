//! Arithmetic of tensor cores: what their operands are and what a product of a warp adds.
//!
//! Products are exact, summed in f64 in the order of k, then the old sum is added and the result rounded once. Hardware
//! rounds in its own ways; digests of real devices are compared with each other, never with this.

use crate::alu::Lanes;
use crate::code::Number;

impl Number {
    /// Bytes of an element.
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::S8 | Self::E4m3 => 1,
            Self::Bf16 | Self::F16 => 2,
            Self::Tf32 => 4,
        }
    }

    /// The element that begins at bit 0.
    pub(crate) fn value(self, bits: u32) -> f64 {
        match self {
            Self::Bf16 => f64::from(f32::from_bits(bits << 16)),
            // The hardware reads no more than 19 bits.
            Self::Tf32 => f64::from(f32::from_bits(bits & 0xffff_e000)),
            Self::S8 => f64::from(bits as i8),
            Self::F16 if bits & 0x7fff > 0x7c00 => f64::NAN,
            Self::F16 if bits & 0x7fff == 0x7c00 => {
                if bits & 0x8000 == 0 {
                    f64::INFINITY
                } else {
                    f64::NEG_INFINITY
                }
            }
            Self::F16 => sized(bits & 0x7fff, 10, 15, bits & 0x8000 != 0),
            Self::E4m3 if bits & 0x7f == 0x7f => f64::NAN,
            Self::E4m3 => sized(bits & 0x7f, 3, 7, bits & 0x80 != 0),
        }
    }

    /// A sum as the bits of a register.
    pub(crate) fn sum(self, products: f64, old: u64) -> u64 {
        match self {
            // Exact in f64; a sum that does not fit wraps.
            Self::S8 => u64::from((products as i64 as i32).wrapping_add(old as i32).cast_unsigned()),
            _ => u64::from(((products + f64::from(f32::from_bits(old as u32))) as f32).to_bits()),
        }
    }
}

/// A number of so many bits of mantissa, without its sign.
pub(crate) fn sized(bits: u32, mantissa: u32, bias: i32, negative: bool) -> f64 {
    let (exponent, fraction) = ((bits >> mantissa) as i32, f64::from(bits & ((1 << mantissa) - 1)));
    let one = f64::from(1 << mantissa);
    let size = match exponent {
        0 => fraction / one * 2.0_f64.powi(1 - bias),
        _ => (1.0 + fraction / one) * 2.0_f64.powi(exponent - bias),
    };
    if negative { -size } else { size }
}

/// What a warp's product of 16 rows and 8 columns, 32 bytes long, adds to its sums.
pub(crate) fn mma(number: Number, a: &[Lanes], b: &[Lanes], c: &[Lanes]) -> Vec<Lanes> {
    // Element `k` begins at this byte of its row. Byte `at` of row `row` of A lies in register (row / 8) + 2 * (at / 16)
    // of lane (row % 8) * 4 + at % 16 / 4.
    let element = |word: u64, at: usize| number.value((word >> (8 * (at % 4))) as u32);
    let (size, count) = (number.size(), 32 / number.size());
    let left: [[f64; 32]; 16] = std::array::from_fn(|row| {
        filled(count, |k| element(a[row / 8 + 2 * (k * size / 16)][row % 8 * 4 + k * size % 16 / 4], k * size))
    });
    let right: [[f64; 32]; 8] = std::array::from_fn(|column| {
        filled(count, |k| element(b[k * size / 16][column * 4 + k * size % 16 / 4], k * size))
    });
    let sum = |register: usize, lane: usize| {
        let (row, column) = (lane / 4 + 8 * (register / 2), lane % 4 * 2 + register % 2);
        let products = left[row][..count].iter().zip(&right[column]).map(|(x, y)| x * y).sum();
        number.sum(products, c[register][lane])
    };
    (0..4).map(|register| std::array::from_fn(|lane| sum(register, lane))).collect()
}

fn filled(count: usize, of: impl Fn(usize) -> f64) -> [f64; 32] {
    let mut row = [0.0; 32];
    row[..count].iter_mut().enumerate().for_each(|(k, to)| *to = of(k));
    row
}

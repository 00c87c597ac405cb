//! Which arithmetic the operations are written in, and why its results are the same on every CPU.
//!
//! Multiplications, additions, divisions and square roots of IEEE 754 have one right answer. Everything else is made
//! of them here, in a fixed order: no fused multiply-add (an older CPU has none), no `libm` (its versions differ).

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

use crate::cpu::isa::{Isa, Tile};

/// `f32` for measuring; `f64` to check gradients against finite differences.
pub(crate) trait Number:
    Copy
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + 'static
{
    const ZERO: Self;
    const ONE: Self;
    fn of(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn sqrt(self) -> Self;
    fn exp(self) -> Self;
    /// Natural logarithm of a positive, normal number.
    fn ln(self) -> Self;
    fn tanh(self) -> Self;
    /// Rows and columns of the innermost tile of a product.
    fn tile_shape(isa: Isa) -> (usize, usize);
    /// Adds the product of two packed panels to a tile, for each element in the order of the inner dimension.
    fn tile(isa: Isa, a: &[Self], b: &[Self], sums: &mut Tile<Self>);

    fn sigmoid(self) -> Self {
        Self::ONE / (Self::ONE + (-self).exp())
    }
}

/// Lanes of a sum along a row. Fixed, so that the order of additions does not depend on the vector width.
const LANES: usize = 16;

/// Sum of `f(i)` for `i` below `len`: lane `i % 16` first, then the lanes pairwise.
#[inline(always)]
pub(crate) fn sum<T: Number>(len: usize, f: impl Fn(usize) -> T) -> T {
    let mut lanes = [T::ZERO; LANES];
    let whole = len / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        for (lane, at) in lanes.iter_mut().zip(start..) {
            *lane += f(at);
        }
    }
    for (lane, at) in lanes.iter_mut().zip(whole..len) {
        *lane += f(at);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            let other = lanes[lane + width];
            lanes[lane] += other;
        }
        width /= 2;
    }
    lanes[0]
}

/// Scalar product of two rows of one length.
#[inline(always)]
pub(crate) fn dot<T: Number>(a: &[T], b: &[T]) -> T {
    let b = &b[..a.len()];
    sum(a.len(), |i| a[i] * b[i])
}

/// `y += a * x`, element by element.
#[inline(always)]
pub(crate) fn axpy<T: Number>(a: T, x: &[T], y: &mut [T]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * *x;
    }
}

impl Number for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    fn of(value: f64) -> Self {
        value as Self
    }

    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn sqrt(self) -> Self {
        Self::sqrt(self)
    }

    /// Relative error below 2e-7. Reduction and polynomial of Cephes `expf` (Moshier).
    #[inline(always)]
    fn exp(self) -> Self {
        // 1.5 * 2^23: adding it leaves the nearest integer in the low bits.
        const SHIFT: f32 = 12_582_912.0;
        let x = self.clamp(-87.0, 88.0);
        let shifted = x * std::f32::consts::LOG2_E + SHIFT;
        let n = shifted - SHIFT;
        let r = x - n * 0.693_359_4 - n * -2.121_944_4e-4;
        let mut p = 1.987_569_1e-4;
        for c in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_6e-1, 0.5] {
            p = p * r + c;
        }
        let scale = Self::from_bits((shifted.to_bits().wrapping_sub(SHIFT.to_bits()).wrapping_add(127)) << 23);
        (p * r * r + r + 1.0) * scale
    }

    /// Absolute error below 2e-7 near one, relative error below 2e-7 elsewhere. After Cephes `logf` (Moshier).
    fn ln(self) -> Self {
        let bits = self.to_bits();
        let mut exponent = (bits >> 23) as i32 - 126;
        let mut m = Self::from_bits((bits & 0x007f_ffff) | 0x3f00_0000);
        if m < std::f32::consts::FRAC_1_SQRT_2 {
            exponent -= 1;
            m = m + m;
        }
        let x = m - 1.0;
        let mut p = 7.037_683_6e-2;
        for c in [
            -1.151_461e-1,
            1.167_699_9e-1,
            -1.242_014_1e-1,
            1.424_932_3e-1,
            -1.666_805_7e-1,
            2.000_071_5e-1,
            -2.499_999_4e-1,
            3.333_333e-1,
        ] {
            p = p * x + c;
        }
        let e = exponent as Self;
        let tail = p * x * x * x + e * -2.121_944_4e-4 - 0.5 * x * x;
        x + tail + e * 0.693_359_4
    }

    /// Absolute error below 3e-7.
    #[inline(always)]
    fn tanh(self) -> Self {
        1.0 - 2.0 / (Number::exp(self + self) + 1.0)
    }

    fn tile_shape(isa: Isa) -> (usize, usize) {
        isa.shape()
    }

    fn tile(isa: Isa, a: &[Self], b: &[Self], sums: &mut Tile<Self>) {
        isa.tile(a, b, sums);
    }
}

impl Number for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;

    fn of(value: f64) -> Self {
        value
    }

    fn to_f64(self) -> f64 {
        self
    }

    fn sqrt(self) -> Self {
        Self::sqrt(self)
    }

    fn exp(self) -> Self {
        Self::exp(self)
    }

    fn ln(self) -> Self {
        Self::ln(self)
    }

    fn tanh(self) -> Self {
        Self::tanh(self)
    }

    fn tile_shape(_: Isa) -> (usize, usize) {
        (4, 4)
    }

    fn tile(_: Isa, a: &[Self], b: &[Self], sums: &mut Tile<Self>) {
        crate::cpu::isa::tile::<Self, 4, 4>(a, b, sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(range: (f64, f64), ours: impl Fn(f32) -> f32, right: impl Fn(f64) -> f64, relative: bool) -> f64 {
        let steps = 200_000;
        let at = |i: i32| (range.0 + (range.1 - range.0) * f64::from(i) / f64::from(steps)) as f32;
        let error = |x: f32| {
            let right = right(f64::from(x));
            (f64::from(ours(x)) - right).abs() / if relative { right.abs() } else { 1.0 }
        };
        (0..=steps).map(|i| error(at(i))).fold(0.0, f64::max)
    }

    #[test]
    fn own_functions_are_as_exact_as_their_docs_say() {
        assert!(worst((-86.0, 87.0), <f32 as Number>::exp, f64::exp, true) < 2e-7);
        assert!(worst((-20.0, 20.0), <f32 as Number>::tanh, f64::tanh, false) < 3e-7);
        assert!(worst((2.0, 1e6), <f32 as Number>::ln, f64::ln, true) < 2e-7);
        assert!(worst((1e-3, 2.0), <f32 as Number>::ln, f64::ln, false) < 5e-7);
    }

    #[test]
    fn own_functions_stay_finite_at_the_ends() {
        for x in [f32::MIN, -1e3, 1e3, f32::MAX] {
            assert!(Number::exp(x).is_finite() && Number::tanh(x).is_finite(), "{x}");
            assert!((0.0..=1.0).contains(&x.sigmoid()), "{x}");
        }
        assert!(Number::exp(f32::NAN).is_nan());
    }

    #[test]
    fn a_sum_takes_every_element_once() {
        for len in 0..70 {
            assert_eq!(sum(len, |i| (1u64 << (i % 40)) as f64), (0..len).map(|i| (1u64 << (i % 40)) as f64).sum());
        }
    }
}

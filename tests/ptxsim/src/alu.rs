//! Arithmetic on 32 lanes at once. Values lie in 64 bits, cut to their width; floats as their bits.

use crate::code::{Compare, Number, One, Two, Ty};

pub(crate) type Lanes = [u64; 32];

/// `f` of every lane, as a loop, which the compiler turns into vector instructions; `array::map` stays one call for each lane.
#[inline]
pub(crate) fn each(a: &Lanes, f: impl Fn(u64) -> u64) -> Lanes {
    let mut out = *a;
    out.iter_mut().for_each(|value| *value = f(*value));
    out
}

#[inline]
fn map(a: &Lanes, b: &Lanes, f: impl Fn(u64, u64) -> u64) -> Lanes {
    let mut out = *a;
    out.iter_mut().zip(b).for_each(|(a, b)| *a = f(*a, *b));
    out
}

fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn with_f32(a: &Lanes, b: &Lanes, f: impl Fn(f32, f32) -> f32) -> Lanes {
    map(a, b, |a, b| u64::from(f(f32_of(a), f32_of(b)).to_bits()))
}

fn with_f64(a: &Lanes, b: &Lanes, f: impl Fn(f64, f64) -> f64) -> Lanes {
    map(a, b, |a, b| f(f64::from_bits(a), f64::from_bits(b)).to_bits())
}

/// The nearest bf16, ties to even.
fn bf16(bits: u64) -> u64 {
    let (bits, x) = (bits & 0xffff_ffff, f32_of(bits));
    if x.is_nan() { 0x7fff } else { (bits + 0x7fff + (bits >> 16 & 1)) >> 16 }
}

/// The nearest binary16, ties to even.
fn fp16(bits: u64) -> u64 {
    let (x, sign) = (f32_of(bits), bits >> 16 & 0x8000);
    if x.is_nan() {
        return 0x7fff;
    }
    // Below the smallest normal number the steps stay as wide as they are there.
    let size = f64::from(x).abs();
    let power = (x.abs().to_bits() >> 23) as i32 - 127;
    let power = power.max(-14);
    let steps = (size * 2.0_f64.powi(10 - power)).round_ties_even() as u64;
    // A mantissa that overflows is the next power; past the largest number is infinity.
    sign | (((power + 14) as u64) << 10).saturating_add(steps).min(0x7c00)
}

/// The bits of the nearest binary16.
pub(crate) fn half(x: f32) -> u16 {
    fp16(u64::from(x.to_bits())) as u16
}

/// One operand, one result.
pub(crate) fn single(op: One, ty: Ty, a: &Lanes) -> Option<Lanes> {
    Some(match (op, ty) {
        (One::Bf16, _) => each(a, bf16),
        (One::Fp16, _) => each(a, fp16),
        (One::Widened, _) => each(a, |a| u64::from((Number::F16.value(a as u32 & 0xffff) as f32).to_bits())),
        (One::Reciprocal, Ty::F32) => each(a, |a| u64::from((1.0 / f32_of(a)).to_bits())),
        (One::Reciprocal, Ty::F64) => each(a, |a| (1.0 / f64::from_bits(a)).to_bits()),
        (One::Root, Ty::F32) => each(a, |a| u64::from(f32_of(a).sqrt().to_bits())),
        (One::Root, Ty::F64) => each(a, |a| f64::from_bits(a).sqrt().to_bits()),
        _ => return None,
    })
}

/// Two operands, one result.
pub(crate) fn two(op: Two, ty: Ty, a: &Lanes, b: &Lanes) -> Option<Lanes> {
    Some(match (ty, op) {
        (_, Two::Bf16Pair) => map(a, b, |a, b| bf16(a) << 16 | bf16(b)),
        // What is not a number loses against what is one.
        (Ty::F32, Two::Min) => with_f32(a, b, f32::min),
        (Ty::F32, Two::Max) => with_f32(a, b, f32::max),
        (Ty::F32, Two::Add) => with_f32(a, b, |a, b| a + b),
        (Ty::F32, Two::Sub) => with_f32(a, b, |a, b| a - b),
        (Ty::F32, Two::Mul) => with_f32(a, b, |a, b| a * b),
        (Ty::F32, Two::Div) => with_f32(a, b, |a, b| a / b),
        (Ty::F64, Two::Add) => with_f64(a, b, |a, b| a + b),
        (Ty::F64, Two::Sub) => with_f64(a, b, |a, b| a - b),
        (Ty::F64, Two::Mul) => with_f64(a, b, |a, b| a * b),
        (Ty::F64, Two::Div) => with_f64(a, b, |a, b| a / b),
        (Ty::F32 | Ty::F64, _) => return None,
        _ => whole(op, ty, a, b),
    })
}

fn whole(op: Two, ty: Ty, a: &Lanes, b: &Lanes) -> Lanes {
    let bits = 8 * ty.size() as u64;
    let signed = matches!(ty, Ty::S(_));
    // A negative number in the text has 64 bits, whatever the type.
    let cut = |f: &dyn Fn(u64, u64) -> u64| map(a, b, |a, b| ty.cut(f(ty.cut(a), ty.cut(b))));
    let wide = |a, b| {
        if signed { i128::from(ty.signed(a)) * i128::from(ty.signed(b)) } else { i128::from(a) * i128::from(b) }
    };
    match op {
        Two::Add => map(a, b, |a, b| ty.cut(a.wrapping_add(b))),
        Two::Sub => map(a, b, |a, b| ty.cut(a.wrapping_sub(b))),
        Two::Mul => map(a, b, |a, b| ty.cut(a.wrapping_mul(b))),
        Two::MulWide => map(a, b, |a, b| wide(ty.cut(a), ty.cut(b)) as u64),
        Two::MulHi => map(a, b, |a, b| ty.cut((wide(ty.cut(a), ty.cut(b)) >> bits) as u64)),
        Two::And => map(a, b, |a, b| a & b),
        Two::Or => map(a, b, |a, b| a | b),
        Two::Xor => map(a, b, |a, b| ty.cut(a ^ b)),
        // Shifts take a 32-bit count and give nothing past the width.
        Two::Shl => map(a, b, |a, b| if b & 0xffff_ffff >= bits { 0 } else { ty.cut(a << (b & 63)) }),
        Two::Shr if signed => map(a, b, |a, b| ty.cut((ty.signed(a) >> (b & 0xffff_ffff).min(63)).cast_unsigned())),
        Two::Shr => map(a, b, |a, b| if b & 0xffff_ffff >= bits { 0 } else { ty.cut(a) >> (b & 63) }),
        Two::Div if signed => cut(&|a, b| ty.signed(a).checked_div(ty.signed(b)).unwrap_or(-1).cast_unsigned()),
        Two::Div => cut(&|a, b| a.checked_div(b).unwrap_or(u64::MAX)),
        Two::Rem if signed => cut(&|a, b| ty.signed(a).checked_rem(ty.signed(b)).unwrap_or(-1).cast_unsigned()),
        Two::Rem => cut(&|a, b| a.checked_rem(b).unwrap_or(a)),
        Two::Min if signed => cut(&|a, b| ty.signed(a).min(ty.signed(b)).cast_unsigned()),
        Two::Max if signed => cut(&|a, b| ty.signed(a).max(ty.signed(b)).cast_unsigned()),
        Two::Min => cut(&|a, b| a.min(b)),
        Two::Max => cut(&|a, b| a.max(b)),
        // Taken before.
        Two::Bf16Pair => *a,
    }
}

/// One value, for atomics.
pub(crate) fn one(op: Two, ty: Ty, a: u64, b: u64) -> Option<u64> {
    two(op, ty, &[a; 32], &[ty.cut(b); 32]).map(|lanes| lanes[0])
}

/// `a * b + c` in integers.
pub(crate) fn mad(ty: Ty, wide: bool, a: &Lanes, b: &Lanes, c: &Lanes) -> Lanes {
    if wide {
        return map(&whole(Two::MulWide, ty, a, b), c, u64::wrapping_add);
    }
    map(&whole(Two::Mul, ty, a, b), c, |ab, c| ty.cut(ab.wrapping_add(c)))
}

/// `a * b + c` rounded once.
pub(crate) fn fma(ty: Ty, a: &Lanes, b: &Lanes, c: &Lanes) -> Lanes {
    if ty == Ty::F32 {
        let products = map(a, b, |a, b| (f64::from(f32_of(a)) * f64::from(f32_of(b))).to_bits());
        return map(&products, c, |product, c| u64::from(rounded(f64::from_bits(product), f32_of(c)).to_bits()));
    }
    std::array::from_fn(|l| f64::from_bits(a[l]).mul_add(f64::from_bits(b[l]), f64::from_bits(c[l])).to_bits())
}

/// `product + c`, rounded once to f32. The product of two f32 is exact in f64. The sum is rounded to odd there, so that rounding it
/// again gives what rounding the exact sum would (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008).
/// `mul_add` is a call into a library for every lane, unless the compiler may assume a processor that has the instruction.
#[inline]
fn rounded(product: f64, c: f32) -> f32 {
    let c = f64::from(c);
    let sum = product + c;
    let from_c = sum - product;
    let lost = (product - (sum - from_c)) + (c - from_c);
    let bits = sum.to_bits();
    let away = u64::from((lost > 0.0) == (sum > 0.0));
    // An even sum that lost something goes one step towards what it lost. What infinities lose is no number, and not above 0.
    let odd = if lost.abs() > 0.0 && bits & 1 == 0 { bits + 2 * away - 1 } else { bits };
    f64::from_bits(odd) as f32
}

/// One per lane where the comparison holds; of what is not a number `unordered` holds.
pub(crate) fn compare((op, unordered): (Compare, bool), ty: Ty, a: &Lanes, b: &Lanes) -> Lanes {
    let holds = |order: Option<std::cmp::Ordering>| {
        u64::from(match (op, order) {
            (_, None) => unordered,
            (Compare::Eq, Some(o)) => o.is_eq(),
            (Compare::Ne, Some(o)) => o.is_ne(),
            (Compare::Lt, Some(o)) => o.is_lt(),
            (Compare::Le, Some(o)) => o.is_le(),
            (Compare::Gt, Some(o)) => o.is_gt(),
            (Compare::Ge, Some(o)) => o.is_ge(),
        })
    };
    match ty {
        Ty::F32 => map(a, b, |a, b| holds(f32_of(a).partial_cmp(&f32_of(b)))),
        Ty::F64 => map(a, b, |a, b| holds(f64::from_bits(a).partial_cmp(&f64::from_bits(b)))),
        Ty::S(_) => map(a, b, |a, b| holds(Some(ty.signed(a).cmp(&ty.signed(b))))),
        _ => map(a, b, |a, b| holds(Some(ty.cut(a).cmp(&ty.cut(b))))),
    }
}

/// Conversion between widths and kinds, rounding to nearest; `None` for what the kernels do not use.
pub(crate) fn convert(to: Ty, from: Ty, a: &Lanes) -> Option<Lanes> {
    Some(match (to, from) {
        (Ty::U(_) | Ty::S(_), Ty::U(_)) => each(a, |v| to.cut(from.cut(v))),
        (Ty::U(_) | Ty::S(_), Ty::S(_)) => each(a, |v| to.cut(from.signed(v).cast_unsigned())),
        (Ty::F32, Ty::U(_)) => each(a, |v| u64::from((from.cut(v) as f32).to_bits())),
        (Ty::F32, Ty::S(_)) => each(a, |v| u64::from((from.signed(v) as f32).to_bits())),
        (Ty::F64, Ty::U(_)) => each(a, |v| (from.cut(v) as f64).to_bits()),
        (Ty::F64, Ty::S(_)) => each(a, |v| (from.signed(v) as f64).to_bits()),
        // Towards zero, and no further than the type goes.
        (Ty::U(4), Ty::F32) => each(a, |v| u64::from(f32_of(v) as u32)),
        (Ty::U(8), Ty::F32) => each(a, |v| f32_of(v) as u64),
        (Ty::F64, Ty::F32) => each(a, |v| f64::from(f32_of(v)).to_bits()),
        (Ty::F32, Ty::F64) => each(a, |v| u64::from((f64::from_bits(v) as f32).to_bits())),
        _ => return None,
    })
}

/// `b` with the low `length` bits of `a` at `start`.
pub(crate) fn insert(ty: Ty, a: &Lanes, b: &Lanes, start: &Lanes, length: &Lanes) -> Lanes {
    std::array::from_fn(|l| {
        let (start, length) = (start[l] & 0xff, length[l] & 0xff);
        let ones = if length > 63 { u64::MAX } else { (1 << length) - 1 };
        let shifted = |bits: u64| if start > 63 { 0 } else { ty.cut(bits << start) };
        (b[l] & !shifted(ones)) | shifted(a[l] & ones)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn a_product_and_sum_is_rounded_once() {
        let mut rng = Rng(7);
        let edges = [
            0,
            1,
            0x8000_0000,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0x3f80_0000,
            0x3f80_0001,
            0x007f_ffff,
            0x7f7f_ffff,
        ];
        for round in 0..200_000 {
            let mut any = || match rng.below(4) {
                0 => edges[rng.below(edges.len() as u64) as usize],
                // Close to each other, so that sums cancel and halves are met.
                1 => 0x3f80_0000 ^ (rng.below(64) << 17) ^ (rng.below(2) << 31),
                _ => rng.below(1 << 32),
            };
            let [a, b] = [any(), any()];
            let product = (f32_of(a) * f32_of(b)).to_bits();
            // Every other one is next to half a step of the product.
            let c =
                if round % 2 == 0 { any() } else { u64::from(product ^ 1 << 31).wrapping_sub(24 << 23) & 0xffff_ffff };
            let right = f32_of(a).mul_add(f32_of(b), f32_of(c));
            let got = f32_of(fma(Ty::F32, &[a; 32], &[b; 32], &[c; 32])[0]);
            assert!(
                got.to_bits() == right.to_bits() || got.is_nan() && right.is_nan(),
                "{a:x} {b:x} {c:x}: {got}, {right}"
            );
        }
    }
}

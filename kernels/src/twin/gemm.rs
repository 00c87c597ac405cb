//! Twins of `gemm.cu`, in f64.

use super::pattern;

/// Word number `word` of the bf16 operand `seed`: two values between 1/8 and 2 in size.
#[must_use]
pub const fn bf16_word(seed: u32, word: u64) -> u32 {
    (pattern(seed, word) & 0x81ff_81ff) | 0x3e00_3e00
}

/// `count` values of the bf16 operand `seed`.
#[must_use]
pub fn bf16_words(seed: u32, count: usize) -> Vec<f64> {
    let half = |word: u32, half: usize| f64::from(f32::from_bits((word >> (16 * half)) << 16));
    (0..count).map(|i| half(bf16_word(seed, i as u64 / 2), i % 2)).collect()
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

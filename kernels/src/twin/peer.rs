//! What all GPUs of a node add up.

use super::pattern;

/// Word `word` of what GPU `rank` brings: a number of 16 bits, so that sums of them are exact in any order.
#[must_use]
pub fn summand(seed: u32, rank: u32, word: u64) -> f32 {
    (pattern(seed.wrapping_add(rank), word) & 0xffff) as f32
}

/// The sum of word `word` over `count` GPUs.
#[must_use]
pub fn total(seed: u32, count: u32, word: u64) -> f32 {
    (0..count).map(|rank| summand(seed, rank, word)).sum()
}

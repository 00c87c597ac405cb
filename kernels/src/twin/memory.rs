//! Twins of `common.cuh` and `memory.cu`.

/// Finaliser of MurmurHash3, a bijection.
#[must_use]
pub const fn mix(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85eb_ca6b);
    x ^= x >> 13;
    x = x.wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

/// Word number `word` of the pattern `seed`.
#[must_use]
pub const fn pattern(seed: u32, word: u64) -> u32 {
    mix((word as u32).wrapping_add(mix(seed ^ ((word >> 32) as u32).wrapping_mul(0x9e37_79b1))))
}

/// A digest that took in `value`.
#[must_use]
pub const fn fold(digest: u32, value: u32) -> u32 {
    (digest ^ value).wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15)
}

/// What `read` adds to its digest for `words`, a multiple of four: the sum of each 16 bytes' exclusive or.
#[must_use]
pub fn sum(words: &[u32]) -> u32 {
    words.chunks_exact(4).fold(0, |sum: u32, v| sum.wrapping_add(v[0] ^ v[1] ^ v[2] ^ v[3]))
}

/// `a = b + scalar * c`, as a multiply and an add in one rounding.
#[must_use]
pub fn triad(b: &[f64], c: &[f64], scalar: f64) -> Vec<f64> {
    b.iter().zip(c).map(|(b, c)| scalar.mul_add(*c, *b)).collect()
}

/// What `pages` says of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Words that differ from the pattern.
    pub wrong: u32,
    /// All bits in which they differ.
    pub bits: u32,
    /// The first of them, counted in the page; all ones without one.
    pub first: u32,
}

/// Compares the words of page number `page` with the pattern `seed`.
#[must_use]
pub fn page(words: &[u32], page: u32, seed: u32) -> Page {
    let begin = u64::from(page) * words.len() as u64;
    let mut found = Page { wrong: 0, bits: 0, first: u32::MAX };
    for (index, word) in words.iter().enumerate() {
        let differ = word ^ pattern(seed, begin + index as u64);
        if differ != 0 {
            found.wrong += 1;
            found.bits |= differ;
            found.first = found.first.min(index as u32);
        }
    }
    found
}

/// One cycle through `slots` places of `stride` words each, in an order that no prefetcher guesses: the word at a place
/// is the index of the next. Sattolo's algorithm.
#[must_use]
pub fn chain(slots: usize, stride: usize, seed: u32) -> Vec<u32> {
    let mut order: Vec<usize> = (0..slots).collect();
    for last in (1..slots).rev() {
        order.swap(last, pattern(seed, last as u64) as usize % last);
    }
    let mut words = vec![0; slots * stride];
    for (from, to) in order.iter().enumerate() {
        words[from * stride] = (to * stride) as u32;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_visits_every_place_once_before_it_returns() {
        let words = chain(97, 16, 3);
        let mut at = 0;
        let visited: std::collections::BTreeSet<u32> = (0..97)
            .map(|_| {
                at = words[at as usize];
                at
            })
            .collect();
        assert_eq!((visited.len(), at), (97, 0));
    }

    #[test]
    fn patterns_differ_by_seed_and_past_four_billion_words() {
        assert_ne!(pattern(1, 5), pattern(2, 5));
        assert_ne!(pattern(1, 5), pattern(1, 5 + (1 << 32)));
    }
}

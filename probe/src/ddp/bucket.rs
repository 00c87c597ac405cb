//! How are gradients cut into pieces that are summed one after another?

use std::ops::Range;

/// Elements `0..len` in order, in pieces of `most` and a shorter last one; one empty piece where there is nothing.
pub(super) fn buckets(len: usize, most: usize) -> Vec<Range<usize>> {
    let most = most.max(1);
    let count = len.div_ceil(most).max(1);
    (0..count).map(|at| at * most..((at + 1) * most).min(len)).collect()
}

/// Elements of block `block` of `of` of a piece with `len` elements: blocks differ by one element at most.
pub(super) fn block(len: usize, block: usize, of: usize) -> Range<usize> {
    let start = |block: usize| len / of * block + (len % of).min(block);
    start(block)..start(block + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn covers(pieces: &[Range<usize>], len: usize) {
        assert_eq!(pieces.first().map(|piece| piece.start), Some(0));
        assert_eq!(pieces.last().map(|piece| piece.end), Some(len));
        assert!(pieces.windows(2).all(|pair| pair[0].end == pair[1].start), "{pieces:?}");
    }

    proptest! {
        #[test]
        fn every_element_is_in_one_bucket_and_none_is_too_long(len in 0usize..100_000, most in 0usize..5_000) {
            let pieces = buckets(len, most);
            covers(&pieces, len);
            prop_assert!(pieces.iter().all(|piece| piece.len() <= most.max(1)));
            prop_assert!(pieces.iter().rev().skip(1).all(|piece| piece.len() == most.max(1)));
        }

        #[test]
        fn every_element_is_in_one_block_and_blocks_are_alike(len in 0usize..10_000, of in 1usize..300) {
            let pieces: Vec<Range<usize>> = (0..of).map(|at| block(len, at, of)).collect();
            covers(&pieces, len);
            prop_assert!(pieces.iter().all(|piece| piece.len() == len / of || piece.len() == len / of + 1));
        }
    }
}

//! How long do nodes take that are worked on a few at a time?

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Milliseconds until all nodes are done, where they take `each` so long, in this order, `places` of them at a time. Nodes that
/// have started come first.
pub fn through(each: impl IntoIterator<Item = u64>, places: usize) -> u64 {
    let mut free: BinaryHeap<Reverse<u64>> = BinaryHeap::new();
    let mut last = 0;
    for ms in each {
        let begins = if free.len() < places.max(1) { 0 } else { free.pop().map_or(0, |Reverse(at)| at) };
        last = last.max(begins + ms);
        free.push(Reverse(begins + ms));
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_takes_the_next_node_as_soon_as_a_place_is_free() {
        assert_eq!(through([5, 5, 5, 5], 4), 5);
        assert_eq!(through([5, 5, 5, 5, 5], 4), 10);
        assert_eq!(through([9, 1, 1, 1, 1], 2), 9, "the long one has a place of its own");
        assert_eq!(through([1, 1, 1, 1, 9], 2), 11, "it comes last");
        assert_eq!(through([], 4), 0);
        assert_eq!(through([3, 4], 0), 7, "there is always one place");
    }
}

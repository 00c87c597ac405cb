//! Which number stands where before a collective, and after it, so that every wrong byte is seen.
//!
//! Contribution `id` holds `b(i) + id * k(i)` at element `i`, modulo 2^32: a sum of contributions is again of this form,
//! so any partial sum can be checked exactly, and no two elements, blocks or operations hold the same.

use super::plan::Held;

/// Bytes of an element.
pub(super) const ELEMENT: usize = muster_wire::COLLECTIVE_ELEMENT;

/// What a block holds from its `first` element on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern {
    seed: u32,
    first: u32,
    count: u32,
    ids: u32,
}

impl Pattern {
    /// `held` in operation `seed`, in a slice that begins at element `first` of blocks of `length` elements.
    pub(super) fn new(held: Held, seed: u32, (first, length): (usize, usize)) -> Self {
        let first = (held.block * length + first) as u32;
        Self { seed: seed.wrapping_mul(0x85eb_ca6b), first, count: held.count, ids: held.ids }
    }

    fn at(self, offset: usize) -> u32 {
        let mut base = self.first.wrapping_add(offset as u32).wrapping_mul(0x9e37_79b9) ^ self.seed;
        base = (base ^ (base >> 15)).wrapping_mul(0x2c1b_3c6d);
        let step = base.rotate_left(13) | 1;
        base.wrapping_mul(self.count).wrapping_add(step.wrapping_mul(self.ids))
    }

    pub(super) fn fill(self, into: &mut [u8]) {
        for (at, element) in into.as_chunks_mut::<ELEMENT>().0.iter_mut().enumerate() {
            *element = self.at(at).to_le_bytes();
        }
    }

    /// Elements that differ, and the place of the first.
    pub(super) fn wrong(self, seen: &[u8]) -> Option<(usize, usize)> {
        let elements = seen.as_chunks::<ELEMENT>().0;
        let wrong = |(at, element): (usize, &[u8; ELEMENT])| u32::from_le_bytes(*element) != self.at(at);
        let count = elements.iter().enumerate().filter(|e| wrong(*e)).count();
        (count > 0).then(|| (count, elements.iter().enumerate().position(wrong).unwrap_or(0)))
    }
}

/// Adds element by element.
pub(super) fn add(to: &mut [u8], what: &[u8]) {
    for (a, b) in to.as_chunks_mut::<ELEMENT>().0.iter_mut().zip(what.as_chunks::<ELEMENT>().0) {
        *a = u32::from_le_bytes(*a).wrapping_add(u32::from_le_bytes(*b)).to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: usize = 1000;

    fn of(count: u32, ids: u32, seed: u32) -> Vec<u8> {
        let mut bytes = vec![0; LENGTH * ELEMENT];
        Pattern::new(Held { block: 3, count, ids }, seed, (0, LENGTH)).fill(&mut bytes);
        bytes
    }

    #[test]
    fn the_sum_of_contributions_is_what_a_sum_should_hold() {
        let mut sum = of(1, 0, 7);
        for id in 1..300 {
            add(&mut sum, &of(1, id, 7));
        }
        let held = Held { block: 3, count: 300, ids: (0..300).sum() };
        assert_eq!(Pattern::new(held, 7, (0, LENGTH)).wrong(&sum), None);
    }

    #[test]
    fn one_wrong_bit_a_swapped_element_or_the_last_operations_data_are_seen() {
        let right = Pattern::new(Held { block: 3, count: 1, ids: 5 }, 7, (0, LENGTH));
        for place in [0, 1, 1999, LENGTH * ELEMENT - 1] {
            let mut seen = of(1, 5, 7);
            seen[place] ^= 0x10;
            assert_eq!(right.wrong(&seen), Some((1, place / ELEMENT)));
        }
        let mut seen = of(1, 5, 7);
        seen.rotate_left(ELEMENT);
        assert_eq!(right.wrong(&seen).map(|wrong| wrong.0), Some(LENGTH));
        assert!(right.wrong(&of(1, 5, 6)).is_some_and(|(count, _)| count > LENGTH / 2));
        assert!(right.wrong(&of(1, 4, 7)).is_some_and(|(count, _)| count == LENGTH));
    }
}

//! Suffix sums over levels whose entries also integrate over time, updated lazily.
//!
//! Mass `v` added at time `t` has contributed `v * (now - t)` by `now`; keeping `(v, v t)` per entry makes the
//! integral of every suffix readable at any moment without touching the entries that did not change.

/// Integrals of two quantities at once: they are always read together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pair {
    pub(super) a: f64,
    pub(super) b: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    a: f64,
    a_since: f64,
    b: f64,
    b_since: f64,
}

/// Fenwick tree over ranks `1..=ranks`.
pub(super) struct TimeTree {
    entries: Vec<Entry>,
}

impl TimeTree {
    pub(super) fn new(ranks: usize) -> Self {
        Self { entries: vec![Entry::default(); ranks + 1] }
    }

    /// Adds mass at `rank` from time `now` on.
    pub(super) fn add(&mut self, rank: usize, mass: Pair, now: f64) {
        let mut at = rank;
        while at > 0 {
            let entry = &mut self.entries[at];
            entry.a += mass.a;
            entry.a_since += mass.a * now;
            entry.b += mass.b;
            entry.b_since += mass.b * now;
            at &= at - 1;
        }
    }

    /// Integral up to `now` of the mass at ranks above `rank`.
    pub(super) fn above(&self, rank: usize, now: f64) -> Pair {
        let mut sum = Entry::default();
        let mut at = rank + 1;
        while let Some(entry) = self.entries.get(at) {
            sum.a += entry.a;
            sum.a_since += entry.a_since;
            sum.b += entry.b;
            sum.b_since += entry.b_since;
            at += at & at.wrapping_neg();
        }
        Pair { a: sum.a * now - sum.a_since, b: sum.b * now - sum.b_since }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suffix_integrates_what_lay_in_it_while_it_lay_there() {
        let mut tree = TimeTree::new(5);
        tree.add(3, Pair { a: 2.0, b: 1.0 }, 0.0);
        tree.add(5, Pair { a: 1.0, b: 0.0 }, 1.0);
        tree.add(3, Pair { a: -2.0, b: -1.0 }, 4.0);
        assert_eq!(tree.above(2, 4.0), Pair { a: 11.0, b: 4.0 });
        assert_eq!(tree.above(2, 6.0), Pair { a: 13.0, b: 4.0 });
        assert_eq!(tree.above(3, 6.0), Pair { a: 5.0, b: 0.0 });
        assert_eq!(tree.above(5, 6.0), Pair { a: 0.0, b: 0.0 });
    }
}

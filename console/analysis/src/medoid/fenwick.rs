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
            self.entries[at].add(mass, now);
            at &= at - 1;
        }
    }

    /// Moves mass from one rank to a higher one. The paths of neighbours soon meet and share their cache lines.
    pub(super) fn lift(&mut self, from: (usize, Pair), to: (usize, Pair), now: f64) {
        let (mut old, mut new) = (from.0, to.0);
        let taken = Pair { a: -from.1.a, b: -from.1.b };
        while old != new {
            if new > old {
                self.entries[new].add(to.1, now);
                new &= new - 1;
            } else {
                self.entries[old].add(taken, now);
                old &= old - 1;
            }
        }
        while new > 0 {
            // One after the other, not their difference: what leaves later must cancel exactly what came.
            self.entries[new].add(to.1, now);
            self.entries[new].add(taken, now);
            new &= new - 1;
        }
    }

    /// Integral up to `now` of the mass at ranks above `rank`.
    pub(super) fn above(&self, rank: usize, now: f64) -> Pair {
        let mut sum = Entry::default();
        self.collect(rank + 1, &mut sum);
        sum.integral(now)
    }

    /// [`TimeTree::above`] of two ranks, the lower first, whose paths are walked together once they meet.
    pub(super) fn above_both(&self, low: usize, high: usize, now: f64) -> (Pair, Pair) {
        let (mut below, mut above) = (Entry::default(), Entry::default());
        let (mut old, mut new) = (low + 1, high + 1);
        let end = self.entries.len();
        while old != new && old.min(new) < end {
            if old < new {
                below.join(&self.entries[old]);
                old += old & old.wrapping_neg();
            } else {
                above.join(&self.entries[new]);
                new += new & new.wrapping_neg();
            }
        }
        if old == new {
            let mut shared = Entry::default();
            self.collect(old, &mut shared);
            below.join(&shared);
            above.join(&shared);
        }
        (below.integral(now), above.integral(now))
    }

    fn collect(&self, mut at: usize, sum: &mut Entry) {
        while let Some(entry) = self.entries.get(at) {
            sum.join(entry);
            at += at & at.wrapping_neg();
        }
    }
}

impl Entry {
    fn add(&mut self, mass: Pair, now: f64) {
        self.a += mass.a;
        self.a_since += mass.a * now;
        self.b += mass.b;
        self.b_since += mass.b * now;
    }

    fn join(&mut self, other: &Self) {
        self.a += other.a;
        self.a_since += other.a_since;
        self.b += other.b;
        self.b_since += other.b_since;
    }

    fn integral(&self, now: f64) -> Pair {
        Pair { a: self.a * now - self.a_since, b: self.b * now - self.b_since }
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

    #[test]
    fn moving_and_asking_together_equals_doing_it_one_by_one() {
        let (mut fast, mut slow) = (TimeTree::new(37), TimeTree::new(37));
        let mass = |rank: usize| Pair { a: rank as f64, b: 1.0 / rank as f64 };
        for (step, (from, to)) in [(1, 2), (7, 8), (3, 30), (16, 32), (31, 37)].into_iter().enumerate() {
            let now = step as f64;
            fast.lift((from, mass(from)), (to, mass(to)), now);
            slow.add(from, Pair { a: -mass(from).a, b: -mass(from).b }, now);
            slow.add(to, mass(to), now);
            for (low, high) in [(0, 1), (6, 7), (2, 29), (36, 37), (5, 5)] {
                let (below, above) = fast.above_both(low, high, now + 0.5);
                for (got, want) in [(below, slow.above(low, now + 0.5)), (above, slow.above(high, now + 0.5))] {
                    assert!((got.a - want.a).abs() < 1e-9 && (got.b - want.b).abs() < 1e-9, "{got:?} {want:?}");
                }
            }
        }
    }
}

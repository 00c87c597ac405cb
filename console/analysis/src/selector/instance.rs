//! What is to be covered, and at what price? Benchmarks with their minutes, and defects merged by which of the
//! benchmarks find them.

use std::collections::BTreeMap;

/// A set of benchmarks, by position; at most 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Set(pub u64);

impl Set {
    /// The first `n` benchmarks.
    #[must_use]
    pub const fn first(n: usize) -> Self {
        Self(if n >= 64 { u64::MAX } else { (1 << n) - 1 })
    }

    /// Whether `b` is in it.
    #[must_use]
    pub const fn has(self, b: usize) -> bool {
        self.0 >> b & 1 == 1
    }

    /// With `b`.
    #[must_use]
    pub const fn with(self, b: usize) -> Self {
        Self(self.0 | 1 << b)
    }

    /// Without `b`.
    #[must_use]
    pub const fn without(self, b: usize) -> Self {
        Self(self.0 & !(1 << b))
    }

    /// Whether both share a benchmark.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Positions in it, rising.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |&b| self.has(b))
    }

    /// How many.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether it is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<usize> for Set {
    fn from_iter<I: IntoIterator<Item = usize>>(items: I) -> Self {
        items.into_iter().fold(Self::default(), Self::with)
    }
}

/// A weighted cover problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    minutes: Vec<f64>,
    /// Finders and weight of each kind of defect that some benchmark finds.
    defects: Vec<(Set, f64)>,
}

impl Instance {
    /// Benchmarks of `minutes` each (negative or NaN count as 0), and defects as (who finds them, weight). Defects
    /// with the same finders are merged; those nobody finds have no say.
    #[must_use]
    pub fn new(minutes: &[f64], defects: impl IntoIterator<Item = (Set, f64)>) -> Self {
        let all = Set::first(minutes.len());
        let mut merged: BTreeMap<u64, f64> = BTreeMap::new();
        for (finders, weight) in defects {
            let finders = finders.0 & all.0;
            if finders != 0 && weight > 0.0 {
                *merged.entry(finders).or_default() += weight;
            }
        }
        Self {
            minutes: minutes.iter().take(64).map(|m| m.max(0.0)).collect(),
            defects: merged.into_iter().map(|(set, weight)| (Set(set), weight)).collect(),
        }
    }

    /// Number of benchmarks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.minutes.len()
    }

    /// Whether there are no benchmarks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.minutes.is_empty()
    }

    /// Minutes of benchmark `b`.
    #[must_use]
    pub fn minutes(&self, b: usize) -> f64 {
        self.minutes[b]
    }

    /// Minutes of a set, run one after the other.
    #[must_use]
    pub fn cost(&self, set: Set) -> f64 {
        set.iter().map(|b| self.minutes[b]).sum()
    }

    /// Weight of the defects that `set` finds.
    #[must_use]
    pub fn found(&self, set: Set) -> f64 {
        self.defects.iter().filter(|(finders, _)| finders.meets(set)).map(|(_, weight)| weight).sum()
    }

    /// Weight that each benchmark adds to `set`; 0 for those in it. O(kinds of defects x their finders).
    #[must_use]
    pub fn gains(&self, set: Set) -> Vec<f64> {
        let mut gains = vec![0.0; self.len()];
        self.add_gains(set, &mut gains);
        gains
    }

    /// The same problem with only the benchmarks of `set` finding anything.
    pub(super) fn restricted(&self, set: Set) -> Self {
        let defects = self.defects.iter().map(|(finders, weight)| (Set(finders.0 & set.0), *weight));
        Self::new(&self.minutes, defects)
    }

    pub(super) fn add_gains(&self, set: Set, gains: &mut [f64]) {
        for (finders, weight) in self.defects.iter().filter(|(finders, _)| !finders.meets(set)) {
            let mut left = finders.0;
            while left != 0 {
                gains[left.trailing_zeros() as usize] += weight;
                left &= left - 1;
            }
        }
    }
}

/// Whether `a` (gain, minutes) is worth more per minute than `b`; ties go to the larger gain. Multiplied out, so
/// that a benchmark of no minutes needs no special case.
pub(super) fn better(a: (f64, f64), b: (f64, f64)) -> bool {
    let (left, right) = (a.0 * b.1, b.0 * a.1);
    left > right || (left == right && a.0 > b.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_are_differences_of_what_is_found() {
        let i =
            Instance::new(&[1.0, 2.0, 3.0], [(Set(0b011), 1.0), (Set(0b011), 0.5), (Set(0b100), 2.0), (Set(0), 9.0)]);
        for bits in 0..8 {
            let set = Set(bits);
            for (b, gain) in i.gains(set).into_iter().enumerate() {
                assert_eq!(gain, i.found(set.with(b)) - i.found(set));
            }
        }
        assert_eq!((i.cost(Set(0b101)), i.found(Set::first(3))), (4.0, 3.5));
    }

    #[test]
    fn a_free_benchmark_beats_any_other_that_is_not() {
        assert!(better((0.1, 0.0), (5.0, 1.0)));
        assert!(better((0.2, 0.0), (0.1, 0.0)));
        assert!(!better((0.0, 0.0), (0.1, 5.0)));
        assert!(better((2.0, 2.0), (1.0, 1.0)) && !better((1.0, 1.0), (2.0, 2.0)));
    }
}

//! Values of one metric in ascending order, and running sums over them from the middle outwards.

use std::ops::Deref;

use super::radix;

/// Values in order, and where each came from.
#[derive(Clone, Debug)]
pub(super) struct Sorted {
    values: Vec<f64>,
    /// Index of the value at each position.
    order: Vec<u32>,
}

/// Running sums over sorted values: twice their size, and kept only while peers are looked for.
#[derive(Clone, Debug)]
pub(super) struct Sums<'a> {
    sorted: &'a Sorted,
    /// Sums of the distances from the pivot, and of their squares, between the middle and each position. Counted
    /// outwards, so that a value far out cannot drown the sums of those near the middle.
    sums: Vec<(f64, f64)>,
}

impl Deref for Sums<'_> {
    type Target = Sorted;

    fn deref(&self) -> &Sorted {
        self.sorted
    }
}

impl<'a> Sums<'a> {
    /// Over `sorted`.
    pub(super) fn of(sorted: &'a Sorted) -> Self {
        let (n, middle, pivot) = (sorted.len(), sorted.len() / 2, sorted.pivot());
        let mut sums = vec![(0.0, 0.0); n + 1];
        for at in middle..n {
            let (sum, squares) = sums[at];
            let away = sorted.values[at] - pivot;
            sums[at + 1] = (sum + away, squares + away * away);
        }
        for at in (0..middle).rev() {
            let (sum, squares) = sums[at + 1];
            let away = sorted.values[at] - pivot;
            sums[at] = (sum - away, squares - away * away);
        }
        Self { sorted, sums }
    }

    /// Sum of distances from the pivot, and of their squares, from position `low` to before `high`.
    pub(super) fn between(&self, low: usize, high: usize) -> (f64, f64) {
        let (from, to) = (self.sums[low], self.sums[high]);
        (to.0 - from.0, to.1 - from.1)
    }
}

impl Sorted {
    /// Of `values`, which are finite.
    pub(super) fn of(values: &[f64]) -> Self {
        let mut pairs: Vec<(u64, u32)> =
            values.iter().zip(0..).map(|(&value, at)| (radix::ordered(value), at)).collect();
        radix::sort(&mut pairs, |pair| pair.0);
        let order: Vec<u32> = pairs.iter().map(|pair| pair.1).collect();
        let values: Vec<f64> = order.iter().map(|at| values[*at as usize]).collect();
        Self { values, order }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn at(&self, position: usize) -> f64 {
        self.values[position]
    }

    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    /// Index, in the order the values were given, of each position.
    pub(super) fn order(&self) -> &[u32] {
        &self.order
    }

    /// What sums are counted from: the middle value.
    pub(super) fn pivot(&self) -> f64 {
        self.values.get(self.values.len() / 2).copied().unwrap_or(0.0)
    }

    /// How many values are at most `limit`; searched for from position `hint`.
    pub(super) fn up_to(&self, limit: f64, hint: &mut usize) -> usize {
        let mut at = (*hint).min(self.len());
        // Limits of neighbours differ by little: a few steps from the last answer, then halving.
        for _ in 0..8 {
            if at < self.len() && self.values[at] <= limit {
                at += 1;
            } else if at > 0 && self.values[at - 1] > limit {
                at -= 1;
            } else {
                *hint = at;
                return at;
            }
        }
        *hint = self.values.partition_point(|value| *value <= limit);
        *hint
    }
}

//! Values of one metric in ascending order, with running sums from the middle outwards.

use super::radix;

/// Values in order, and where each came from.
#[derive(Clone, Debug)]
pub(super) struct Sorted {
    values: Vec<f64>,
    /// Index of the value at each position.
    order: Vec<u32>,
    /// Sums of the distances from the pivot, and of their squares, between the middle and each position. Counted
    /// outwards, so that a value far out cannot drown the sums of those near the middle.
    sums: Vec<(f64, f64)>,
}

impl Sorted {
    /// Of `values`, which are finite.
    pub(super) fn of(values: &[f64]) -> Self {
        let mut pairs: Vec<(u64, u32)> =
            values.iter().zip(0..).map(|(&value, at)| (radix::ordered(value), at)).collect();
        radix::sort(&mut pairs, |pair| pair.0);
        let order: Vec<u32> = pairs.iter().map(|pair| pair.1).collect();
        let values: Vec<f64> = order.iter().map(|at| values[*at as usize]).collect();
        let mut sorted = Self { sums: vec![(0.0, 0.0); values.len() + 1], values, order };
        sorted.add_up();
        sorted
    }

    fn add_up(&mut self) {
        let (n, middle, pivot) = (self.len(), self.len() / 2, self.pivot());
        for at in middle..n {
            let (sum, squares) = self.sums[at];
            let away = self.values[at] - pivot;
            self.sums[at + 1] = (sum + away, squares + away * away);
        }
        for at in (0..middle).rev() {
            let (sum, squares) = self.sums[at + 1];
            let away = self.values[at] - pivot;
            self.sums[at] = (sum - away, squares - away * away);
        }
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

    /// Sum of distances from the pivot, and of their squares, from position `low` to before `high`.
    pub(super) fn sums(&self, low: usize, high: usize) -> (f64, f64) {
        let (from, to) = (self.sums[low], self.sums[high]);
        (to.0 - from.0, to.1 - from.1)
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

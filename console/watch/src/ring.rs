//! The last values of something, the oldest overwritten.

/// At most `N` values.
#[derive(Clone, Debug)]
pub(super) struct Ring<const N: usize> {
    values: [f64; N],
    /// Values ever kept.
    count: usize,
}

impl<const N: usize> Default for Ring<N> {
    fn default() -> Self {
        Self { values: [f64::NAN; N], count: 0 }
    }
}

impl<const N: usize> Ring<N> {
    pub(super) fn push(&mut self, value: f64) {
        self.values[self.count % N] = value;
        self.count += 1;
    }

    /// Multiplies every value that is kept.
    pub(super) fn scale(&mut self, factor: f64) {
        self.values.iter_mut().for_each(|value| *value *= factor);
    }

    /// Values ever kept, also those that were overwritten.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// What is kept, in no order.
    pub(super) fn kept(&self) -> &[f64] {
        &self.values[..self.count.min(N)]
    }

    /// What is kept, the oldest first.
    pub(super) fn in_order(&self) -> impl Iterator<Item = f64> {
        let (kept, first) = (self.kept(), if self.count > N { self.count % N } else { 0 });
        kept[first..].iter().chain(&kept[..first]).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_value_gives_way_and_order_is_that_of_coming() {
        let mut ring = Ring::<3>::default();
        assert!(ring.kept().is_empty());
        for value in [1.0, 2.0, 3.0, 4.0] {
            ring.push(value);
        }
        assert_eq!(ring.in_order().collect::<Vec<_>>(), [2.0, 3.0, 4.0]);
        assert_eq!(ring.count(), 4);
        ring.push(5.0);
        ring.push(6.0);
        assert_eq!(ring.in_order().collect::<Vec<_>>(), [4.0, 5.0, 6.0]);
    }
}

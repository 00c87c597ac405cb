//! Where weights and data come from: a seed, the buffer's number and the element's index, and nothing else.

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) fn mixed(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The seed of the data of batch number `batch`, where weights are those of `seed`; different numbers give different data.
#[must_use]
pub fn batch_seed(seed: u64, batch: u64) -> u64 {
    mixed(seed ^ mixed(batch))
}

/// What a buffer holds before the first step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// Zeros: biases, moments, initial states.
    Zero,
    /// Ones: scales of normalisations.
    One,
    /// Evenly distributed in `-bound..bound`, with a full mantissa.
    Uniform {
        /// Largest magnitude.
        bound: f64,
    },
    /// Whole numbers below `below`: tokens, classes.
    Index {
        /// How many there are; at most 2^24, so that each is exact.
        below: u32,
    },
    /// `i % period`: positions in a sequence.
    Cycle {
        /// Where it starts again.
        period: u32,
    },
    /// Like `Index`, but only every `every`-th element, at `every / 2`; the others are -1, which is no class.
    Sparse {
        /// How many classes there are.
        below: u32,
        /// Distance of two elements that have one.
        every: u32,
    },
}

impl Fill {
    /// What the elements of buffer number `buffer` are made of: bits of element `at` are those of SplitMix64 for this number
    /// exclusive-or `at`.
    #[must_use]
    pub fn stream(seed: u64, buffer: usize) -> u64 {
        mixed(seed ^ ((buffer as u64) << 40))
    }

    /// Whether it is drawn by lot: moments and running means are not, and are not to be drawn again.
    #[must_use]
    pub const fn is_drawn(self) -> bool {
        matches!(self, Self::Uniform { .. } | Self::Index { .. } | Self::Sparse { .. })
    }

    /// Element `at` of buffer number `buffer`.
    #[must_use]
    pub fn element(self, seed: u64, buffer: usize, at: usize) -> f64 {
        let bits = || mixed(Self::stream(seed, buffer) ^ at as u64);
        let index = |below: u32| ((u128::from(bits()) * u128::from(below)) >> 64) as f64;
        match self {
            Self::Zero => 0.0,
            Self::One => 1.0,
            // The bound is rounded to f32 first, so that f32 and f64 start from nearly the same.
            Self::Uniform { bound } => f64::from(((bits() >> 40) as f32 / (1 << 23) as f32 - 1.0) * bound as f32),
            Self::Index { below } => index(below),
            Self::Cycle { period } => (at % period.max(1) as usize) as f64,
            Self::Sparse { below, every } if at as u64 % u64::from(every) == u64::from(every / 2) => index(below),
            Self::Sparse { .. } => -1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_values_fill_the_range_and_the_mantissa() {
        let values: Vec<f32> = (0..10_000).map(|i| Fill::Uniform { bound: 0.5 }.element(7, 3, i) as f32).collect();
        let mean = values.iter().sum::<f32>() / 1e4;
        assert!(mean.abs() < 0.01 && values.iter().all(|v| v.abs() <= 0.5));
        let low_bits = values.iter().filter(|v| v.to_bits() & 0xff != 0).count();
        assert!(low_bits > 5_000, "{low_bits}");
    }

    #[test]
    fn classes_stay_below_their_number_and_other_seeds_give_others() {
        let of = |seed| -> Vec<f64> { (0..100).map(|i| Fill::Index { below: 10 }.element(seed, 0, i)).collect() };
        assert!(of(1).iter().all(|v| (0.0..10.0).contains(v) && v.fract() == 0.0));
        assert_ne!(of(1), of(2));
        let sparse: Vec<f64> = (0..8).map(|i| Fill::Sparse { below: 3, every: 4 }.element(1, 0, i)).collect();
        assert_eq!(sparse.iter().map(|v| *v >= 0.0).collect::<Vec<_>>(), [0, 0, 1, 0, 0, 0, 1, 0].map(|v| v == 1));
    }
}

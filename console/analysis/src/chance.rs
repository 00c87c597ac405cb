//! Where does chance come from? From one small stream of numbers that a seed fixes for ever: the generators of
//! `rand` may change with its version, and a model must train to the same weights next year.

/// SplitMix64 (Steele, Lea, Flood 2014): 64 bits of state, passes `BigCrush`. Not for secrets.
#[derive(Clone, Debug)]
pub struct Chance {
    state: u64,
    spare: Option<f64>,
}

impl Chance {
    /// Stream of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // One scramble, so that seeds 0, 1, 2 start far apart.
        let mut chance = Self { state: seed ^ 0x5851_F42D_4C95_7F2D, spare: None };
        chance.state = chance.bits();
        chance
    }

    /// The published generator as it is, for plans that a stored seed must give again.
    pub(crate) fn plain(seed: u64) -> Self {
        Self { state: seed, spare: None }
    }

    /// Independent stream for the part `tag` of a larger computation.
    #[must_use]
    pub fn branch(seed: u64, tag: u64) -> Self {
        Self::new(Self::new(seed).bits() ^ tag.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// 64 fair bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in `[low, high)`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        (high - low).mul_add(self.unit(), low)
    }

    /// Uniform integer below `n`; 0 when `n` is 0. Bias under `n / 2^64`.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// Standard normal (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        if let Some(value) = self.spare.take() {
            return value;
        }
        let radius = (2.0 * self.exponential()).sqrt();
        let angle = std::f64::consts::TAU * self.unit();
        self.spare = Some(radius * angle.sin());
        radius * angle.cos()
    }

    /// Gamma with mean `shape` and scale 1 (Marsaglia and Tsang 2000). `shape > 0`.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            return self.gamma(shape + 1.0) * (1.0 - self.unit()).powf(1.0 / shape);
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && (1.0 - self.unit()).ln() < 0.5 * x * x + d * (1.0 - v + v.ln()) {
                return d * v;
            }
        }
    }

    /// Poisson with mean `rate` (Knuth in pieces of 30, so that the product never underflows).
    pub fn poisson(&mut self, rate: f64) -> u64 {
        let (mut left, mut count) = (rate, 0);
        while left > 0.0 {
            let limit = (-left.min(30.0)).exp();
            let mut product = 1.0 - self.unit();
            while product > limit {
                count += 1;
                product *= 1.0 - self.unit();
            }
            left -= 30.0;
        }
        count
    }

    /// Puts `items` into a uniformly random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(mut draw: impl FnMut() -> f64) -> (f64, f64) {
        let n = 200_000;
        let values: Vec<f64> = (0..n).map(|_| draw()).collect();
        let mean = values.iter().sum::<f64>() / f64::from(n);
        (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / f64::from(n))
    }

    #[test]
    fn draws_have_the_moments_of_their_laws() {
        let mut c = Chance::new(3);
        for (name, (mean, var), (m, v)) in [
            ("unit", moments(|| c.unit()), (0.5, 1.0 / 12.0)),
            ("exponential", moments(|| c.exponential()), (1.0, 1.0)),
            ("normal", moments(|| c.normal()), (0.0, 1.0)),
            ("gamma 0.4", moments(|| c.gamma(0.4)), (0.4, 0.4)),
            ("gamma 7", moments(|| c.gamma(7.0)), (7.0, 7.0)),
            ("poisson 43", moments(|| c.poisson(43.0) as f64), (43.0, 43.0)),
        ] {
            assert!((mean - m).abs() < 0.02 * m.max(1.0), "{name}: mean {mean}");
            assert!((var - v).abs() < 0.03 * v.max(0.1), "{name}: variance {var}");
        }
    }

    #[test]
    fn the_stream_is_the_published_one() {
        // First outputs of the reference program.
        let mut c = Chance::plain(1_234_567);
        assert_eq!([c.bits(), c.bits()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn a_seed_fixes_the_stream_for_ever() {
        let mut c = Chance::new(7);
        let first = [c.bits(), c.bits()];
        let mut again = Chance::new(7);
        assert_eq!(first, [again.bits(), again.bits()]);
        assert_ne!(Chance::new(8).bits(), first[0]);
        let mut deck: Vec<usize> = (0..52).collect();
        c.shuffle(&mut deck);
        deck.sort_unstable();
        assert_eq!(deck, (0..52).collect::<Vec<_>>());
    }
}

//! Seeded random numbers, the same on every machine.

/// Draws from a seed.
#[derive(Clone, Debug)]
pub struct Draw(u64);

impl Draw {
    /// The same seed draws the same numbers.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Evenly between 0 and 1, neither included (splitmix64).
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let whole = (mixed ^ mixed >> 31) >> 11;
        (whole as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Normal, with mean 0 and standard deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let (radius, turn) = ((-2.0 * self.unit().ln()).sqrt(), std::f64::consts::TAU * self.unit());
        radius * turn.cos()
    }
}

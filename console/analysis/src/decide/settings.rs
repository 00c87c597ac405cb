//! How sure the decision must be: chances of a false finding per run, and the smallest loss that matters.

/// Chances and sizes the decision works with. A loss is the share of speed lost against the peers: 0.2 is 20 % slower.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Chance that a healthy run has any false fail, over all its nodes and metrics.
    pub fail: f64,
    /// Chance that a healthy run has any false warning.
    pub warn: f64,
    /// Losses significantly smaller than this are never findings.
    pub effect: f64,
    /// From this loss on, a node that is slow step after step in a long series is worth a warning.
    pub weak: f64,
    /// A component passes only where a loss of this size would have been detected; 0.5 is a factor of two.
    pub coarsest: f64,
    /// Spreads of peers below this are taken for this: clocks and rounding decide there.
    pub floor: f64,
    /// Share of steps that a healthy node may lose to stalls of the operating system.
    pub glitch: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { fail: 4e-4, warn: 4e-3, effect: 0.05, weak: 0.025, coarsest: 0.5, floor: 0.001, glitch: 0.003 }
    }
}

//! Which way the metrics of a file are better, where the file does not say.

use clap::Args;
use muster_fleet::pattern::matches;
use muster_wire::Direction;

/// Which way the metrics of a file are better.
#[derive(Args, Clone, Debug, Default)]
pub struct Better {
    /// Metrics where higher is better: names with * and ?, separated by commas.
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub higher_is_better: Vec<String>,
    /// Metrics where lower is better.
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub lower_is_better: Vec<String>,
}

impl Better {
    /// Which way `metric` is better; `None` when no pattern speaks of it.
    #[must_use]
    pub fn direction(&self, metric: &str) -> Option<Direction> {
        if matches_any(&self.lower_is_better, metric) {
            Some(Direction::LowerIsBetter)
        } else if matches_any(&self.higher_is_better, metric) {
            Some(Direction::HigherIsBetter)
        } else {
            None
        }
    }
}

/// Whether `name` matches one of `patterns`.
#[must_use]
pub fn matches_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, name))
}

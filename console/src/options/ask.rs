//! About which job the Selector is asked.

use clap::Args;
use muster_tui::snapshot;

/// About which job.
#[derive(Args, Clone, Debug, Default)]
pub struct Ask {
    /// Length of the job in hours, above 0 and below 1,000,000 [default: 24].
    #[arg(long, value_name = "HOURS", value_parser = positive)]
    pub job_hours: Option<f64>,
    /// Acceptable probability that any node fails during the job [default: 0.63].
    #[arg(long, value_name = "PROB", value_parser = share)]
    pub p0: Option<f64>,
    /// Minutes available: best coverage within them, instead of the shortest time that reaches p0.
    #[arg(long, value_name = "MINUTES", value_parser = positive)]
    pub budget: Option<f64>,
}

impl Ask {
    /// Whether any of it was given.
    #[must_use]
    pub const fn given(&self) -> bool {
        self.job_hours.is_some() || self.p0.is_some() || self.budget.is_some()
    }

    /// The question.
    #[must_use]
    pub fn question(&self) -> snapshot::Ask {
        snapshot::Ask { job_hours: self.job_hours.unwrap_or(24.0), budget_minutes: self.budget, p0: self.p0 }
    }
}

/// A number above 0 and below a million: hours of more than a century are a slip.
///
/// # Errors
/// What it must be.
pub fn positive(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|v: &f64| *v > 0.0 && *v < 1e6)
        .ok_or_else(|| "a number above 0 and below 1,000,000".to_owned())
}

/// A number from 0 to 1.
///
/// # Errors
/// What it must be.
pub fn share(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|v| (0.0..=1.0).contains(v)).ok_or_else(|| "a number from 0 to 1".to_owned())
}

//! The simple incident models: the baselines of SuperBench (ATC'24, section 4.2) and the classics they leave out.

mod cox;
mod exponential;
mod kaplan_meier;
mod weibull;

pub use cox::{Cox, Ties};
pub use exponential::{Exponential, Grouped, Grouping};
pub use kaplan_meier::KaplanMeier;
pub use weibull::Weibull;

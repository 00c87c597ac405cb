//! Which pairs are measured at the same time?
//!
//! Every round is a matching: no node is in two pairs, so pairs do not disturb each other at their ends.

mod bisect;
mod circle;
mod matching;
mod quick;
mod rails;
mod sample;

pub use bisect::{Bisection, Step, Visit};
pub use circle::{FullScan, Round};
pub use quick::{Tier, quick_scan};
pub use rails::{Endpoint, RailRound, Rails};
pub use sample::{Coverage, SampledScan};

/// Two nodes, by number; the first one sends first.
pub type Pair = (u32, u32);

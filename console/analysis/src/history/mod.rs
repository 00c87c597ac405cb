//! What changed: a node against its own past and against one earlier run, the fleet against a frozen criterion, one
//! criterion's version against the next; and whether a check is to be suspected before the nodes that fail it.
//!
//! Nothing here reads a clock: times come with the samples, and past verdicts are never touched.

mod breaker;
mod diff;
mod drift;
mod ordinary;
mod since;

pub use breaker::{Alarm, Breaker, Outcomes, Suspicion};
pub use diff::{Change, Difference, diff};
pub use drift::{Drift, Past, Trend, fleet_drift, node_drift};
pub use ordinary::ordinary;
pub use since::{Noise, Shift, Showed, since};

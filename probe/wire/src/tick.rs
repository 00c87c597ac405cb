//! What a node tells of itself while a job runs: which metrics, then their values again and again.

use serde::{Deserialize, Serialize};

use crate::bounded;

/// Look at all metrics again and again, until told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchOrder {
    /// Time from one look to the next, milliseconds; at least 100.
    pub period_ms: u32,
}

/// Which metrics the values of later [`Tick`]s are, in their order. Said before the first, and again when the node has others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Columns {
    /// Names as [`crate::telemetry`] knows them.
    #[serde(deserialize_with = "bounded::columns")]
    pub metrics: Vec<String>,
}

/// One look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tick {
    /// Node's monotonic clock, nanoseconds.
    pub at_ns: u64,
    /// One for each column, in the unit of recordings; NaN where the node has none this time.
    #[serde(deserialize_with = "bounded::ticks")]
    pub values: Vec<f64>,
}

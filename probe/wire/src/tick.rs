//! What a node tells of itself while a job runs: which metrics, then their values again and again.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::bounded;

/// Environment variable of processes that share a machine with those of other nodes, as a demo's do: the name of their node. A probe that
/// has it takes only processes with the same name for the job's.
pub const DEMO_NODE: &str = "MUSTER_DEMO_NODE";

/// Look at all metrics again and again, until told to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchOrder {
    /// Time from one look at everything to the next, milliseconds; at least 100.
    pub period_ms: u32,
    /// Time from one look at the counters of network and GPUs to the next, milliseconds; at least 10. Zero where they are looked at
    /// with everything else only.
    #[serde(default)]
    pub fine_ms: u32,
    /// Id of the Slurm job whose processes are meant; without it, those that use most CPU time stand for the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

/// Which metrics the values of later [`Tick`]s are, in their order: those that are looked at most often first. Said before the first, and
/// again when the node has others.
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
    /// One for each column, in the unit of recordings; NaN where the node has none this time. Fewer than there are columns where only
    /// the first of them were looked at.
    #[serde(deserialize_with = "bounded::ticks")]
    pub values: Vec<f64>,
}

/// How long TCP's packets took to others and back lately, as the kernel measures it on the node's open connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peers {
    /// Node's monotonic clock, nanoseconds.
    pub at_ns: u64,
    /// At most [`crate::limits::PEERS`].
    #[serde(deserialize_with = "bounded::peers")]
    pub trips: Vec<Trip>,
}

/// The slowest connection between two addresses of those on which this node sent something in the last seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trip {
    /// Address of the node itself.
    pub own: IpAddr,
    /// Address at the other end.
    pub peer: IpAddr,
    /// Smoothed round trip (`srtt` of RFC 6298), microseconds.
    pub micros: u32,
}

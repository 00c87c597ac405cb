//! What two nodes are asked to measure between them, and what each of them says about it.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{Fact, Outcome, Series, bounded};

/// Measure with one other node. Both ends get an order of the same visit, the listening end first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairOrder {
    /// Number of the visit; returned with everything that is said about it.
    pub visit: u64,
    /// Name of the other node, for messages.
    pub peer: String,
    /// Address of this node that the measurement uses.
    pub local: IpAddr,
    /// Address of the other node; nobody else is listened to.
    pub remote: IpAddr,
    /// Known to these two ends only.
    pub secret: Secret,
    /// Which end this is.
    pub role: Role,
    /// How much to send.
    pub load: Load,
    /// The two ends must have met within this, milliseconds.
    pub meet_ms: u32,
    /// Everything must be over within this, milliseconds.
    pub limit_ms: u32,
}

/// One end of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Waits for the other; says its port in [`Listening`].
    Listen,
    /// Goes to the other, sends first.
    Connect {
        /// Port that the other end chose.
        port: u16,
        /// When to begin measuring, on this node's monotonic clock, nanoseconds; a moment gone by means at once.
        start_ns: u64,
    },
}

/// How much is sent between two ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Connections that carry data at the same time.
    pub streams: u16,
    /// Time each direction is loaded, milliseconds; none at 0.
    pub duration_ms: u32,
    /// Sizes of the messages whose round trip is timed, bytes.
    pub sizes: Vec<u32>,
    /// Round trips of each size.
    pub round_trips: u32,
    /// What loads the network.
    #[serde(default)]
    pub engine: Engine,
}

/// What loads the network between two nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// Bytes one way, then the other, over TCP.
    #[default]
    Tcp,
    /// The all-reduce of two nodes, both ways at once, over TCP.
    AllReduce {
        /// Size of one operation.
        bytes: u32,
    },
    /// RDMA writes one way, then the other, by perftest's `ib_write_bw` on the nodes.
    Perftest {
        /// How long each way.
        seconds: u32,
    },
}

/// Ability of a node that has an RDMA device.
pub const RDMA: &str = "rdma";
/// Ability of a node that has perftest's `ib_write_bw`.
pub const PERFTEST: &str = "perftest";

/// A word that two ends share. Never shown.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret(pub [u8; 32]);

impl Secret {
    /// Whether `said` is the secret, in time that does not depend on where it differs.
    #[must_use]
    pub fn matches(&self, said: &[u8; 32]) -> bool {
        let differ = self.0.iter().zip(said).fold(0, |differ, (a, b)| differ | (a ^ b));
        std::hint::black_box(differ) == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The listening end of a visit is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listening {
    /// Which visit.
    pub visit: u64,
    /// Where.
    pub port: u16,
}

/// One end's view of a visit that is over: what it received, what it had to send again, what it timed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// Which visit.
    pub visit: u64,
    /// How it ended for this end.
    pub outcome: Outcome,
    /// When measuring began, on the node's monotonic clock, nanoseconds; 0 if it never did.
    pub started_ns: u64,
    /// When it was over.
    pub ended_ns: u64,
    /// What was measured.
    #[serde(deserialize_with = "bounded::series")]
    pub series: Vec<Series>,
    /// The circumstances.
    #[serde(deserialize_with = "bounded::facts")]
    pub facts: Vec<Fact>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_matches_itself_alone_and_is_not_shown() {
        let secret = Secret([7; 32]);
        assert!(secret.matches(&[7; 32]));
        for place in 0..32 {
            let mut other = [7; 32];
            other[place] ^= 0x80;
            assert!(!secret.matches(&other), "{place}");
        }
        assert!(!format!("{secret:?}").contains('7'));
    }
}

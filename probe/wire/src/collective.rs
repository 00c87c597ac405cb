//! What many nodes are asked to compute together, and how much each of them has to carry for it.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Secret;

/// Most nodes of one collective.
pub const RANKS: usize = 4_096;
/// Most sizes of one sweep.
pub const SIZES: usize = 32;
/// Largest size of a sweep, bytes.
pub const COLLECTIVE_BYTES: u64 = 1 << 30;
/// Bytes of an element.
pub const COLLECTIVE_ELEMENT: usize = 4;

/// Bytes that an operation of this size has over so many ranks, as with nccl-tests: whole elements, as many in the block of every rank, and
/// one at least.
#[must_use]
pub fn whole_bytes(size: u64, ranks: usize) -> u64 {
    let step = (COLLECTIVE_ELEMENT * ranks.max(1)) as u64;
    (size / step).max(1) * step
}

/// An operation that all ranks take part in. Sizes and bandwidths are those of nccl-tests (doc/PERFORMANCE.md there).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Collective {
    /// Every rank ends with the sum over all ranks, by a ring. The size is that of one rank's data.
    AllReduce,
    /// Every rank ends with the blocks of all ranks, by a ring. The size is that of what a rank ends with.
    AllGather,
    /// Every rank sends another block to every rank, pair by pair. The size is that of all blocks a rank sends.
    AllToAll,
}

impl Collective {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::AllReduce, Self::AllGather, Self::AllToAll];

    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "allreduce",
            Self::AllGather => "allgather",
            Self::AllToAll => "alltoall",
        }
    }

    /// Name of the benchmark under which its values are kept.
    #[must_use]
    pub const fn benchmark(self) -> &'static str {
        match self {
            Self::AllReduce => "net-allreduce",
            Self::AllGather => "net-allgather",
            Self::AllToAll => "net-alltoall",
        }
    }

    /// Bus bandwidth over algorithm bandwidth (size over time): the share of the size that every rank's link has to
    /// carry each way, so that one number fits any count of ranks.
    #[must_use]
    pub fn bus_factor(self, ranks: usize) -> f64 {
        let share = ranks.saturating_sub(1) as f64 / ranks.max(1) as f64;
        match self {
            Self::AllReduce => 2.0 * share,
            Self::AllGather | Self::AllToAll => share,
        }
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Collective {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let known = || Self::ALL.map(Self::name).join(", ");
        Self::ALL.into_iter().find(|c| c.name() == word).ok_or_else(|| format!("'{word}' is none of {}", known()))
    }
}

/// Open a port for the peers of a collective that is ordered next; answered with [`Listening`](crate::Listening).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenOrder {
    /// Number of the visit that the port is for.
    pub visit: u64,
    /// Address of this node that the measurement uses.
    pub local: IpAddr,
    /// The port is closed again if the collective is not ordered within this, milliseconds.
    pub hold_ms: u32,
}

/// Take part in a collective; ends with [`Paired`](crate::Paired). Every rank gets the same order but for its rank and
/// the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectiveOrder {
    /// Number of the visit, the one that was listened for.
    pub visit: u64,
    /// Known to these ranks only.
    pub secret: Secret,
    /// What to compute.
    pub collective: Collective,
    /// Place of this node among the ranks.
    pub rank: u16,
    /// All nodes, in the order of the ring; 2 to [`RANKS`].
    pub ranks: Vec<Rank>,
    /// Bytes of each operation, in the order they are measured; at most [`SIZES`] of at most [`COLLECTIVE_BYTES`].
    pub sizes: Vec<u64>,
    /// Connections to each neighbour.
    pub streams: u16,
    /// How long each size is measured, milliseconds; a few operations are measured however long they take.
    pub duration_ms: u32,
    /// When to begin, on this node's monotonic clock, nanoseconds.
    pub start_ns: u64,
    /// All must have met within this, milliseconds.
    pub meet_ms: u32,
    /// Each size must be over within this, milliseconds.
    pub limit_ms: u32,
}

/// One node of a collective.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    /// Its name, for messages.
    pub name: String,
    /// Where it is reached; nobody else is listened to.
    pub address: IpAddr,
    /// Port that it opened.
    pub port: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bus_factors_are_those_of_nccl_tests() {
        let of = |collective: Collective, ranks| collective.bus_factor(ranks);
        assert_eq!([2, 4, 8].map(|n| of(Collective::AllReduce, n)), [1.0, 1.5, 1.75]);
        assert_eq!([2, 4, 8].map(|n| of(Collective::AllGather, n)), [0.5, 0.75, 0.875]);
        assert_eq!([1, 4].map(|n| of(Collective::AllToAll, n)), [0.0, 0.75]);
    }

    #[test]
    fn a_size_has_as_many_whole_elements_for_every_rank() {
        assert_eq!([2, 3, 4, 5].map(|ranks| whole_bytes(100, ranks)), [96, 96, 96, 100]);
        assert_eq!((whole_bytes(1, 3), whole_bytes(1 << 20, 4), whole_bytes(7, 0)), (12, 1 << 20, 4));
    }

    #[test]
    fn every_word_is_read_back() {
        assert!(Collective::ALL.into_iter().all(|c| c.name().parse() == Ok(c) && c.to_string() == c.name()));
        let benchmarks = Collective::ALL.map(Collective::benchmark);
        assert_eq!(benchmarks, ["net-allreduce", "net-allgather", "net-alltoall"]);
        assert!("reduce".parse::<Collective>().unwrap_err().contains("allreduce, allgather"));
    }
}

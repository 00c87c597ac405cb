//! What all ranks of the job say of their communicators, put together.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::missed::Missed;
use crate::clock;
use crate::ddp::ask::{self, Answer};
use crate::ddp::board::{Board, Standing};
use crate::ddp::group::groups;

/// The release of NCCL that JSON came with (2.28.7), and whose protocol this is.
pub(super) const RELEASE: &str = "2.28.7+muster";
/// A rank that only stays silent is considered dead so much later than one that is gone.
const SILENT: Duration = Duration::from_secs(20);

/// One rank of a communicator.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// Place in the communicator, from 0.
    pub(super) rank: usize,
    pub(super) host: IpAddr,
    pub(super) pid: u32,
    /// Place among the ranks of its node; there is no GPU.
    pub(super) slot: usize,
    pub(super) there: There,
}

/// What a rank said, if it did.
#[derive(Clone, Debug)]
pub(super) enum There {
    Here { all_reduce: u64, all_gather: u64, failed: bool },
    Missing { dead: bool },
}

/// One communicator.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    pub(super) hash: u64,
    pub(super) members: Vec<Member>,
}

impl Ring {
    pub(super) fn here(&self) -> impl Iterator<Item = (&Member, u64, u64, bool)> {
        self.members.iter().filter_map(|member| match member.there {
            There::Here { all_reduce, all_gather, failed } => Some((member, all_reduce, all_gather, failed)),
            There::Missing { .. } => None,
        })
    }

    pub(super) fn missing(&self) -> impl Iterator<Item = (&Member, bool)> {
        self.members.iter().filter_map(|member| match member.there {
            There::Missing { dead } => Some((member, dead)),
            There::Here { .. } => None,
        })
    }
}

/// The job.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) at_s: u64,
    pub(super) took: Duration,
    /// Ranks that were waited for in vain.
    pub(super) timeouts: usize,
    /// All ranks first, then those of each node.
    pub(super) rings: Vec<Ring>,
}

impl Report {
    /// Asks everybody.
    pub(super) fn gather(board: &Board, patience: Duration, dead: Duration, missed: &Missed) -> Self {
        let begun = Instant::now();
        let everybody: Vec<usize> = (0..board.peers.len()).collect();
        let answers = ask::all(board, &everybody, patience);
        let since: BTreeMap<usize, Option<Duration>> =
            answers.iter().map(|(rank, answer)| (*rank, missed.note(*rank, answer))).collect();
        let is_dead = |rank: usize| {
            let limit = if answers.get(&rank) == Some(&Answer::Silent) { dead + SILENT } else { dead };
            since.get(&rank).copied().flatten().is_some_and(|since| since >= limit)
        };
        let there = |rank: usize, hash: u64| match answers.get(&rank) {
            Some(Answer::Said(standing)) => here(standing, hash),
            _ => There::Missing { dead: is_dead(rank) },
        };
        let rings = rings(board).into_iter().map(|(hash, ranks)| {
            let member = |(place, rank): (usize, &usize)| Member {
                rank: place,
                host: board.peers[*rank].ip(),
                pid: board.pid(*rank),
                slot: slot(board, *rank),
                there: there(*rank, hash),
            };
            Ring { hash, members: ranks.iter().enumerate().map(member).collect() }
        });
        Self {
            at_s: clock::wall_ns() / 1_000_000_000,
            timeouts: answers.values().filter(|answer| **answer == Answer::Silent).count(),
            rings: rings.collect(),
            took: begun.elapsed(),
        }
    }
}

fn here(standing: &Standing, hash: u64) -> There {
    let counts = standing.counts.iter().find(|counts| counts.hash == hash);
    There::Here {
        all_reduce: counts.map_or(0, |counts| counts.all_reduce),
        all_gather: counts.map_or(0, |counts| counts.all_gather),
        failed: standing.failed.is_some(),
    }
}

/// Communicators of all ranks, by number: which those of other nodes are follows from the job.
fn rings(board: &Board) -> Vec<(u64, Vec<usize>)> {
    let world = board.peers.len();
    let mut rings: Vec<(u64, Vec<usize>)> = Vec::new();
    for rank in 0..world {
        for group in groups(rank, world, board.per_node, &board.secret) {
            if !rings.iter().any(|(hash, _)| *hash == group.hash) {
                rings.push((group.hash, group.ranks));
            }
        }
    }
    rings
}

fn slot(board: &Board, rank: usize) -> usize {
    rank % board.per_node
}

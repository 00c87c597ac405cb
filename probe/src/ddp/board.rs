//! What may others ask of this rank while it works, and what ends it from outside?

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};

use super::group::{Group, Op, groups};
use super::recorder::Recorder;

/// Requests to send to and receive from one peer, and those of them that are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) requested: u64,
    pub(super) completed: u64,
}

/// A communicator and what was done in it.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) group: Group,
    all_reduce: AtomicU64,
    all_gather: AtomicU64,
    work: Mutex<BTreeMap<usize, Work>>,
}

impl Kept {
    fn new(group: Group) -> Self {
        Self { group, all_reduce: AtomicU64::new(0), all_gather: AtomicU64::new(0), work: Mutex::default() }
    }

    /// Counts a launch; gives its number among all of this communicator, from 1.
    pub(super) fn launch(&self, op: Op) -> u64 {
        let of = match op {
            Op::AllReduce => &self.all_reduce,
            Op::AllGather => &self.all_gather,
        };
        of.fetch_add(1, Ordering::AcqRel);
        self.launched()
    }

    pub(super) fn launched(&self) -> u64 {
        self.all_reduce.load(Ordering::Acquire) + self.all_gather.load(Ordering::Acquire)
    }

    /// Changes what is known of the requests to and from a peer, a rank of the job.
    pub(super) fn work(&self, peer: usize, change: impl FnOnce(&mut Work)) {
        change(self.work.lock().unwrap_or_else(PoisonError::into_inner).entry(peer).or_default());
    }

    pub(super) fn works(&self) -> BTreeMap<usize, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// How a rank stands, as it tells it to the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Standing {
    pub(super) rank: usize,
    pub(super) pid: u32,
    /// Steps begun.
    pub(super) step: u64,
    /// Why it gave up.
    pub(super) failed: Option<String>,
    /// The operation it is in.
    pub(super) doing: Option<Doing>,
    pub(super) counts: Vec<Counts>,
}

/// An operation under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Doing {
    /// Place in [`Board::kept`]; every rank has all ranks first, then those of its node.
    pub(super) comm: usize,
    /// Number in its communicator, from 1.
    pub(super) seq: u64,
    pub(super) op: Op,
    pub(super) elements: usize,
}

/// Operations launched in one communicator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) hash: u64,
    pub(super) all_reduce: u64,
    pub(super) all_gather: u64,
}

impl Counts {
    pub(super) const fn launched(&self) -> u64 {
        self.all_reduce.saturating_add(self.all_gather)
    }
}

/// What ends a rank from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Signal(&'static str),
    /// Another rank ended the job, and why.
    Told(String),
}

/// Everything of a rank that its threads share.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) rank: usize,
    pub(super) peers: Vec<SocketAddr>,
    /// Ranks of one node.
    pub(super) per_node: usize,
    pub(super) secret: [u8; 32],
    pub(super) kept: Vec<Kept>,
    pub(super) recorder: Mutex<Recorder>,
    /// Ask to end, looked at by everything that waits.
    pub(super) halt: AtomicBool,
    end: OnceLock<End>,
    pids: OnceLock<Vec<u32>>,
    failed: OnceLock<String>,
    accused: OnceLock<Vec<usize>>,
    step: AtomicU64,
    doing: Mutex<Option<Doing>>,
    threads: AtomicU32,
}

impl Board {
    pub(super) fn new(rank: usize, (peers, per_node): (Vec<SocketAddr>, usize), secret: [u8; 32]) -> Self {
        let groups = groups(rank, peers.len(), per_node, &secret);
        Self {
            rank,
            peers,
            per_node,
            secret,
            recorder: Mutex::new(Recorder::default()),
            kept: groups.into_iter().map(Kept::new).collect(),
            halt: AtomicBool::new(false),
            end: OnceLock::new(),
            pids: OnceLock::new(),
            failed: OnceLock::new(),
            accused: OnceLock::new(),
            step: AtomicU64::new(0),
            doing: Mutex::new(None),
            threads: AtomicU32::new(0),
        }
    }

    /// Asks everything here to end. The first reason stays.
    pub(super) fn end(&self, why: End) {
        self.end.get_or_init(|| why);
        self.halt.store(true, Ordering::Release);
    }

    pub(super) fn ended(&self) -> Option<&End> {
        self.end.get()
    }

    /// This rank gives up; `accused` are the ranks that it puts that down to.
    pub(super) fn fail(&self, why: &str, accused: Vec<usize>) {
        self.failed.get_or_init(|| why.to_owned());
        self.accused.get_or_init(|| accused);
    }

    /// Ranks that this one put its end down to.
    pub(super) fn accused(&self) -> &[usize] {
        self.accused.get().map_or(&[], Vec::as_slice)
    }

    /// Whether it was told already why this rank gave up.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.get().is_some()
    }

    pub(super) fn know_pids(&self, pids: Vec<u32>) {
        let _ = self.pids.set(pids);
    }

    /// Process of a rank; 0 until all have met.
    pub(super) fn pid(&self, rank: usize) -> u32 {
        self.pids.get().and_then(|pids| pids.get(rank).copied()).unwrap_or(0)
    }

    pub(super) fn begin_step(&self, step: u64) {
        self.step.store(step, Ordering::Release);
    }

    pub(super) fn step(&self) -> u64 {
        self.step.load(Ordering::Acquire)
    }

    pub(super) fn doing(&self, what: Option<Doing>) {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    /// Takes one of `most` places for a thread that answers somebody; gives it back by [`Board::leave`].
    pub(super) fn enter(&self, most: u32) -> bool {
        let entered = self.threads.fetch_add(1, Ordering::AcqRel) < most;
        if !entered {
            self.leave();
        }
        entered
    }

    pub(super) fn leave(&self) {
        self.threads.fetch_sub(1, Ordering::AcqRel);
    }

    pub(super) fn standing(&self) -> Standing {
        let counts = |kept: &Kept| Counts {
            hash: kept.group.hash,
            all_reduce: kept.all_reduce.load(Ordering::Acquire),
            all_gather: kept.all_gather.load(Ordering::Acquire),
        };
        Standing {
            rank: self.rank,
            pid: std::process::id(),
            step: self.step(),
            failed: self.failed.get().cloned(),
            doing: *self.doing.lock().unwrap_or_else(PoisonError::into_inner),
            counts: self.kept.iter().map(counts).collect(),
        }
    }

    /// A rank as people find it: number, address, process.
    pub(super) fn who(&self, rank: usize) -> String {
        let host = self.peers.get(rank).map_or_else(|| "?".to_owned(), |peer| peer.ip().to_string());
        match self.pid(rank) {
            0 => format!("rank {rank} ({host})"),
            pid => format!("rank {rank} ({host}, process {pid})"),
        }
    }
}

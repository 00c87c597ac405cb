//! What the library has made: regions, queues and queue pairs, with what connects them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use crate::config::{Config, Fault};

/// Memory that an adapter may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
    pub(crate) remote_write: bool,
}

/// `IBV_QPS_RESET` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Reset,
    Initialised,
    Receives,
    Sends,
    Broken,
}

/// A queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) adapter: usize,
    /// The queue of its completions.
    pub(crate) queue: u64,
    pub(crate) depth: u32,
    pub(crate) step: Step,
    pub(crate) peer: u32,
    /// Takes writes of its peer.
    pub(crate) remote_write: bool,
}

/// A write that is under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) pair: u32,
    pub(crate) id: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) bytes: u64,
    /// When it arrives; never where the adapter hangs.
    pub(crate) due: Option<Instant>,
    pub(crate) status: i32,
}

/// What has come over an adapter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) last_due: Option<Instant>,
}

pub(crate) struct State {
    pub(crate) config: Config,
    /// By key, which is that of both sides.
    pub(crate) regions: Vec<Region>,
    /// By number, counted from one.
    pub(crate) pairs: Vec<Pair>,
    /// Writes under way, by queue of completions.
    pub(crate) queues: HashMap<u64, VecDeque<Write>>,
    pub(crate) traffic: Vec<Traffic>,
}

static STATE: OnceLock<Mutex<State>> = OnceLock::new();

/// Everything, made at the first call.
pub(crate) fn state() -> MutexGuard<'static, State> {
    let made = STATE.get_or_init(|| {
        let config = Config::beside_library();
        let traffic = vec![Traffic::default(); config.adapters.len()];
        Mutex::new(State { config, regions: Vec::new(), pairs: Vec::new(), queues: HashMap::new(), traffic })
    });
    made.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    pub(crate) fn faults(&self, adapter: usize) -> &[Fault] {
        self.config.adapters.get(adapter).map_or(&[], |adapter| &adapter.faults)
    }

    /// The error with which a call fails.
    pub(crate) fn refused(&self, adapter: usize, call: &str) -> Option<i32> {
        self.faults(adapter).iter().find_map(|fault| match fault {
            Fault::Refuse(name, code) if name == call => Some(*code),
            _ => None,
        })
    }

    pub(crate) fn pair(&mut self, number: u32) -> Option<&mut Pair> {
        self.pairs.get_mut((number as usize).checked_sub(1)?)
    }

    /// Whether all of this memory is in the region of the key.
    pub(crate) fn covers(&self, key: u32, (at, bytes): (u64, u64)) -> Option<Region> {
        let region = *self.regions.get((key as usize).checked_sub(1)?)?;
        let end = at.checked_add(bytes)?;
        (at >= region.at && end <= region.at + region.bytes).then_some(region)
    }
}

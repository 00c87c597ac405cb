//! NCCL, for those who load this file by its name: operations over all simulated devices, one communicator of all; `nodes` has
//! those of several processes.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what nccl.h says")]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use super::errors::{Code, ILLEGAL_ADDRESS};
use super::nodes::{card_of, is_broken, join_asked, world_of};
use super::queue::Work;
use super::state::{LATENCY, State, state};

pub(super) const SYSTEM: Code = 2;
pub(super) const INTERNAL: Code = 3;
pub(super) const INVALID_USAGE: Code = 5;
pub(super) const REMOTE: Code = 6;
/// Settings from here on are faults of another kind than answering a code.
const FAULTS: Code = 1000;
/// Bytes of the elements that are used: words and floats.
pub(super) const WIDTH: usize = 4;

/// What one rank asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Reduce,
    Gather,
    Send { to: usize },
    Receive { from: usize },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// The card.
    pub(super) rank: usize,
    /// The communicator, where it is of several processes.
    world: Option<usize>,
    stream: usize,
    what: What,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) bytes: usize,
}

/// Calls since the group began, and how deep groups are.
static GROUP: Mutex<(u32, Vec<Call>)> = Mutex::new((0, Vec::new()));

/// What the settings say about a function: the code that it answers.
pub(super) fn fault(name: &str) -> Option<Code> {
    state().config.failing.iter().find(|(function, _)| function == name).map(|(_, code)| *code)
}

fn ask(name: &str, call: Call) -> Code {
    if let Some(code) = fault(name).filter(|code| *code < FAULTS) {
        return code;
    }
    let mut group = GROUP.lock().unwrap_or_else(PoisonError::into_inner);
    group.1.push(call);
    // Outside of a group a call is one of its own; this library's users have one thread for all ranks, so it must not be.
    if group.0 == 0 { INVALID_USAGE } else { 0 }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> Code {
    // SAFETY: the caller promises that it may be written.
    unsafe { version.write(state().config.nccl) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetErrorString(code: Code) -> *const c_char {
    let words: &CStr = match code {
        1 => c"unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        SYSTEM => c"unhandled system error (run with NCCL_DEBUG=INFO for details)",
        INTERNAL => c"internal error - please report this issue to the NCCL developers",
        INVALID_USAGE => c"invalid usage (run with NCCL_DEBUG=WARN for details)",
        REMOTE => c"remote process exited or there was a network error",
        _ => c"unknown result code",
    };
    words.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetLastError(_comm: *const c_void) -> *const c_char {
    c"".as_ptr()
}

/// A communicator is its rank's number, from one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommInitAll(comms: *mut usize, count: c_int, _devices: *const c_int) -> Code {
    if let Some(code) = fault("ncclCommInitAll") {
        return code;
    }
    if let Err(code) = state().choose_ways(&|name| std::env::var(name).ok()) {
        return code;
    }
    for rank in 0..count as usize {
        // SAFETY: the caller gave room for `count` of them.
        unsafe { comms.add(rank).write(rank + 1) };
    }
    // The real one leaves another device current.
    state().current = 0;
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommGetAsyncError(comm: usize, code: *mut Code) -> Code {
    let gone = world_of(comm).is_some_and(is_broken).then_some(REMOTE);
    // SAFETY: the caller promises that it may be written.
    unsafe { code.write(fault("ncclCommGetAsyncError").or(gone).unwrap_or(0)) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupStart() -> Code {
    GROUP.lock().unwrap_or_else(PoisonError::into_inner).0 += 1;
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupEnd() -> Code {
    let calls = {
        let mut group = GROUP.lock().unwrap_or_else(PoisonError::into_inner);
        group.0 = group.0.saturating_sub(1);
        if group.0 > 0 {
            return 0;
        }
        std::mem::take(&mut group.1)
    };
    if let Some(code) = join_asked() {
        return code;
    }
    let mut streams: Vec<usize> = calls.iter().map(|call| call.stream).collect();
    streams.sort_unstable();
    streams.dedup();
    let mut state = state();
    state.current = 0;
    if calls.is_empty() || streams.len() != state.cards.len() {
        return INVALID_USAGE;
    }
    let number = state.meetings.len();
    // A code of a thousand: it never ends.
    let held = state.config.failing.iter().any(|(name, code)| name == "ncclGroupEnd" && *code == 1000);
    let world = calls[0].world;
    state.to_bring.extend(world.map(|_| number));
    state.meetings.push(Meeting { streams: streams.clone(), calls, held, world, sent: false });
    if streams.into_iter().all(|stream| state.enqueue(stream, Work::Meet { number }).is_ok()) { 0 } else { 1 }
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclAllReduce(
    from: u64,
    to: u64,
    count: usize,
    _kind: c_int,
    _operation: c_int,
    comm: usize,
    stream: usize,
) -> Code {
    let bytes = count * WIDTH;
    ask("ncclAllReduce", Call { stream, what: What::Reduce, from, to, bytes, ..Call::of(comm) })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclAllGather(from: u64, to: u64, count: usize, _kind: c_int, comm: usize, stream: usize) -> Code {
    let bytes = count * WIDTH;
    ask("ncclAllGather", Call { stream, what: What::Gather, from, to, bytes, ..Call::of(comm) })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclSend(from: u64, count: usize, _kind: c_int, peer: c_int, comm: usize, stream: usize) -> Code {
    let what = What::Send { to: peer as usize };
    ask("ncclSend", Call { stream, what, from, bytes: count * WIDTH, ..Call::of(comm) })
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclRecv(to: u64, count: usize, _kind: c_int, peer: c_int, comm: usize, stream: usize) -> Code {
    let what = What::Receive { from: peer as usize };
    ask("ncclRecv", Call { stream, what, to, bytes: count * WIDTH, ..Call::of(comm) })
}

/// What all ranks do when all of their streams have come to it.
pub(super) struct Meeting {
    pub(super) streams: Vec<usize>,
    pub(super) calls: Vec<Call>,
    /// It never ends.
    pub(super) held: bool,
    /// The communicator, where it is of several processes, and whether this one has sent its part.
    pub(super) world: Option<usize>,
    pub(super) sent: bool,
}

/// The two ways that a node has beside its network, which its environment can close.
const CLOSED: [&str; 2] = ["NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"];

impl State {
    /// By which ways devices reach each other, as the environment says: through adapters only where nothing else is left.
    fn choose_ways(&mut self, environment: &dyn Fn(&str) -> Option<String>) -> Result<(), Code> {
        let closed = CLOSED.iter().all(|name| environment(name).as_deref() == Some("1"));
        self.adapters = None;
        match (closed, environment("NCCL_NET").as_deref(), self.config.adapters) {
            (false, ..) => {}
            (true, Some("IB"), Some(_)) => {
                let way = || self.config.through_adapters.clone();
                let count = self.cards.len();
                self.adapters = Some((0..count).map(|_| (0..count).map(|_| way()).collect()).collect());
            }
            // The real one would use sockets here.
            (true, None, _) => self.config.link /= 1000.0,
            (true, ..) => return Err(SYSTEM),
        }
        Ok(())
    }

    /// Does what a group of calls asked for; how long that takes, nanoseconds.
    pub(super) fn hold_meeting(&mut self, number: usize) -> Result<f64, Code> {
        if let Some(world) = self.meetings[number].world {
            return self.take_sums(number, world);
        }
        let calls = std::mem::take(&mut self.meetings[number].calls);
        let mut sent = HashMap::new();
        for call in calls.iter().filter(|call| !matches!(call.what, What::Receive { .. })) {
            sent.insert((call.rank, call.what_to()), self.bytes(call.rank, (call.from, call.bytes))?);
        }
        let ranks = self.cards.len();
        let mut slowest = 0.0_f64;
        for call in &calls {
            let rank = call.rank;
            let mut fetch = |from: usize, key: Option<usize>| {
                let mut bytes = sent.get(&(from, key)).cloned().ok_or(INVALID_USAGE)?;
                if from != rank {
                    let own = (&mut self.links, self.config.link);
                    let (ways, speed) = match &mut self.adapters {
                        Some(ways) => (ways, self.config.adapters.unwrap_or(self.config.link)),
                        None => own,
                    };
                    let link = &mut ways[from][rank];
                    link.carry(&mut bytes);
                    slowest = slowest.max(link.time(speed));
                }
                Ok::<Vec<u8>, Code>(bytes)
            };
            let got = match call.what {
                What::Reduce => {
                    let all = (0..ranks).map(|from| fetch(from, None)).collect::<Result<Vec<_>, Code>>()?;
                    summed(&all)
                }
                What::Gather => (0..ranks).map(|from| fetch(from, None)).collect::<Result<Vec<_>, Code>>()?.concat(),
                What::Receive { from } => fetch(from, Some(rank))?,
                What::Send { .. } => continue,
            };
            self.cards[rank].device.memory.write(call.to, &got).map_err(|_| ILLEGAL_ADDRESS)?;
        }
        Ok(LATENCY + slowest)
    }

    pub(super) fn bytes(&mut self, card: usize, (from, size): (u64, usize)) -> Result<Vec<u8>, Code> {
        self.cards[card].device.memory.read(from, size).map(<[u8]>::to_vec).map_err(|_| ILLEGAL_ADDRESS)
    }
}

impl Call {
    fn of(comm: usize) -> Self {
        Self { rank: card_of(comm), world: world_of(comm), stream: 0, what: What::Reduce, from: 0, to: 0, bytes: 0 }
    }

    /// For whom it is, if for one only.
    const fn what_to(&self) -> Option<usize> {
        match self.what {
            What::Send { to } => Some(to),
            _ => None,
        }
    }
}

/// The sum of floats, in the order of the ranks.
pub(super) fn summed(all: &[Vec<u8>]) -> Vec<u8> {
    let float = |bytes: &[u8]| bytes.try_into().map_or(f32::NAN, f32::from_le_bytes);
    let words = all.first().map_or(0, Vec::len) / WIDTH;
    let sum = |word: usize| all.iter().map(|of| float(&of[word * WIDTH..(word + 1) * WIDTH])).sum::<f32>();
    (0..words).flat_map(|word| sum(word).to_le_bytes()).collect()
}

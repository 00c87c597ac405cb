//! Writes from posting to completion: when they arrive, what arrives, and with which status they end.

use std::time::{Duration, Instant};

use crate::config::Fault;
use crate::memory;
use crate::state::{State, Step, Write};

/// `IBV_WC_SUCCESS`, `IBV_WC_LOC_PROT_ERR`, `IBV_WC_WR_FLUSH_ERR`, `IBV_WC_REM_ACCESS_ERR`, `IBV_WC_RETRY_EXC_ERR`.
const SUCCESS: i32 = 0;
const OWN_MEMORY: i32 = 4;
const FLUSHED: i32 = 5;
const THEIR_MEMORY: i32 = 10;
const NO_ANSWER: i32 = 12;
/// Errors of the system.
const ENOMEM: i32 = 12;
const EINVAL: i32 = 22;

/// One write as it is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) pair: u32,
    pub(crate) id: u64,
    /// Address, length, key.
    pub(crate) from: (u64, u64, u32),
    /// Address, key.
    pub(crate) to: (u64, u32),
}

impl State {
    /// Takes a write; the error of the system if it cannot be taken.
    pub(crate) fn post(&mut self, wish: Wish) -> Result<(), i32> {
        let pair = *self.pair(wish.pair).ok_or(EINVAL)?;
        if pair.step < Step::Sends {
            return Err(EINVAL);
        }
        let under_way =
            self.queues.get(&pair.queue).map_or(0, |queue| queue.iter().filter(|w| w.pair == wish.pair).count());
        if under_way >= pair.depth as usize {
            return Err(ENOMEM);
        }
        let status = self.fate(wish);
        let hangs = self
            .faults(pair.adapter)
            .iter()
            .any(|fault| matches!(fault, Fault::Hang(after) if self.traffic[pair.adapter].messages >= *after));
        let due = (!hangs).then(|| self.arrival(pair.adapter, wish.from.1));
        if self.traffic[pair.adapter].messages == 0 {
            self.count(pair.adapter);
        }
        self.traffic[pair.adapter].messages += 1;
        if status != SUCCESS
            && let Some(pair) = self.pair(wish.pair)
        {
            pair.step = Step::Broken;
        }
        let Wish { pair: number, id, from: (from, bytes, _), to: (to, _) } = wish;
        let write = Write { pair: number, id, from, to, bytes, due, status };
        self.queues.entry(pair.queue).or_default().push_back(write);
        Ok(())
    }

    /// Lets the counters of an adapter grow, where a test shows them to this process.
    fn count(&self, adapter: usize) {
        let name = &self.config.adapters[adapter].name;
        for fault in self.faults(adapter) {
            if let Fault::Counts(counter, by) = fault {
                let file = format!("/sys/class/infiniband/{name}/ports/1/hw_counters/{counter}");
                let before = std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse::<u64>().ok());
                let written = std::fs::write(&file, format!("{}\n", before.unwrap_or(0) + by));
                written.unwrap_or_else(|why| eprintln!("{file}: {why}"));
            }
        }
    }

    /// With which status a write will end.
    fn fate(&mut self, wish: Wish) -> i32 {
        let Some(pair) = self.pair(wish.pair).map(|pair| *pair) else { return FLUSHED };
        if pair.step == Step::Broken {
            return FLUSHED;
        }
        let messages = self.traffic[pair.adapter].messages;
        for fault in self.faults(pair.adapter) {
            if let Fault::Status { status, after } = fault
                && messages >= *after
            {
                return *status;
            }
        }
        let peer = self.pair(pair.peer).map(|peer| *peer);
        let Some(peer) = peer.filter(|peer| peer.peer == wish.pair && peer.step >= Step::Receives) else {
            return NO_ANSWER;
        };
        let (from, bytes, own_key) = wish.from;
        if self.covers(own_key, (from, bytes)).is_none() {
            return OWN_MEMORY;
        }
        let target = self.covers(wish.to.1, (wish.to.0, bytes));
        if target.is_some_and(|region| region.remote_write) && peer.remote_write { SUCCESS } else { THEIR_MEMORY }
    }

    /// When so many bytes will have come over an adapter: one after the other.
    fn arrival(&mut self, adapter: usize, bytes: u64) -> Instant {
        let factor = |fault: &Fault| if let Fault::Slow(factor) = fault { *factor } else { 1.0 };
        let factor: f64 = self.faults(adapter).iter().map(factor).product();
        let takes = Duration::from_secs_f64(bytes as f64 * factor / self.config.rate);
        let now = Instant::now();
        let due = self.traffic[adapter].last_due.map_or(now, |last| last.max(now)) + takes;
        self.traffic[adapter].last_due = Some(due);
        due
    }

    /// At most `most` completions of a queue: number and status.
    pub(crate) fn poll(&mut self, queue: u64, most: usize) -> Vec<(u64, i32)> {
        let mut done = Vec::new();
        let now = Instant::now();
        while done.len() < most {
            let next = self.queues.get_mut(&queue).and_then(|queue| {
                let arrived = queue.front()?.due.is_some_and(|due| due <= now);
                if arrived { queue.pop_front() } else { None }
            });
            let Some(write) = next else { break };
            if write.status == SUCCESS {
                self.carry(write);
            }
            done.push((write.id, write.status));
        }
        done
    }

    /// Moves the bytes of a write that has arrived.
    fn carry(&mut self, Write { pair, from, to, bytes, .. }: Write) {
        let Some(adapter) = self.pair(pair).map(|pair| pair.adapter) else { return };
        let mut arrived = memory::read(from, bytes);
        let begin = self.traffic[adapter].bytes;
        self.traffic[adapter].bytes += bytes;
        for fault in self.faults(adapter) {
            if let Fault::Flip { bit, every } = fault {
                let first = ((begin + 1).next_multiple_of(*every) - 1 - begin) as usize;
                arrived.iter_mut().skip(first).step_by(*every as usize).for_each(|byte| *byte ^= 1 << (bit % 8));
            }
        }
        memory::write(to, &arrived);
    }
}

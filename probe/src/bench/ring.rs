//! Deep-queue direct I/O through io_uring, where kernel and sandbox allow it.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use io_uring::squeue::Entry;
use io_uring::{IoUring, Probe, opcode, types};
use rustix::io::Errno;

use super::aligned::Aligned;
use super::disk::{Access, Position};
use super::scratch::Scratch;
use crate::steps::Halt;

/// Most requests in flight.
const DEPTH: usize = 16;

/// A ring and the memory its requests use.
pub(super) struct Ring {
    ring: IoUring,
    /// Freed only when no request is in flight.
    buffer: ManuallyDrop<Aligned>,
    in_flight: usize,
}

impl Drop for Ring {
    #[expect(unsafe_code, reason = "ManuallyDrop keeps the buffer while the kernel may still write to it")]
    fn drop(&mut self) {
        if self.in_flight == 0 {
            // SAFETY: dropped here once and never used again; no request in flight refers to it.
            unsafe { ManuallyDrop::drop(&mut self.buffer) }
        }
    }
}

impl Ring {
    /// A ring that has read from `scratch`, or `None` where io_uring is missing, forbidden or too old.
    pub(super) fn new(scratch: &Scratch, buffer_len: usize) -> Result<Option<Self>, Halt> {
        let Ok(ring) = IoUring::new(DEPTH as u32) else { return Ok(None) };
        let mut probe = Probe::new();
        let known = ring.submitter().register_probe(&mut probe).is_ok()
            && probe.is_supported(opcode::Read::CODE)
            && probe.is_supported(opcode::Write::CODE);
        if !known {
            return Ok(None);
        }
        let mut ring = Self { ring, buffer: ManuallyDrop::new(Aligned::new(buffer_len)?), in_flight: 0 };
        let trial = Access { write: false, random: false, block: 4096, depth: 1 };
        let mut start = Position::default();
        Ok(ring.step(scratch, trial, (&mut start, Duration::ZERO)).is_ok().then_some(ring))
    }

    /// Keeps `access.depth` requests in flight for `length`, then waits for the last. Requests per second.
    pub(super) fn step(
        &mut self,
        scratch: &Scratch,
        access: Access,
        (position, length): (&mut Position, Duration),
    ) -> Result<f64, Halt> {
        let start = Instant::now();
        let mut done = 0usize;
        let mut error = None;
        let mut free = [0; DEPTH];
        let depth = access.depth.min(DEPTH);
        free[..depth].iter_mut().zip(0..).for_each(|(slot, number)| *slot = number);
        let mut freed = depth;
        loop {
            if error.is_none() && (done == 0 || start.elapsed() < length) {
                for slot in &free[..freed] {
                    let offset = position.next(access, scratch.size);
                    self.push(scratch, access, *slot, offset)?;
                }
            }
            if self.in_flight == 0 {
                break;
            }
            self.wait()?;
            freed = 0;
            for entry in self.ring.completion() {
                self.in_flight -= 1;
                match usize::try_from(entry.result()) {
                    Ok(bytes) if bytes == access.block => done += 1,
                    Ok(_) => error = error.or(Some(Errno::IO)),
                    Err(_) => error = error.or(Some(Errno::from_raw_os_error(-entry.result()))),
                }
                free[freed] = entry.user_data() as usize;
                freed += 1;
            }
        }
        let spent = start.elapsed().as_secs_f64();
        error.map_or(Ok(done as f64 / spent), |e| Err(scratch.halt(access.verb(), e)))
    }

    #[expect(unsafe_code, reason = "a queue entry points into memory that must outlive the request")]
    fn push(&mut self, scratch: &Scratch, access: Access, slot: usize, offset: u64) -> Result<(), Halt> {
        let block = &mut self.buffer.bytes()[slot * access.block..(slot + 1) * access.block];
        let (pointer, len) = (block.as_mut_ptr(), block.len() as u32);
        let fd = types::Fd(scratch.as_fd().as_raw_fd());
        let entry: Entry = if access.write {
            opcode::Write::new(fd, pointer, len).offset(offset).build()
        } else {
            opcode::Read::new(fd, pointer, len).offset(offset).build()
        };
        // SAFETY: the block lies in `self.buffer`, which is kept until `in_flight` is zero again, and a slot is
        // used again only after its completion. The file is open for as long as `scratch` is borrowed; the kernel
        // takes its own reference when the entry is submitted, which `step` does before it returns.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) };
        pushed.map_err(|_| Halt::Failed("the queue of io_uring is full".into()))?;
        self.in_flight += 1;
        Ok(())
    }

    fn wait(&self) -> Result<(), Halt> {
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => return Ok(()),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Halt::Failed(format!("io_uring does not answer: {e}"))),
            }
        }
    }

    #[cfg(test)]
    pub(super) fn fill_buffer(&mut self, byte: u8) {
        self.buffer.bytes().fill(byte);
    }
}

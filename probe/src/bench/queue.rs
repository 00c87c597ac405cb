//! Many direct requests in flight at once, whatever carries them to the kernel, and how long each of them took.

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Instant;

use rustix::io::Errno;

use super::aio::Aio;
use super::aligned::Aligned;
use super::disk::{Access, Position};
use super::latencies::Latencies;
use super::ring::Ring;
use super::scratch::Scratch;
use crate::steps::Halt;

/// A request for the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) fd: RawFd,
    pub(super) write: bool,
    pub(super) offset: u64,
    /// Where its bytes are or go.
    pub(super) memory: *mut u8,
    pub(super) len: u32,
    /// Says which request it is when it is done.
    pub(super) slot: usize,
}

/// What carries requests to the kernel.
pub(super) trait Carrier {
    /// Puts a request in line.
    ///
    /// # Safety
    /// `memory` is valid for `len` bytes, and used for nothing else, until `wait` has told of its slot; `fd` stays open
    /// as long.
    #[expect(unsafe_code, reason = "the kernel writes to the memory later")]
    unsafe fn push(&mut self, request: Request) -> Result<(), Halt>;

    /// Hands the line to the kernel, waits for at least one request to be done and tells slot and result (bytes, or a
    /// negative error number) of each that is.
    fn wait(&mut self, told: &mut dyn FnMut(usize, i64)) -> Result<(), Halt>;
}

/// The kernel's interfaces for it, the better one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Uring,
    Libaio,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Uring, Self::Libaio];

    /// As fio calls it.
    pub(super) const fn engine(self) -> &'static str {
        match self {
            Self::Uring => "io_uring",
            Self::Libaio => "libaio",
        }
    }
}

/// Requests of one job: their memory, and which are in flight.
pub(super) struct Queue<'a> {
    scratch: &'a Scratch,
    access: Access,
    carrier: Box<dyn Carrier>,
    /// Freed only when no request is in flight.
    buffer: ManuallyDrop<Aligned>,
    free: Vec<usize>,
    /// When each slot's request began, and whether in this step.
    began: Vec<(Instant, bool)>,
}

impl Drop for Queue<'_> {
    #[expect(unsafe_code, reason = "ManuallyDrop keeps the buffer while the kernel may still write to it")]
    fn drop(&mut self) {
        if self.in_flight() == 0 {
            // SAFETY: dropped here once and never used again; no request in flight refers to it.
            unsafe { ManuallyDrop::drop(&mut self.buffer) }
        }
    }
}

impl<'a> Queue<'a> {
    /// A queue for `access` that has read from `scratch`, or `None` where this interface is missing, forbidden or too
    /// old.
    pub(super) fn new(kind: Kind, scratch: &'a Scratch, access: Access) -> Result<Option<Self>, Halt> {
        let depth = access.depth.max(1);
        let carrier: Option<Box<dyn Carrier>> = match kind {
            Kind::Uring => Ring::new(depth).map(|ring| Box::new(ring) as Box<dyn Carrier>),
            Kind::Libaio => Aio::new(depth).map(|aio| Box::new(aio) as Box<dyn Carrier>),
        };
        let Some(carrier) = carrier else { return Ok(None) };
        let buffer = ManuallyDrop::new(Aligned::new(depth * access.block)?);
        let (free, began) = ((0..depth).rev().collect(), vec![(Instant::now(), false); depth]);
        let mut queue = Self { scratch, access, carrier, buffer, free, began };
        queue.push((false, 0))?;
        Ok(queue.reap(&mut Latencies::default()).is_ok().then_some(queue))
    }

    fn in_flight(&self) -> usize {
        self.began.len() - self.free.len()
    }

    /// Fills the queue and waits until at least one request is done. Requests done.
    pub(super) fn turn(&mut self, position: &mut Position, latencies: &mut Latencies) -> Result<f64, Halt> {
        while !self.free.is_empty() {
            let next = position.next(self.access, self.scratch.size);
            self.push(next)?;
        }
        self.reap(latencies)
    }

    /// A new step begins: what is in flight was begun before it.
    pub(super) fn begin(&mut self) {
        self.began.iter_mut().for_each(|(_, inside)| *inside = false);
    }

    /// Waits for everything in flight.
    pub(super) fn drain(&mut self) -> Result<(), Halt> {
        let mut nobody = Latencies::default();
        while self.in_flight() > 0 {
            self.reap(&mut nobody)?;
        }
        Ok(())
    }

    #[expect(unsafe_code, reason = "a request points into memory that must outlive it")]
    fn push(&mut self, (write, offset): (bool, u64)) -> Result<(), Halt> {
        let Some(slot) = self.free.pop() else { return Err(Halt::Failed("no request is free".into())) };
        let block = self.access.block;
        let memory = self.buffer.bytes()[slot * block..(slot + 1) * block].as_mut_ptr();
        let fd = self.scratch.as_fd().as_raw_fd();
        self.began[slot] = (Instant::now(), true);
        // SAFETY: the block lies in `self.buffer`, which is kept until nothing is in flight, and a slot is used again
        // only after `wait` has told of it. The file is borrowed for longer than the queue lives; the kernel takes
        // its own reference when the request is handed over.
        unsafe { self.carrier.push(Request { fd, write, offset, memory, len: block as u32, slot }) }
    }

    fn reap(&mut self, latencies: &mut Latencies) -> Result<f64, Halt> {
        let (block, free, began) = (self.access.block as i64, &mut self.free, &self.began);
        let mut done = 0.0;
        let mut error = None;
        let mut now = None;
        self.carrier.wait(&mut |slot, result| {
            let (start, inside) = began[slot];
            let spent = now.get_or_insert_with(Instant::now).duration_since(start).as_nanos() as u64;
            if inside { &mut latencies.inside } else { &mut latencies.across }.add(spent);
            free.push(slot);
            match result {
                bytes if bytes == block => done += 1.0,
                bytes if bytes >= 0 => error = error.or(Some(Errno::IO)),
                code => error = error.or(Some(Errno::from_raw_os_error(-code as i32))),
            }
        })?;
        error.map_or(Ok(done), |e| Err(self.scratch.halt(self.access.verb(), e)))
    }

    #[cfg(test)]
    pub(super) fn fill_buffer(&mut self, byte: u8) {
        self.buffer.bytes().fill(byte);
    }
}

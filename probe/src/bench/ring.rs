//! Requests through io_uring, where kernel and sandbox allow it.

use io_uring::squeue::Entry;
use io_uring::{IoUring, Probe, opcode, types};

use super::queue::{Carrier, Request};
use crate::steps::Halt;

/// A ring.
pub(super) struct Ring(IoUring);

impl Ring {
    /// A ring for `depth` requests, or `None` where io_uring is missing, forbidden or too old.
    pub(super) fn new(depth: usize) -> Option<Self> {
        let entries = u32::try_from(depth.next_power_of_two()).ok()?;
        // Completions are told when we ask for them, not by interrupting the work: kernels since 6.1 can do that.
        let deferred = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(entries);
        let ring = deferred.or_else(|_| IoUring::new(entries)).ok()?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe).ok()?;
        (probe.is_supported(opcode::Read::CODE) && probe.is_supported(opcode::Write::CODE)).then_some(Self(ring))
    }
}

impl Carrier for Ring {
    #[expect(unsafe_code, reason = "a queue entry points into memory that must outlive the request")]
    unsafe fn push(&mut self, request: Request) -> Result<(), Halt> {
        let Request { fd, write, offset, memory, len, slot } = request;
        let entry: Entry = if write {
            opcode::Write::new(types::Fd(fd), memory, len).offset(offset).build()
        } else {
            opcode::Read::new(types::Fd(fd), memory, len).offset(offset).build()
        };
        // SAFETY: the caller keeps memory and file until the request is told to be done.
        let pushed = unsafe { self.0.submission().push(&entry.user_data(slot as u64)) };
        pushed.map_err(|_| Halt::Failed("the queue of io_uring is full".into()))
    }

    fn wait(&mut self, told: &mut dyn FnMut(usize, i64)) -> Result<(), Halt> {
        loop {
            match self.0.submit_and_wait(1) {
                Ok(_) => break,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Halt::Failed(format!("io_uring does not answer: {e}"))),
            }
        }
        self.0.completion().for_each(|entry| told(entry.user_data() as usize, i64::from(entry.result())));
        Ok(())
    }
}

//! Requests through the older asynchronous interface of Linux (io_submit), which is there where io_uring is switched off.

use std::io;

use super::queue::{Carrier, Request};
use crate::steps::Halt;

/// `struct iocb` of linux/aio_abi.h, little endian.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Control {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    fd: u32,
    memory: u64,
    len: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    result_fd: u32,
}

/// `struct io_event` of the same.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    control: u64,
    result: i64,
    result2: i64,
}

const READ: u16 = 0;
const WRITE: u16 = 1;

/// A context of the kernel.
pub(super) struct Aio {
    context: libc::c_ulong,
    line: Vec<Control>,
    events: Vec<Event>,
}

impl Aio {
    /// A context for `depth` requests, or `None` where there is none to be had.
    #[expect(unsafe_code, reason = "libc has no wrapper for io_setup")]
    pub(super) fn new(depth: usize) -> Option<Self> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes one word to `context`, which is zero as it must be.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, depth as libc::c_ulong, &raw mut context) };
        (made == 0).then(|| Self { context, line: Vec::with_capacity(depth), events: vec![Event::default(); depth] })
    }

    #[expect(unsafe_code, reason = "libc has no wrapper for io_submit")]
    fn submit(&mut self) -> Result<(), Halt> {
        let mut controls: Vec<*mut Control> = self.line.iter_mut().map(|control| &raw mut *control).collect();
        let mut from = 0;
        while from < controls.len() {
            let rest = &mut controls[from..];
            // SAFETY: `rest` points to control blocks that live until the call returns, which is all the kernel asks;
            // what those point to is kept by whoever pushed them.
            let taken = unsafe { libc::syscall(libc::SYS_io_submit, self.context, rest.len(), rest.as_mut_ptr()) };
            match usize::try_from(taken) {
                Ok(taken) => from += taken,
                Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Halt::Failed(format!("io_submit: {}", io::Error::last_os_error()))),
            }
        }
        self.line.clear();
        Ok(())
    }
}

impl Carrier for Aio {
    #[expect(unsafe_code, reason = "the kernel writes to the memory later")]
    unsafe fn push(&mut self, request: Request) -> Result<(), Halt> {
        self.line.push(Control {
            data: request.slot as u64,
            opcode: if request.write { WRITE } else { READ },
            fd: request.fd as u32,
            memory: request.memory as u64,
            len: u64::from(request.len),
            offset: request.offset as i64,
            ..Control::default()
        });
        Ok(())
    }

    #[expect(unsafe_code, reason = "libc has no wrapper for io_getevents")]
    fn wait(&mut self, told: &mut dyn FnMut(usize, i64)) -> Result<(), Halt> {
        self.submit()?;
        let (most, events) = (self.events.len(), self.events.as_mut_ptr());
        let forever = std::ptr::null_mut::<libc::timespec>();
        let count = loop {
            // SAFETY: `events` has room for `most` events.
            let count = unsafe { libc::syscall(libc::SYS_io_getevents, self.context, 1_i64, most, events, forever) };
            match usize::try_from(count) {
                Ok(count) => break count,
                Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Halt::Failed(format!("io_getevents: {}", io::Error::last_os_error()))),
            }
        };
        self.events.iter().take(count).for_each(|event| told(event.data as usize, event.result));
        Ok(())
    }
}

impl Drop for Aio {
    #[expect(unsafe_code, reason = "libc has no wrapper for io_destroy")]
    fn drop(&mut self) {
        // SAFETY: the context is ours and used no more. The call waits for what is in flight.
        let _nothing_to_do_about_it = unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

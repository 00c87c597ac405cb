//! The one place that talks to libibverbs: loaded where it is, every answer checked.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::process::{Resource, getrlimit};

use super::layout::{
    ACTIVE, CompletionQueue, Context, Gid, MemoryRegion, PortAttributes, QueuePair, QueuePairAttributes, QueuePairWish,
};
use crate::driver::Trouble;
use crate::library::Library;

/// The library, and one adapter that was opened by it.
#[derive(Debug)]
pub(super) struct Adapter {
    library: Library,
    context: *mut Context,
    domain: *mut c_void,
}

/// What an error of the system says about `what`.
fn failed(what: &str, error: &io::Error) -> Trouble {
    Trouble::Failed(format!("{what}: {error}"))
}

#[expect(unsafe_code, reason = "a C interface, called by its names in infiniband/verbs.h")]
impl Adapter {
    /// Loads the library and opens the adapter called `name`.
    ///
    /// # Errors
    /// `Absent` without the library; `NotRun` where it does not see the adapter or may not open it.
    pub(super) fn open(name: &str) -> Result<Self, Trouble> {
        type List = unsafe extern "C" fn(*mut c_int) -> *mut *mut c_void;
        let library = Library::find(&["libibverbs.so.1"])?;
        let adapter = Self { library, context: std::ptr::null_mut(), domain: std::ptr::null_mut() };
        let mut count = 0;
        // SAFETY: writes the number of elements of the list that it returns.
        let list = unsafe { adapter.function::<List>("ibv_get_device_list")?(&raw mut count) };
        if list.is_null() {
            let error = io::Error::last_os_error();
            return Err(Trouble::NotRun(format!("{} lists no adapter: {error}", adapter.library.name)));
        }
        for index in 0..usize::try_from(count).unwrap_or(0) {
            // SAFETY: the list has `count` elements. It is kept, since the adapter is opened by one of them.
            let device = unsafe { *list.add(index) };
            if adapter.name_of(device)? == name {
                return adapter.enter(device);
            }
        }
        let library = adapter.library.name;
        Err(Trouble::NotRun(format!("{library} does not see it: is the library of its driver installed?")))
    }

    fn name_of(&self, device: *mut c_void) -> Result<String, Trouble> {
        type Name = unsafe extern "C" fn(*mut c_void) -> *const c_char;
        // SAFETY: the device comes from the library's list; the name is a text that it owns.
        let name = unsafe { CStr::from_ptr(self.function::<Name>("ibv_get_device_name")?(device)) };
        Ok(name.to_string_lossy().into_owned())
    }

    fn enter(mut self, device: *mut c_void) -> Result<Self, Trouble> {
        type Open = unsafe extern "C" fn(*mut c_void) -> *mut Context;
        type Domain = unsafe extern "C" fn(*mut Context) -> *mut c_void;
        // SAFETY: the device comes from the library's list, which is kept.
        self.context = unsafe { self.function::<Open>("ibv_open_device")?(device) };
        if self.context.is_null() {
            let error = io::Error::last_os_error();
            let told = format!("ibv_open_device: {error}");
            let denied = error.kind() == io::ErrorKind::PermissionDenied;
            return Err(if denied { Trouble::NotRun(told) } else { Trouble::Failed(told) });
        }
        // SAFETY: the adapter is open.
        self.domain = unsafe { self.function::<Domain>("ibv_alloc_pd")?(self.context) };
        if self.domain.is_null() {
            return Err(failed("ibv_alloc_pd", &io::Error::last_os_error()));
        }
        Ok(self)
    }

    /// Where the library lies.
    pub(super) fn path(&self) -> &str {
        &self.library.path
    }

    /// The function called `name`; `F` is its signature in the header.
    fn function<F: Copy>(&self, name: &str) -> Result<F, Trouble> {
        // SAFETY: every caller in this file gives the header's signature.
        unsafe { self.library.function(name) }
    }

    /// What the adapter says of port number `port`.
    ///
    /// # Errors
    /// `NotRun` where the port is not active.
    pub(super) fn port(&self, port: u8) -> Result<PortAttributes, Trouble> {
        type Query = unsafe extern "C" fn(*mut Context, u8, *mut PortAttributes) -> c_int;
        let mut found = PortAttributes::default();
        // SAFETY: the adapter is open, and what is written to is longer than what any header calls the attributes.
        let code = unsafe { self.function::<Query>("ibv_query_port")?(self.context, port, &raw mut found) };
        match code {
            0 if found.state == ACTIVE => Ok(found),
            0 => Err(Trouble::NotRun("the port is not active".to_owned())),
            code => Err(failed("ibv_query_port", &io::Error::from_raw_os_error(code))),
        }
    }

    /// Entry `index` of the port's table of addresses.
    pub(super) fn gid(&self, port: u8, index: u8) -> Result<Gid, Trouble> {
        type Query = unsafe extern "C" fn(*mut Context, u8, c_int, *mut Gid) -> c_int;
        let mut gid = Gid::default();
        // SAFETY: the adapter is open; 16 bytes are written.
        let code = unsafe { self.function::<Query>("ibv_query_gid")?(self.context, port, index.into(), &raw mut gid) };
        if code == 0 { Ok(gid) } else { Err(failed("ibv_query_gid", &io::Error::last_os_error())) }
    }

    /// Lets the adapter read and write memory; both keys of it.
    ///
    /// # Errors
    /// `NotRun` where this login may not lock so much memory.
    pub(super) fn register(&self, at: *mut c_void, bytes: usize, access: c_int) -> Result<(u32, u32), Trouble> {
        type Register = unsafe extern "C" fn(*mut c_void, *mut c_void, usize, c_int) -> *mut MemoryRegion;
        let register = self.function::<Register>("ibv_reg_mr")?;
        // SAFETY: the caller's memory is as long as it says, and stays.
        self.keys("ibv_reg_mr", unsafe { register(self.domain, at, bytes, access) }, bytes)
    }

    /// The same for memory of another device, by its dma-buf; `at` is where it lies for that device.
    ///
    /// # Errors
    /// `Failed` where the library is too old to know of it (rdma-core 34) or the adapter's driver refuses.
    pub(super) fn register_shared(
        &self,
        file: &OwnedFd,
        (at, bytes): (u64, usize),
        access: c_int,
    ) -> Result<(u32, u32), Trouble> {
        type Register = unsafe extern "C" fn(*mut c_void, u64, usize, u64, c_int, c_int) -> *mut MemoryRegion;
        let register = self.function::<Register>("ibv_reg_dmabuf_mr")?;
        // SAFETY: the file is open; the region keeps a reference of its own to what is behind it.
        let region = unsafe { register(self.domain, 0, bytes, at, file.as_raw_fd(), access) };
        self.keys("ibv_reg_dmabuf_mr", region, bytes)
    }

    fn keys(&self, what: &str, region: *mut MemoryRegion, bytes: usize) -> Result<(u32, u32), Trouble> {
        if !region.is_null() {
            // SAFETY: a region that the library made and that is never taken back.
            return Ok(unsafe { ((*region).local_key, (*region).remote_key) });
        }
        let error = io::Error::last_os_error();
        let told = format!("{what} of {} KiB: {error}", bytes >> 10);
        if error.kind() != io::ErrorKind::OutOfMemory {
            return Err(Trouble::Failed(told));
        }
        let most = getrlimit(Resource::Memlock).current;
        let most = most.map_or("no limit of its own".to_owned(), |bytes| format!("at most {} KiB", bytes >> 10));
        Err(Trouble::NotRun(format!("{told}; this login may lock {most} (ulimit -l)")))
    }

    /// A queue for so many completions.
    pub(super) fn completion_queue(&self, entries: u32) -> Result<*mut CompletionQueue, Trouble> {
        type Create =
            unsafe extern "C" fn(*mut Context, c_int, *mut c_void, *mut c_void, c_int) -> *mut CompletionQueue;
        let create = self.function::<Create>("ibv_create_cq")?;
        let none = std::ptr::null_mut;
        // SAFETY: the adapter is open; there is no channel for events, so its place is empty.
        let queue = unsafe { create(self.context, entries as c_int, none(), none(), 0) };
        if queue.is_null() { Err(failed("ibv_create_cq", &io::Error::last_os_error())) } else { Ok(queue) }
    }

    /// A queue pair.
    pub(super) fn queue_pair(&self, wish: &mut QueuePairWish) -> Result<*mut QueuePair, Trouble> {
        type Create = unsafe extern "C" fn(*mut c_void, *mut QueuePairWish) -> *mut QueuePair;
        // SAFETY: the domain is of the open adapter, and the wish names queues of it.
        let pair = unsafe { self.function::<Create>("ibv_create_qp")?(self.domain, wish) };
        if pair.is_null() { Err(failed("ibv_create_qp", &io::Error::last_os_error())) } else { Ok(pair) }
    }

    /// Sets the attributes of a queue pair that `mask` names; `what` says to which end.
    pub(super) fn modify(
        &self,
        pair: *mut QueuePair,
        attributes: &mut QueuePairAttributes,
        mask: c_int,
        what: &str,
    ) -> Result<(), Trouble> {
        type Modify = unsafe extern "C" fn(*mut QueuePair, *mut QueuePairAttributes, c_int) -> c_int;
        // SAFETY: the pair is of this adapter, and the attributes are read before the call returns.
        let code = unsafe { self.function::<Modify>("ibv_modify_qp")?(pair, attributes, mask) };
        let error = || failed(&format!("ibv_modify_qp, {what}"), &io::Error::from_raw_os_error(code));
        if code == 0 { Ok(()) } else { Err(error()) }
    }

    /// The library's words for the status of a completion.
    pub(super) fn status(&self, status: c_int) -> String {
        type Words = unsafe extern "C" fn(c_uint) -> *const c_char;
        let Ok(words) = self.function::<Words>("ibv_wc_status_str") else { return String::new() };
        // SAFETY: a text that the library owns, or nothing.
        let words = unsafe { words(status as c_uint) };
        if words.is_null() {
            return String::new();
        }
        // SAFETY: not null, so a text.
        unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
    }
}

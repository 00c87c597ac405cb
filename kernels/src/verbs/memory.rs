//! Memory that an adapter reads and writes: made once, told to the adapter, never moved.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};

use super::layout::{LOCAL_WRITE, REMOTE_WRITE};
use super::library::Adapter;
use crate::driver::Trouble;

/// As the kernel maps it.
const PAGE: usize = 4096;

/// Memory of the host.
pub(super) struct Host {
    at: *mut u32,
    words: usize,
    /// Keys of the adapter for it: of this side, of the other.
    pub(super) keys: (u32, u32),
}

impl Host {
    /// `bytes` of zeroes, a multiple of the size of a page, that `adapter` may read and write. Pages come from the NUMA node of
    /// the thread that calls.
    pub(super) fn new(adapter: &Adapter, bytes: usize) -> Result<Self, Trouble> {
        let layout = Layout::from_size_align(bytes.next_multiple_of(PAGE).max(PAGE), PAGE);
        let layout = layout.map_err(|error| Trouble::Failed(error.to_string()))?;
        // SAFETY: the layout is not empty.
        #[expect(unsafe_code, reason = "memory that stays where it is")]
        let at = unsafe { alloc_zeroed(layout) }.cast::<u32>();
        if at.is_null() {
            handle_alloc_error(layout);
        }
        let mut host = Self { at, words: bytes / 4, keys: (0, 0) };
        // Pages that nobody wrote to would come where the adapter's driver touches them first.
        host.words().fill(0);
        host.keys = adapter.register(at.cast(), bytes, LOCAL_WRITE | REMOTE_WRITE)?;
        Ok(host)
    }

    /// Its address for the adapter.
    pub(super) fn address(&self) -> u64 {
        self.at as u64
    }

    /// All of its words. The caller has no write under way.
    pub(super) fn words(&mut self) -> &mut [u32] {
        // SAFETY: allocated with this length, initialised, borrowed from `self`; the adapter writes only while a write is waited for.
        #[expect(unsafe_code, reason = "memory that stays where it is")]
        unsafe {
            std::slice::from_raw_parts_mut(self.at, self.words)
        }
    }
}

//! Host memory that the driver gives and takes back.

use std::ffi::c_void;

use cudarc::driver::result;

use super::{Trouble, failed};

/// Host memory that the GPU reaches directly.
#[derive(Debug)]
pub struct Pinned {
    at: *mut c_void,
    words: usize,
}

#[expect(unsafe_code, reason = "memory of the driver")]
impl Pinned {
    /// `words` words, zeroed.
    ///
    /// # Errors
    /// When the system does not give them.
    pub fn new(words: usize) -> Result<Self, Trouble> {
        // SAFETY: a context is current; the memory is written before it is read.
        let at = unsafe { result::malloc_host(words * 4, 0) }.map_err(failed("cuMemHostAlloc"))?;
        // SAFETY: the driver gave that many bytes.
        unsafe { std::ptr::write_bytes(at.cast::<u8>(), 0, words * 4) };
        Ok(Self { at, words })
    }

    /// The same as bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: as of `words`; any byte is one.
        unsafe { std::slice::from_raw_parts_mut(self.at.cast(), self.words * 4) }
    }

    /// The words.
    pub fn words(&mut self) -> &mut [u32] {
        // SAFETY: allocated by the driver with this length, initialised, aligned to a page, and ours alone.
        unsafe { std::slice::from_raw_parts_mut(self.at.cast(), self.words) }
    }
}

#[expect(unsafe_code, reason = "memory of the driver")]
impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: allocated by `new`, freed once. An error here belongs to something that was reported before.
        let _ = unsafe { result::free_host(self.at) };
    }
}

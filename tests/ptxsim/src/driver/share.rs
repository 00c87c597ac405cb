//! Memory of simulated devices for other libraries that exist in tests: by a handle, as real drivers share it, and by its bytes.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what cuda.h says")]

use std::ffi::{c_char, c_int, c_uint};
use std::fs::File;
use std::io::Write;
use std::os::fd::{FromRawFd, IntoRawFd};

use super::errors::{Code, INVALID_VALUE, SUCCESS};
use super::state::state;
use crate::memory::Memory;

unsafe extern "C" {
    fn memfd_create(name: *const c_char, flags: c_uint) -> c_int;
}

/// A file that holds address and length of the memory, which is all that the other side needs here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetHandleForAddressRange(
    handle: *mut c_int,
    at: u64,
    bytes: usize,
    kind: c_int,
    _flags: u64,
) -> Code {
    // SAFETY: a name, and no flags.
    let file = unsafe { memfd_create(c"dma-buf".as_ptr(), 0) };
    if kind != 1 || file < 0 {
        return INVALID_VALUE;
    }
    // SAFETY: just opened, and nobody else has it.
    let mut file = unsafe { File::from_raw_fd(file) };
    let text = [at.to_le_bytes(), (bytes as u64).to_le_bytes()].concat();
    if file.write_all(&text).is_err() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller has room for a file descriptor.
    unsafe { handle.write(file.into_raw_fd()) };
    SUCCESS
}

/// Whether `at` is memory of a simulated device.
#[unsafe(no_mangle)]
pub extern "C" fn muster_ptxsim_owns(at: u64) -> bool {
    Memory::device_of(at).is_some_and(|card| card < state().cards.len())
}

/// Copies device memory to the host; false where it is not allocated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muster_ptxsim_read(at: u64, to: *mut u8, bytes: usize) -> bool {
    let mut state = state();
    let Some(card) = Memory::device_of(at).and_then(|card| state.cards.get_mut(card)) else { return false };
    let Ok(found) = card.device.memory.read(at, bytes) else { return false };
    // SAFETY: the caller has room for so many bytes.
    unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), to, bytes) };
    true
}

/// Copies host memory to a device; false where it is not allocated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muster_ptxsim_write(at: u64, from: *const u8, bytes: usize) -> bool {
    let mut state = state();
    let Some(card) = Memory::device_of(at).and_then(|card| state.cards.get_mut(card)) else { return false };
    // SAFETY: the caller has so many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(from, bytes) };
    card.device.memory.write(at, bytes).is_ok()
}

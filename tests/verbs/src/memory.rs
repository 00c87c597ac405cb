//! Bytes at both ends of a write: of this program, or of GPUs that another library simulates.

#![expect(unsafe_code, reason = "an adapter reads and writes memory behind the program's back")]

use std::ffi::{CStr, c_char, c_int, c_void};

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `RTLD_NOW` and `RTLD_NOLOAD`.
const IF_LOADED: c_int = 2 | 4;

/// A function of the simulated GPUs' driver, where this program has loaded it.
fn of_driver(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a file name; nothing is loaded.
    let library = unsafe { dlopen(c"libcuda.so.1".as_ptr(), IF_LOADED) };
    if library.is_null() {
        return None;
    }
    // SAFETY: an open library and a name.
    let found = unsafe { dlsym(library, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Whether this is memory of a simulated GPU.
pub(crate) fn is_gpu(at: u64) -> bool {
    let Some(owns) = of_driver(c"muster_ptxsim_owns") else { return false };
    // SAFETY: the signature of that function.
    let owns = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(u64) -> bool>(owns) };
    owns(at)
}

/// What lies at `at`.
pub(crate) fn read(at: u64, bytes: u64) -> Vec<u8> {
    let mut found = vec![0; bytes as usize];
    if !is_gpu(at) {
        // SAFETY: in a region that the program registered, which is its promise that it is its memory.
        unsafe { std::ptr::copy_nonoverlapping(at as *const u8, found.as_mut_ptr(), found.len()) };
    } else if let Some(read) = of_driver(c"muster_ptxsim_read") {
        type Read = unsafe extern "C" fn(u64, *mut u8, usize) -> bool;
        // SAFETY: the signature of that function, and room for what it reads.
        let done = unsafe { std::mem::transmute::<*mut c_void, Read>(read)(at, found.as_mut_ptr(), found.len()) };
        assert!(done, "a region of a GPU that is no longer allocated");
    }
    found
}

/// Puts `bytes` to `at`.
pub(crate) fn write(at: u64, bytes: &[u8]) {
    if !is_gpu(at) {
        // SAFETY: as for reading.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
    } else if let Some(write) = of_driver(c"muster_ptxsim_write") {
        type Write = unsafe extern "C" fn(u64, *const u8, usize) -> bool;
        // SAFETY: the signature of that function, and so many bytes.
        let done = unsafe { std::mem::transmute::<*mut c_void, Write>(write)(at, bytes.as_ptr(), bytes.len()) };
        assert!(done, "a region of a GPU that is no longer allocated");
    }
}

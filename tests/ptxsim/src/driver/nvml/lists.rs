//! Sensors that are lists: retired pages, places with errors, processes.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what nvml.h says")]

use std::ffi::c_uint;

use super::answer::{Code, SUCCESS, VERSION_MISMATCH, count, sensed};

/// More entries than there is room for.
const INSUFFICIENT_SIZE: Code = 7;

/// `nvmlProcessInfo_t`.
#[repr(C)]
pub struct Process {
    pid: c_uint,
    memory: u64,
    instances: [c_uint; 2],
}

/// `nvmlEccSramUniqueUncorrectedErrorCounts_v1_t`, of which nobody asks for the entries.
#[repr(C)]
pub struct Unique {
    version: c_uint,
    count: c_uint,
    entries: usize,
}

/// Writes `found` into the room for `number` entries.
unsafe fn list<T>(found: Vec<T>, number: *mut c_uint, to: *mut T) -> Code {
    // SAFETY: the caller promises both.
    unsafe {
        let room = number.read() as usize;
        number.write(found.len() as c_uint);
        if found.len() > room {
            return INSUFFICIENT_SIZE;
        }
        found.into_iter().enumerate().for_each(|(at, entry)| to.add(at).write(entry));
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetRetiredPages(
    device: usize,
    cause: c_uint,
    number: *mut c_uint,
    pages: *mut u64,
) -> Code {
    match sensed(device, if cause == 0 { "retired_single" } else { "retired_double" }) {
        // SAFETY: passed on from the caller.
        Ok(count) => unsafe { list((0..count).map(|page| page << 16).collect(), number, pages) },
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts(device: usize, to: *mut Unique) -> Code {
    // SAFETY: the caller promises a record.
    let to = unsafe { &mut *to };
    match sensed(device, "sram_unique") {
        _ if to.version != (1 << 24 | size_of::<Unique>() as u32) => VERSION_MISMATCH,
        Ok(count) => {
            to.count = count as c_uint;
            if count == 0 { SUCCESS } else { INSUFFICIENT_SIZE }
        }
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    device: usize,
    number: *mut c_uint,
    processes: *mut Process,
) -> Code {
    // Others are all called 1, whoever that is on this node; a program that loaded the driver is on it as well.
    let mut pids = vec![1; count(device, "others") as usize];
    if std::fs::read_to_string("/proc/self/maps").unwrap_or_default().contains("/libcuda.so") {
        pids.push(std::process::id());
    }
    let process = |pid| Process { pid, memory: 0, instances: [c_uint::MAX; 2] };
    // SAFETY: passed on from the caller.
    unsafe { list(pids.into_iter().map(process).collect(), number, processes) }
}

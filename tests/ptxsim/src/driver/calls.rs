//! The exported calls. Signatures are those of `cuda.h`; handles are numbers, never addresses of ours.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what cuda.h says")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::errors::{Code, INVALID_DEVICE, INVALID_VALUE, NOT_FOUND, OUT_OF_MEMORY, SUCCESS, words};
use super::state::{State, state};

fn done(result: Result<(), Code>) -> Code {
    result.err().unwrap_or(SUCCESS)
}

/// Writes a result where the caller wants it.
unsafe fn give<T>(to: *mut T, value: T) -> Code {
    if to.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null, and the caller promises that it may be written.
    unsafe { to.write(value) };
    SUCCESS
}

/// Blocks for ever where a kernel does not end, as the real call would.
fn wait() -> Code {
    loop {
        let mut state = state();
        if !state.card().hangs {
            return done(state.card().usable());
        }
        drop(state);
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: c_uint) -> Code {
    state().config.init
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { give(version, state().config.version) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { give(count, state().cards.len() as c_int) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> Code {
    if ordinal < 0 || ordinal as usize >= state().cards.len() {
        return INVALID_DEVICE;
    }
    // SAFETY: passed on from the caller.
    unsafe { give(device, ordinal) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, _device: c_int) -> Code {
    let text = c"PTX simulator".to_bytes_with_nul();
    if (length as usize) < text.len() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gave room for `length` bytes.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), name.cast(), text.len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { give(uuid, self::uuid(device as usize)) }
}

/// Identity of a device.
pub(super) fn uuid(device: usize) -> [u8; 16] {
    let mut bytes = *b"muster-ptxsim-00";
    bytes[15] = b'0' + device as u8;
    bytes
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: c_int) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { cuDeviceGetUuid_v2(uuid, device) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) -> Code {
    let config = &state().config;
    let answer = match attribute {
        1 => config.threads as c_int,
        16 => config.sms as c_int,
        // A capability that no machine code is shipped for: the PTX is loaded.
        75 => 12,
        76 => 9,
        // Shared memory of a block with consent.
        97 => 227 << 10,
        _ => 0,
    };
    // SAFETY: passed on from the caller.
    unsafe { give(value, answer) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { give(context, device as usize + 1) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: usize) -> Code {
    let mut state = state();
    match context.checked_sub(1).filter(|index| *index < state.cards.len()) {
        Some(index) => {
            state.current = index;
            SUCCESS
        }
        None => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Code {
    let (left, all) = state().card().device.memory.room();
    // SAFETY: passed on from the caller.
    unsafe { give(free, left as usize).max(give(total, all as usize)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadData(module: *mut usize, image: *const c_char) -> Code {
    // SAFETY: an image is PTX that ends with a NUL, or a cubin, whose header has one.
    let bytes = unsafe { CStr::from_ptr(image) }.to_bytes();
    if bytes.starts_with(b"\x7fELF") {
        return super::errors::NO_BINARY;
    }
    match state().load(bytes) {
        // SAFETY: passed on from the caller.
        Ok(handle) => unsafe { give(module, handle) },
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) -> Code {
    // SAFETY: the caller gives a C string.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let state = state();
    let Some(mut range) = module.checked_sub(1).and_then(|m| state.modules.get(m).cloned()) else {
        return INVALID_VALUE;
    };
    match range.find(|index| state.kernels[*index].name() == name) {
        // SAFETY: passed on from the caller.
        Some(index) => unsafe { give(function, index + 1) },
        None => NOT_FOUND,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuFuncSetAttribute(_function: usize, _attribute: c_int, _value: c_int) -> Code {
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernel(
    function: usize,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    _stream: usize,
    params: *const *const u8,
    _extra: *const c_void,
) -> Code {
    let mut state = state();
    let Some(index) = function.checked_sub(1).filter(|index| *index < state.kernels.len()) else {
        return INVALID_VALUE;
    };
    let layout = state.kernels[index].param_layout().to_vec();
    let mut block = vec![0; layout.last().map_or(0, |(at, size)| at + size)];
    for (number, (at, size)) in layout.into_iter().enumerate() {
        // SAFETY: the caller gives one pointer per parameter, each to as many bytes as the kernel declares.
        let value = unsafe { std::slice::from_raw_parts(*params.add(number), size) };
        block[at..at + size].copy_from_slice(value);
    }
    let shape = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z], shared as usize);
    done(state.launch(index, shape, &block))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(stream: *mut usize, _flags: c_uint) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { give(stream, 1) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(_stream: usize) -> Code {
    wait()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(event: *mut usize, _flags: c_uint) -> Code {
    let mut state = state();
    state.events.push(0.0);
    // SAFETY: passed on from the caller.
    unsafe { give(event, state.events.len()) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: usize, _stream: usize) -> Code {
    let mut state = state();
    let now = state.card().now;
    let usable = state.card().usable();
    match event.checked_sub(1).and_then(|index| state.events.get_mut(index)) {
        Some(at) => *at = now,
        None => return INVALID_VALUE,
    }
    done(usable)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(ms: *mut f32, start: usize, end: usize) -> Code {
    let state = state();
    let at = |event: usize| event.checked_sub(1).and_then(|index| state.events.get(index).copied());
    match (at(start), at(end)) {
        // SAFETY: passed on from the caller.
        (Some(start), Some(end)) => unsafe { give(ms, ((end - start) * 1e-6) as f32) },
        _ => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(at: *mut u64, size: usize) -> Code {
    let mut state = state();
    if state.card().device.faults.full {
        return OUT_OF_MEMORY;
    }
    match state.card().device.memory.allocate(size as u64) {
        // SAFETY: passed on from the caller.
        Some(address) => unsafe { give(at, address) },
        None => OUT_OF_MEMORY,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(at: u64) -> Code {
    if state().card().device.memory.free(at) { SUCCESS } else { INVALID_VALUE }
}

fn copied(state: &mut State, bytes: usize, result: Result<(), crate::trap::Why>) -> Code {
    state.card().copied(bytes);
    result.map_or(INVALID_VALUE, |()| done(state.card().usable()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: *const u8, bytes: usize, _stream: usize) -> Code {
    // SAFETY: the caller promises that many bytes.
    let from = unsafe { std::slice::from_raw_parts(from, bytes) };
    let mut state = state();
    let result = state.card().device.memory.write(to, from);
    copied(&mut state, bytes, result)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoHAsync_v2(to: *mut u8, from: u64, bytes: usize, _stream: usize) -> Code {
    // SAFETY: the caller promises room for that many bytes.
    let to = unsafe { std::slice::from_raw_parts_mut(to, bytes) };
    let mut state = state();
    let result = state.card().device.memory.read(from, bytes).map(|found| to.copy_from_slice(found));
    copied(&mut state, bytes, result)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, _stream: usize) -> Code {
    let mut state = state();
    let memory = &mut state.card().device.memory;
    let result = memory.read(from, bytes).map(<[u8]>::to_vec).and_then(|found| memory.write(to, &found));
    copied(&mut state, bytes / 2, result)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostAlloc(at: *mut *mut c_void, size: usize, _flags: c_uint) -> Code {
    // The length is kept in front, for the call that gives it back.
    let mut block = vec![0_u64; size.div_ceil(8) + 2];
    block[0] = block.len() as u64;
    let first = Box::leak(block.into_boxed_slice()).as_mut_ptr();
    // SAFETY: the block has at least two words; the pointer for the caller is passed on.
    unsafe { give(at, first.add(2).cast()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemFreeHost(at: *mut c_void) -> Code {
    // SAFETY: came from `cuMemHostAlloc`, which put the length two words before it.
    unsafe {
        let first = at.cast::<u64>().sub(2);
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(first, *first as usize)));
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(code: Code, text: *mut *const c_char) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { give(text, words(code).0.as_ptr()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(code: Code, text: *mut *const c_char) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { give(text, words(code).1.as_ptr()) }
}

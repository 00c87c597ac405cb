//! The exported calls. Signatures are those of `cuda.h`; handles are numbers, never addresses of ours.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what cuda.h says")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::errors::{
    Code, INVALID_DEVICE, INVALID_HANDLE, INVALID_VALUE, NOT_FOUND, NOT_READY, OUT_OF_MEMORY, SUCCESS, words,
};
use super::queue::Work;
use super::state::state;

/// The card of a function's handle is above these bits.
const FUNCTION: u32 = 32;

pub(super) fn done(result: Result<(), Code>) -> Code {
    result.err().unwrap_or(SUCCESS)
}

/// Writes a result where the caller wants it.
pub(super) unsafe fn give<T>(to: *mut T, value: T) -> Code {
    if to.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null, and the caller promises that it may be written.
    unsafe { to.write(value) };
    SUCCESS
}

/// Waits for a stream, for ever where a kernel does not end, as the real call would.
fn wait(stream: usize) -> Code {
    loop {
        let mut state = state();
        let Some(card) = state.card_of(stream) else { return INVALID_HANDLE };
        if state.drain(stream) {
            return done(state.cards[card].usable());
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
    let config = &state().config;
    let card = config.cards.iter().find(|(at, _)| *at == device).map_or(0, |(_, card)| *card);
    let mut bytes = *b"muster-ptxsi-000";
    (bytes[13], bytes[14], bytes[15]) = (b'0' + config.identity, b'0' + card, b'0' + device as u8);
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
        // L2.
        38 => 128 << 10,
        // A capability that no machine code is shipped for: the PTX is loaded.
        75 => 12,
        76 => 9,
        // Shared memory of a block with consent.
        97 => 227 << 10,
        // Memory as dma-buf.
        124 => c_int::from(config.dma_buf),
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
    let Some(module) = module.checked_sub(1).and_then(|m| state.modules.get(m)) else {
        return INVALID_VALUE;
    };
    match module.kernels.clone().find(|index| state.kernels[*index].name() == name) {
        // SAFETY: passed on from the caller.
        Some(index) => unsafe { give(function, module.card << FUNCTION | (index + 1)) },
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
    stream: usize,
    params: *const *const u8,
    _extra: *const c_void,
) -> Code {
    let mut state = state();
    let (card, number) = (function >> FUNCTION, function & (usize::MAX >> FUNCTION));
    let Some(index) = number.checked_sub(1).filter(|index| *index < state.kernels.len()) else {
        return INVALID_VALUE;
    };
    if state.card_of(stream) != Some(card) {
        return INVALID_HANDLE;
    }
    let layout = state.kernels[index].param_layout().to_vec();
    let mut block = vec![0; layout.last().map_or(0, |(at, size)| at + size)];
    for (number, (at, size)) in layout.into_iter().enumerate() {
        // SAFETY: the caller gives one pointer per parameter, each to as many bytes as the kernel declares.
        let value = unsafe { std::slice::from_raw_parts(*params.add(number), size) };
        block[at..at + size].copy_from_slice(value);
    }
    let shape = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z], shared as usize);
    done(state.enqueue(stream, Work::Kernel { index, shape, params: block }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(stream: *mut usize, _flags: c_uint) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { give(stream, state().new_stream()) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: usize) -> Code {
    wait(stream)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(stream: usize, event: usize, _flags: c_uint) -> Code {
    done(state().follow(event, stream))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(event: *mut usize, _flags: c_uint) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { give(event, state().new_event()) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: usize, stream: usize) -> Code {
    done(state().record(event, stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventQuery(event: usize) -> Code {
    let mut state = state();
    state.settle();
    let Some(card) = state.card_of_event(event) else { return INVALID_HANDLE };
    match state.cards[card].usable() {
        Ok(()) if state.happened(event).is_none() => NOT_READY,
        usable => done(usable),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(ms: *mut f32, start: usize, end: usize) -> Code {
    let state = state();
    match (state.happened(start), state.happened(end)) {
        // SAFETY: passed on from the caller.
        (Some(start), Some(end)) => unsafe { give(ms, ((end - start) * 1e-6) as f32) },
        _ => NOT_READY,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(at: *mut u64, size: usize) -> Code {
    let mut state = state();
    let sealed = state.ready > 0 && !state.config.takes_beside_graphs;
    if sealed || state.card().device.faults.full {
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
    let mut state = state();
    state.settle();
    let card = crate::memory::Memory::device_of(at).and_then(|card| state.cards.get_mut(card));
    if card.is_some_and(|card| card.device.memory.free(at)) { SUCCESS } else { INVALID_VALUE }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: *const u8, bytes: usize, stream: usize) -> Code {
    // SAFETY: the caller promises that many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(from, bytes) }.to_vec();
    done(state().enqueue(stream, Work::Put { to, bytes }))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoHAsync_v2(to: usize, from: u64, size: usize, stream: usize) -> Code {
    done(state().enqueue(stream, Work::Get { to, from, size }))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, size: usize, stream: usize) -> Code {
    done(state().enqueue(stream, Work::Copy { to, from, size }))
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

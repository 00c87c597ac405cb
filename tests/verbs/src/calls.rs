//! The functions of `infiniband/verbs.h`, by the library's names. Structures are read and written at the places that the header has.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what verbs.h says")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;

use crate::config::Fault;
use crate::memory;
use crate::queue::Wish;
use crate::state::{Pair, Region, State, Step, state};

const EFAULT: c_int = 14;
const EINVAL: c_int = 22;
/// `IBV_ACCESS_REMOTE_WRITE`.
const REMOTE_WRITE: c_int = 2;
/// `IBV_MTU_4096`.
const MTU: c_int = 5;
const LID: u16 = 7;
/// The index of the only address that is worth using.
const GID_INDEX: c_int = 3;
const GID: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 0, 1];

/// `struct ibv_context` as far as callers may look: the device, then the table of operations.
#[repr(C)]
struct Context {
    device: *mut c_void,
    operations: [*const c_void; 64],
    adapter: usize,
}

/// `struct ibv_cq`, `struct ibv_qp` and `struct ibv_mr`: words of 8 bytes, the first of which is the context.
type Object = [u64; 16];
/// Where the number of a queue pair, and the keys of a region, lie in theirs, bytes.
const NUMBER: usize = 52;
const KEYS: [usize; 2] = [36, 40];
/// Where the two operations lie in the table.
const POLL: usize = 11;
const POST: usize = 25;

fn fail(code: c_int) {
    // SAFETY: the thread's own error number.
    unsafe { *__errno_location() = code };
}

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
}

/// # Safety
/// `at` points to an object with a `T` so many bytes from its begin.
unsafe fn read<T: Copy>(at: *const c_void, offset: usize) -> T {
    // SAFETY: the caller promises it.
    unsafe { at.cast::<u8>().add(offset).cast::<T>().read_unaligned() }
}

/// # Safety
/// As [`read`], and nobody else uses the object meanwhile.
unsafe fn write<T: Copy>(at: *mut c_void, offset: usize, value: T) {
    // SAFETY: the caller promises it.
    unsafe { at.cast::<u8>().add(offset).cast::<T>().write_unaligned(value) };
}

/// A new object of a context; it lives as long as the program.
fn object(context: *mut Context) -> *mut c_void {
    let object: &mut Object = Box::leak(Box::default());
    object[0] = context as u64;
    std::ptr::from_mut(object).cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_list(count: *mut c_int) -> *mut *mut c_void {
    let adapters = state().config.adapters.len();
    // A device is its number, counted from one.
    let mut list: Vec<*mut c_void> = (1..=adapters).map(|number| number as *mut c_void).collect();
    list.push(null_mut());
    if !count.is_null() {
        // SAFETY: the caller promises that it may be written.
        unsafe { count.write(adapters as c_int) };
    }
    list.leak().as_mut_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_get_device_name(device: *mut c_void) -> *const c_char {
    let name = state().config.adapters.get((device as usize).wrapping_sub(1)).map(|adapter| adapter.name.clone());
    name.and_then(|name| CString::new(name).ok()).map_or(std::ptr::null(), |name| name.into_raw().cast_const())
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_open_device(device: *mut c_void) -> *mut c_void {
    let adapter = (device as usize).wrapping_sub(1);
    if let Some(code) = state().refused(adapter, "ibv_open_device") {
        fail(code);
        return null_mut();
    }
    let mut operations = [std::ptr::null(); 64];
    operations[POLL] = poll_cq as *const c_void;
    operations[POST] = post_send as *const c_void;
    std::ptr::from_mut(Box::leak(Box::new(Context { device, operations, adapter }))).cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_port(context: *mut c_void, port: u8, attributes: *mut c_void) -> c_int {
    // SAFETY: a context that was opened above.
    let adapter = unsafe { (*context.cast::<Context>()).adapter };
    let state = state();
    let Some(known) = state.config.adapters.get(adapter).filter(|_| port == 1) else { return EINVAL };
    let active = if known.faults.contains(&Fault::Down) { 1 } else { 4 };
    // SAFETY: the caller has room for a `struct ibv_port_attr`.
    unsafe {
        write::<c_int>(attributes, 0, active);
        write::<c_int>(attributes, 8, MTU);
        write::<u32>(attributes, 20, 1 << 30);
        write::<u16>(attributes, 34, if known.ethernet { 0 } else { LID });
        write::<u8>(attributes, 46, if known.ethernet { 2 } else { 1 });
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_gid(_context: *mut c_void, _port: u8, index: c_int, gid: *mut [u8; 16]) -> c_int {
    // SAFETY: the caller has room for 16 bytes.
    unsafe { gid.write(if index == GID_INDEX { GID } else { [0; 16] }) };
    0
}

/// A protection domain is its context.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_alloc_pd(context: *mut c_void) -> *mut c_void {
    context
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_create_cq(
    context: *mut c_void,
    _entries: c_int,
    _own: *mut c_void,
    _channel: *mut c_void,
    _vector: c_int,
) -> *mut c_void {
    object(context.cast())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_mr(domain: *mut c_void, at: *mut c_void, bytes: usize, access: c_int) -> *mut c_void {
    // SAFETY: a context that was opened above.
    let adapter = unsafe { (*domain.cast::<Context>()).adapter };
    // Asked before the own lock is taken: the driver has one of its own.
    let is_gpu = memory::is_gpu(at as u64);
    let mut state = state();
    let unknown = (is_gpu && !state.faults(adapter).contains(&Fault::PeerMemory)).then_some(EFAULT);
    if let Some(code) = state.refused(adapter, "ibv_reg_mr").or(unknown) {
        fail(code);
        return null_mut();
    }
    region(&mut state, domain, Region { at: at as u64, bytes: bytes as u64, remote_write: access & REMOTE_WRITE != 0 })
}

/// Makes a region with its keys.
fn region(state: &mut State, domain: *mut c_void, of: Region) -> *mut c_void {
    state.regions.push(of);
    let (region, key) = (object(domain.cast()), state.regions.len() as u32);
    // SAFETY: an object has room for both.
    KEYS.into_iter().for_each(|offset| unsafe { write(region, offset, key) });
    region
}

/// Memory of a simulated GPU: the file holds its address and length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_dmabuf_mr(
    domain: *mut c_void,
    offset: u64,
    bytes: usize,
    iova: u64,
    file: c_int,
    access: c_int,
) -> *mut c_void {
    // SAFETY: a context that was opened above.
    let adapter = unsafe { (*domain.cast::<Context>()).adapter };
    let told = std::fs::read(format!("/proc/self/fd/{file}")).ok();
    let whole = [iova.to_le_bytes(), (bytes as u64).to_le_bytes()].concat();
    let mut state = state();
    let wrong = (offset != 0 || told != Some(whole)).then_some(EINVAL);
    if let Some(code) = state.refused(adapter, "ibv_reg_dmabuf_mr").or(wrong) {
        fail(code);
        return null_mut();
    }
    region(&mut state, domain, Region { at: iova, bytes: bytes as u64, remote_write: access & REMOTE_WRITE != 0 })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_qp(domain: *mut c_void, wish: *mut c_void) -> *mut c_void {
    // SAFETY: a context that was opened above, and a `struct ibv_qp_init_attr`.
    let (adapter, queue, depth, kind) = unsafe {
        ((*domain.cast::<Context>()).adapter, read::<u64>(wish, 8), read::<u32>(wish, 32), read::<c_int>(wish, 52))
    };
    let mut state = state();
    // Only reliable connections.
    let refused = state.refused(adapter, "ibv_create_qp").or((kind != 2 || queue == 0).then_some(EINVAL));
    if let Some(code) = refused {
        fail(code);
        return null_mut();
    }
    state.pairs.push(Pair { adapter, queue, depth, step: Step::Reset, peer: 0, remote_write: false });
    let (pair, number) = (object(domain.cast()), state.pairs.len() as u32);
    // SAFETY: an object has room for it.
    unsafe { write(pair, NUMBER, number) };
    pair
}

/// What the next step of a queue pair must be told, `enum ibv_qp_attr_mask`.
const STEPS: [(Step, Step, c_int); 3] = [
    (Step::Reset, Step::Initialised, 1 | 1 << 3 | 1 << 4 | 1 << 5),
    (Step::Initialised, Step::Receives, 1 | 1 << 7 | 1 << 8 | 1 << 12 | 1 << 15 | 1 << 17 | 1 << 20),
    (Step::Receives, Step::Sends, 1 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 13 | 1 << 16),
];

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_modify_qp(pair: *mut c_void, attributes: *mut c_void, mask: c_int) -> c_int {
    // SAFETY: a queue pair that was made above.
    let number = unsafe { read::<u32>(pair, NUMBER) };
    let mut state = state();
    let Some(before) = state.pair(number).map(|pair| *pair) else { return EINVAL };
    // SAFETY: a `struct ibv_qp_attr`.
    let wanted = unsafe { read::<c_int>(attributes, 0) };
    let step = STEPS
        .iter()
        .enumerate()
        .find(|(at, (from, _, needs))| *from == before.step && wanted == *at as c_int + 1 && mask == *needs);
    let Some((_, (_, step, _))) = step else { return EINVAL };
    // SAFETY: as above.
    let told = unsafe { told(attributes, *step, &state, before) };
    let (Some(after), Some(pair)) = (told, state.pair(number)) else { return EINVAL };
    *pair = Pair { step: *step, ..after };
    0
}

/// The queue pair with what its attributes say; nothing where they are wrong.
///
/// # Safety
/// `attributes` is a `struct ibv_qp_attr`.
unsafe fn told(attributes: *const c_void, step: Step, state: &State, before: Pair) -> Option<Pair> {
    // SAFETY: the caller promises it.
    unsafe {
        match step {
            Step::Initialised => {
                let (access, port) = (read::<c_int>(attributes, 32), read::<u8>(attributes, 129));
                (port == 1).then_some(Pair { remote_write: access & REMOTE_WRITE != 0, ..before })
            }
            Step::Receives => {
                let (mtu, peer) = (read::<c_int>(attributes, 8), read::<u32>(attributes, 28));
                let (lid, is_global, port) =
                    (read::<u16>(attributes, 80), read::<u8>(attributes, 85), read::<u8>(attributes, 86));
                let (gid, index) = (read::<[u8; 16]>(attributes, 56), read::<u8>(attributes, 76));
                let by_gid = is_global == 1 && gid == GID && c_int::from(index) == GID_INDEX;
                let ethernet = state.config.adapters.get(before.adapter)?.ethernet;
                let addressed = if ethernet { by_gid } else { is_global == 0 && lid == LID };
                (addressed && (1..=MTU).contains(&mtu) && port == 1).then_some(Pair { peer, ..before })
            }
            _ => (read::<u8>(attributes, 130) > 0).then_some(before),
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_wc_status_str(status: c_int) -> *const c_char {
    let words: &CStr = match status {
        0 => c"success",
        4 => c"local protection error",
        5 => c"Work Request Flushed Error",
        10 => c"remote access error",
        12 => c"transport retry counter exceeded",
        _ => c"unknown",
    };
    words.as_ptr()
}

unsafe extern "C" fn post_send(pair: *mut c_void, request: *mut c_void, refused: *mut *mut c_void) -> c_int {
    // SAFETY: a queue pair that was made above, and a `struct ibv_send_wr` with one part.
    let (wish, right) = unsafe {
        let part = read::<*const c_void>(request, 16);
        let from = (read::<u64>(part, 0), read::<u32>(part, 8).into(), read::<u32>(part, 12));
        let to = (read::<u64>(request, 40), read::<u32>(request, 48));
        let right = read::<c_int>(request, 24) == 1 && read::<c_int>(request, 28) == 0 && read::<u32>(request, 32) == 2;
        (Wish { pair: read(pair, NUMBER), id: read(request, 0), from, to }, right)
    };
    let posted = if right { state().post(wish) } else { Err(EINVAL) };
    match posted {
        Ok(()) => 0,
        Err(code) => {
            // SAFETY: the caller has room for it.
            unsafe { refused.write(request) };
            code
        }
    }
}

unsafe extern "C" fn poll_cq(queue: *mut c_void, most: c_int, completions: *mut c_void) -> c_int {
    let done = state().poll(queue as u64, most as usize);
    for (at, (id, status)) in done.iter().enumerate() {
        // SAFETY: the caller has room for `most` of `struct ibv_wc`.
        unsafe {
            write::<u64>(completions, at * 48, *id);
            write::<c_int>(completions, at * 48 + 8, *status);
            write::<u32>(completions, at * 48 + 16, if *status == 0 { 0 } else { 0x81 });
        }
    }
    done.len() as c_int
}

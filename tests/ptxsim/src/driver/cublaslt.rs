//! cuBLASLt, for those who load this file by its name: products of any shape, on the CPU.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what cublasLt.h says")]

mod product;

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use self::product::{Descriptor, Layout, Shape, multiply};
use super::errors::Code;
use super::nccl::fault;
use super::queue::Work;
use super::state::{State, state};

const NOT_INITIALIZED: Code = 1;
const INVALID_VALUE: Code = 7;
const NOT_SUPPORTED: Code = 15;
/// In the settings, a function that answers that all went well, and computes something else.
const WRONG: Code = 1001;
/// In the settings, the heuristic's answer is another algorithm, as on another kind of device.
const OTHER: Code = 1002;

/// What was created, by handle.
#[derive(Clone, Copy, Debug)]
enum Object {
    Descriptor(Descriptor),
    Layout(Layout),
    Preference { workspace: u64, alignment: [u32; 4] },
}

static OBJECTS: Mutex<Vec<Object>> = Mutex::new(Vec::new());

fn create(to: *mut usize, object: Object) -> Code {
    let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    objects.push(object);
    // SAFETY: the caller promises that it may be written.
    unsafe { to.write(objects.len()) };
    0
}

fn object(handle: usize) -> Option<Object> {
    OBJECTS.lock().unwrap_or_else(PoisonError::into_inner).get(handle.checked_sub(1)?).copied()
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtGetVersion() -> usize {
    120_405
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtGetStatusString(code: Code) -> *const c_char {
    match code {
        NOT_INITIALIZED => c"CUBLAS_STATUS_NOT_INITIALIZED",
        13 => c"CUBLAS_STATUS_EXECUTION_FAILED",
        _ => c"unknown status",
    }
    .as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtCreate(handle: *mut usize) -> Code {
    // SAFETY: the caller promises that it may be written.
    unsafe { handle.write(1) };
    fault("cublasLtCreate").unwrap_or(0)
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtMatmulDescCreate(to: *mut usize, compute: c_int, _scale: c_int) -> Code {
    create(to, Object::Descriptor(Descriptor { compute, ..Descriptor::default() }))
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtMatrixLayoutCreate(to: *mut usize, kind: c_int, rows: u64, columns: u64, pitch: i64) -> Code {
    let pitch = pitch.cast_unsigned();
    if rows == 0 || columns == 0 || pitch < rows {
        return INVALID_VALUE;
    }
    create(to, Object::Layout(Layout { kind, rows, columns, pitch }))
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtMatmulPreferenceCreate(to: *mut usize) -> Code {
    create(to, Object::Preference { workspace: 0, alignment: [256; 4] })
}

/// Writes the new state of an object, as `change` makes it of the old one.
fn change(handle: usize, change: impl FnOnce(Object) -> Option<Object>) -> Code {
    let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = handle.checked_sub(1).and_then(|at| objects.get_mut(at));
    let Some(object) = found else { return INVALID_VALUE };
    match change(*object) {
        Some(new) => *object = new,
        None => return INVALID_VALUE,
    }
    0
}

/// An attribute of four or eight bytes; nothing for other sizes.
///
/// # Safety
/// The caller gives as many bytes as it says.
unsafe fn attribute(value: *const u8, size: usize) -> Option<u64> {
    match size {
        // SAFETY: as many bytes are read as the caller gave.
        4 => Some(u64::from(unsafe { value.cast::<u32>().read_unaligned() })),
        // SAFETY: as above.
        8 => Some(unsafe { value.cast::<u64>().read_unaligned() }),
        _ => None,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulDescSetAttribute(
    handle: usize,
    which: c_int,
    value: *const u8,
    size: usize,
) -> Code {
    // SAFETY: passed on from the caller.
    let Some(value) = (unsafe { attribute(value, size) }) else { return INVALID_VALUE };
    change(handle, |object| {
        let Object::Descriptor(mut descriptor) = object else { return None };
        match (which, size) {
            (3 | 4, 4) => descriptor.transposed[which as usize - 3] = value == 1,
            // Nothing (1) and the bias (4) are what is known.
            (7, 4) if value == 1 || value == 4 => descriptor.adds_bias = value == 4,
            (8, 8) => descriptor.bias = value,
            _ => return None,
        }
        Some(Object::Descriptor(descriptor))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulPreferenceSetAttribute(
    handle: usize,
    which: c_int,
    value: *const u8,
    size: usize,
) -> Code {
    // SAFETY: passed on from the caller.
    let Some(value) = (unsafe { attribute(value, size) }) else { return INVALID_VALUE };
    change(handle, |object| {
        let Object::Preference { mut workspace, mut alignment } = object else { return None };
        match (which, size) {
            (1, 8) => workspace = value,
            (5..=8, 4) if value.is_power_of_two() => alignment[which as usize - 5] = value as u32,
            _ => return None,
        }
        Some(Object::Preference { workspace, alignment })
    })
}

/// What these handles say; nothing where they are not what they should be, or the matrices do not fit together.
fn shape(descriptor: usize, [left, right, result]: [usize; 3]) -> Option<Shape> {
    let layout = |handle| match object(handle)? {
        Object::Layout(layout) => Some(layout),
        _ => None,
    };
    let Some(Object::Descriptor(descriptor)) = object(descriptor) else { return None };
    let shape = Shape { descriptor, left: layout(left)?, right: layout(right)?, result: layout(result)? };
    shape.fits().then_some(shape)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    _handle: usize,
    descriptor: usize,
    left: usize,
    right: usize,
    old: usize,
    result: usize,
    preference: usize,
    _wanted: c_int,
    choice: *mut [u64; 12],
    count: *mut c_int,
) -> Code {
    let other = match fault("cublasLtMatmulAlgoGetHeuristic") {
        None => 0,
        Some(OTHER) => 1 << 16,
        Some(code) => return code,
    };
    let Some(shape) = shape(descriptor, [left, right, result]).filter(|_| old == result) else {
        return INVALID_VALUE;
    };
    let Some(Object::Preference { workspace, alignment }) = object(preference) else { return INVALID_VALUE };
    // Numbers of eight bits are for other devices than these.
    if shape.left.kind == 28 {
        return NOT_SUPPORTED;
    }
    let mut made = [0; 12];
    (made[0], made[8]) = (shape.algorithm() | other, workspace / 2);
    // It counts on what it was told of the places.
    alignment.into_iter().enumerate().for_each(|(at, bytes)| made[1 + at] = u64::from(bytes));
    // SAFETY: the caller promises that both may be written.
    unsafe {
        choice.write(made);
        count.write(1);
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulAlgoConfigGetAttribute(
    algorithm: *const u64,
    _attribute: c_int,
    value: *mut c_int,
    _size: usize,
    written: *mut usize,
) -> Code {
    // SAFETY: the caller promises an algorithm, and that both may be written.
    unsafe {
        value.write(*algorithm as c_int);
        written.write(4);
    }
    0
}

/// A factor, as the type of the result says.
///
/// # Safety
/// The caller gives a number of that type.
unsafe fn factor(kind: c_int, at: *const c_void) -> f64 {
    // SAFETY: passed on from the caller.
    unsafe {
        match kind {
            1 => at.cast::<f64>().read(),
            10 => f64::from(at.cast::<i32>().read()),
            _ => f64::from(at.cast::<f32>().read()),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmul(
    _handle: usize,
    descriptor: usize,
    alpha: *const c_void,
    a: u64,
    left: usize,
    b: u64,
    right: usize,
    beta: *const c_void,
    old: u64,
    _old_layout: usize,
    c: u64,
    result: usize,
    algorithm: *const [u64; 8],
    _space: u64,
    _bytes: usize,
    stream: usize,
) -> Code {
    let wrong = match fault("cublasLtMatmul") {
        None => false,
        Some(WRONG) => true,
        Some(code) => return code,
    };
    let Some(shape) = shape(descriptor, [left, right, result]) else { return INVALID_VALUE };
    // SAFETY: the caller gives an algorithm, and factors of the result's type.
    let (chosen, factors) = unsafe { (algorithm.read(), [alpha, beta].map(|at| factor(shape.result.kind, at))) };
    let aligned = [a, b, old, c].into_iter().zip(&chosen[1..]).all(|(at, bytes)| *bytes > 0 && at % bytes == 0);
    if chosen[0] & 0xffff != shape.algorithm() || !aligned || factors[0] != 1.0 || old != c {
        return INVALID_VALUE;
    }
    let ends = if wrong { [a, a, c] } else { [a, b, c] };
    let body = Arc::new(move |state: &mut State, card: usize| multiply(state, card, ends, (shape, factors[1])));
    if state().enqueue(stream, Work::Call { body }).is_ok() { 0 } else { 13 }
}

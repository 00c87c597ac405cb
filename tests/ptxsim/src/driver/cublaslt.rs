//! cuBLASLt, for those who load this file by its name: products of the shape that muster asks for, on the CPU.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what cublasLt.h says")]

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use super::errors::{Code, ILLEGAL_ADDRESS};
use super::nccl::fault;
use super::queue::Work;
use super::state::{LATENCY, State, state};
use crate::matrix::sized;

const NOT_INITIALIZED: Code = 1;
const INVALID_VALUE: Code = 7;
const NOT_SUPPORTED: Code = 15;
/// In the settings, a function that answers that all went well, and computes something else.
const WRONG: Code = 1001;
/// Operations per second. Slow, so that the smallest product takes as much time as a benchmark asks for.
const RATE: f64 = 50e6;

/// What was created, by handle.
#[derive(Clone, Copy, Debug)]
enum Object {
    Descriptor { transposed: bool },
    Layout { kind: c_int, edge: u64 },
    Preference { workspace: u64 },
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
pub extern "C" fn cublasLtMatmulDescCreate(to: *mut usize, _compute: c_int, _scale: c_int) -> Code {
    create(to, Object::Descriptor { transposed: false })
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtMatrixLayoutCreate(to: *mut usize, kind: c_int, rows: u64, columns: u64, pitch: i64) -> Code {
    if rows != columns || pitch.cast_unsigned() != rows {
        return INVALID_VALUE;
    }
    create(to, Object::Layout { kind, edge: rows })
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasLtMatmulPreferenceCreate(to: *mut usize) -> Code {
    create(to, Object::Preference { workspace: 0 })
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

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulDescSetAttribute(
    handle: usize,
    attribute: c_int,
    value: *const c_int,
    size: usize,
) -> Code {
    // SAFETY: the caller gives as many bytes as it says, of which four are read.
    let value = if size == 4 { unsafe { value.read_unaligned() } } else { return INVALID_VALUE };
    change(handle, |object| match object {
        Object::Descriptor { .. } if attribute == 3 => Some(Object::Descriptor { transposed: value == 1 }),
        _ => None,
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulPreferenceSetAttribute(
    handle: usize,
    attribute: c_int,
    value: *const u64,
    size: usize,
) -> Code {
    // SAFETY: the caller gives as many bytes as it says, of which eight are read.
    let value = if size == 8 { unsafe { value.read_unaligned() } } else { return INVALID_VALUE };
    change(handle, |object| match object {
        Object::Preference { .. } if attribute == 1 => Some(Object::Preference { workspace: value }),
        _ => None,
    })
}

/// The algorithm's number is the edge: whoever hands another one over than was chosen is found out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    _handle: usize,
    descriptor: usize,
    left: usize,
    _right: usize,
    _old: usize,
    _result: usize,
    preference: usize,
    _wanted: c_int,
    choice: *mut [u64; 12],
    count: *mut c_int,
) -> Code {
    if let Some(code) = fault("cublasLtMatmulAlgoGetHeuristic") {
        return code;
    }
    let (Some(Object::Descriptor { transposed: true }), Some(Object::Layout { kind, edge })) =
        (object(descriptor), object(left))
    else {
        return INVALID_VALUE;
    };
    let Some(Object::Preference { workspace }) = object(preference) else { return INVALID_VALUE };
    // Numbers of eight bits are for other devices than these.
    if kind == 28 {
        return NOT_SUPPORTED;
    }
    let mut made = [0; 12];
    (made[0], made[8]) = (edge, workspace / 2);
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

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmul(
    _handle: usize,
    descriptor: usize,
    _one: *const c_void,
    a: u64,
    left: usize,
    b: u64,
    right: usize,
    _none: *const c_void,
    _old: u64,
    _old_layout: usize,
    c: u64,
    result: usize,
    algorithm: *const u64,
    _space: u64,
    _bytes: usize,
    stream: usize,
) -> Code {
    let wrong = match fault("cublasLtMatmul") {
        None => false,
        Some(WRONG) => true,
        Some(code) => return code,
    };
    // SAFETY: the caller gives an algorithm.
    let chosen = unsafe { algorithm.read() };
    let objects = (object(descriptor), object(left), object(right), object(result));
    let (
        Some(Object::Descriptor { transposed: true }),
        Some(Object::Layout { kind, edge }),
        Some(Object::Layout { kind: same, .. }),
        Some(Object::Layout { kind: to, .. }),
    ) = objects
    else {
        return INVALID_VALUE;
    };
    if chosen != edge || kind != same {
        return INVALID_VALUE;
    }
    let body = Arc::new(move |state: &mut State, card: usize| {
        multiply(state, card, if wrong { [a, a, c] } else { [a, b, c] }, (edge as usize, kind, to))
    });
    if state().enqueue(stream, Work::Call { body }).is_ok() { 0 } else { 13 }
}

fn multiply(
    state: &mut State,
    card: usize,
    [a, b, c]: [u64; 3],
    (edge, kind, to): (usize, c_int, c_int),
) -> Result<(), Code> {
    let memory = &mut state.cards[card].device.memory;
    let size = width(kind);
    let mut operand = |at| {
        let bytes = memory.read(at, edge * edge * size).map_err(|_| ILLEGAL_ADDRESS)?;
        Ok::<Vec<f64>, Code>(bytes.chunks_exact(size).map(|bytes| number(kind, bytes)).collect())
    };
    let (left, right) = (operand(a)?, operand(b)?);
    let mut product = Vec::with_capacity(edge * edge * width(to));
    for column in right.chunks_exact(edge) {
        for row in left.chunks_exact(edge) {
            let sum: f64 = row.iter().zip(column).map(|(x, y)| x * y).sum();
            match to {
                1 => product.extend(sum.to_le_bytes()),
                10 => product.extend((sum as i32).to_le_bytes()),
                _ => product.extend((sum as f32).to_le_bytes()),
            }
        }
    }
    memory.write(c, &product).map_err(|_| ILLEGAL_ADDRESS)?;
    state.cards[card].now += LATENCY + 2.0 * (edge as f64).powi(3) / RATE * 1e9;
    Ok(())
}

/// Bytes of a number, by `library_types.h`.
const fn width(kind: c_int) -> usize {
    match kind {
        3 | 28 => 1,
        2 | 14 => 2,
        1 => 8,
        _ => 4,
    }
}

fn number(kind: c_int, bytes: &[u8]) -> f64 {
    let bits = crate::memory::number(bytes);
    match kind {
        1 => f64::from_bits(bits),
        2 => sized(bits as u32 & 0x7fff, 10, 15, bits >> 15 == 1),
        3 => f64::from(bits as i8),
        14 => f64::from(f32::from_bits((bits as u32) << 16)),
        _ => f64::from(f32::from_bits(bits as u32)),
    }
}

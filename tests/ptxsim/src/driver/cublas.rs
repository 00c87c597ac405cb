//! cuBLAS, for those who load this file by its name: products of matrices in columns, on the CPU.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what cublas_v2.h says")]

use std::ffi::{c_char, c_int, c_longlong};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::dense::{FLOAT, HALF, Manner, read};
use super::errors::Code;
use super::nccl::fault;
use super::queue::Work;
use super::state::{State, state};

const NOT_INITIALIZED: Code = 1;
const INVALID_VALUE: Code = 7;
const EXECUTION_FAILED: Code = 13;
/// The one handle there is.
const HANDLE: usize = 77;

/// The stream that the handle works on.
static STREAM: AtomicUsize = AtomicUsize::new(0);

#[unsafe(no_mangle)]
pub extern "C" fn cublasGetStatusString(code: Code) -> *const c_char {
    match code {
        NOT_INITIALIZED => c"CUBLAS_STATUS_NOT_INITIALIZED",
        INVALID_VALUE => c"CUBLAS_STATUS_INVALID_VALUE",
        EXECUTION_FAILED => c"CUBLAS_STATUS_EXECUTION_FAILED",
        _ => c"unknown status",
    }
    .as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasCreate_v2(handle: *mut usize) -> Code {
    // SAFETY: the caller promises that it may be written.
    unsafe { handle.write(HANDLE) };
    fault("cublasCreate_v2").unwrap_or(0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGetVersion_v2(_handle: usize, version: *mut c_int) -> Code {
    // SAFETY: the caller promises that it may be written.
    unsafe { version.write(120_405) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cublasSetStream_v2(handle: usize, stream: usize) -> Code {
    if handle != HANDLE {
        return NOT_INITIALIZED;
    }
    STREAM.store(stream, Ordering::SeqCst);
    0
}

/// A matrix: where it begins, type of its numbers, elements from one column to the next and from one of a batch to the next.
#[derive(Clone, Copy)]
struct Matrix {
    at: u64,
    kind: c_int,
    pitch: usize,
    next: usize,
}

/// What is asked for.
#[derive(Clone, Copy)]
struct Ask {
    transposed: [bool; 2],
    sizes: [usize; 3],
    batch: usize,
    complex: bool,
    factors: [f64; 2],
    matrices: [Matrix; 3],
}

impl Ask {
    /// Row and column of an element of the stored matrix that is element (row, column) of operand number `which`.
    const fn place(&self, which: usize, row: usize, column: usize) -> usize {
        let (row, column) = if which < 2 && self.transposed[which] { (column, row) } else { (row, column) };
        row + column * self.matrices[which].pitch
    }

    /// Numbers of an operand of `rows` x `columns`, over the whole batch.
    fn span(&self, which: usize, rows: usize, columns: usize) -> usize {
        let last = self.place(which, rows - 1, columns - 1) + (self.batch - 1) * self.matrices[which].next + 1;
        last * if self.complex { 2 } else { 1 }
    }

    fn run(&self, manner: Manner, state: &mut State, card: usize) -> Result<(), Code> {
        let [m, n, k] = self.sizes;
        let shapes = [(m, k), (k, n), (m, n)];
        let mut operands = Vec::new();
        for (which, (rows, columns)) in shapes.into_iter().enumerate() {
            let Matrix { at, kind, .. } = self.matrices[which];
            operands.push(read(state, card, (at, kind), self.span(which, rows, columns))?);
        }
        let [a, b, mut c]: [Vec<f64>; 3] = operands.try_into().map_err(|_| EXECUTION_FAILED)?;
        for batch in 0..self.batch {
            let from = |which: usize| batch * self.matrices[which].next;
            for (row, column) in (0..n).flat_map(|column| (0..m).map(move |row| (row, column))) {
                let at = from(2) + self.place(2, row, column);
                let pairs = (0..k).map(|d| (from(0) + self.place(0, row, d), from(1) + self.place(1, d, column)));
                self.put(&mut c, at, self.sum(&a, &b, pairs));
            }
        }
        let operations = 2.0 * (m * n * k * self.batch) as f64 * if self.complex { 4.0 } else { 1.0 };
        let Matrix { at, kind, .. } = self.matrices[2];
        manner.finish(state, card, (at, kind), (c, operations))
    }

    fn sum(&self, a: &[f64], b: &[f64], pairs: impl Iterator<Item = (usize, usize)>) -> [f64; 2] {
        let mut sum = [0.0; 2];
        for (x, y) in pairs {
            if self.complex {
                let ([p, q], [r, s]) = ([a[2 * x], a[2 * x + 1]], [b[2 * y], b[2 * y + 1]]);
                sum = [sum[0] + p * r - q * s, sum[1] + p * s + q * r];
            } else {
                sum[0] += a[x] * b[y];
            }
        }
        sum
    }

    fn put(&self, c: &mut [f64], at: usize, sum: [f64; 2]) {
        let parts = if self.complex { 2 } else { 1 };
        for (part, sum) in sum.into_iter().enumerate().take(parts) {
            let to = &mut c[at * parts + part];
            let kept = if self.factors[1] == 0.0 { 0.0 } else { self.factors[1] * *to };
            *to = self.factors[0] * sum + kept;
        }
    }
}

/// Puts the work on the handle's stream, if it makes sense.
fn begin(name: &str, handle: usize, ask: Ask) -> Code {
    let manner = match Manner::of(name) {
        Ok(manner) => manner,
        Err(code) => return code,
    };
    let [m, n, k] = ask.sizes;
    let rows = [(m, k), (k, n), (m, n)];
    let fits = |which: usize| {
        let (rows, columns) = rows[which];
        let stored = if which < 2 && ask.transposed[which] { columns } else { rows };
        ask.matrices[which].pitch >= stored
    };
    let kinds = ask.matrices.iter().all(|matrix| [FLOAT, HALF].contains(&matrix.kind));
    if handle != HANDLE || m * n * k * ask.batch == 0 || !kinds || !(0..3).all(fits) {
        return INVALID_VALUE;
    }
    let body = Arc::new(move |state: &mut State, card: usize| ask.run(manner, state, card));
    let begun = state().enqueue(STREAM.load(Ordering::SeqCst), Work::Call { body });
    if begun.is_ok() { 0 } else { EXECUTION_FAILED }
}

/// Real factors, or the real parts of complex ones: nobody asks for others.
unsafe fn factors(alpha: *const f32, beta: *const f32) -> [f64; 2] {
    // SAFETY: the caller promises a number at each.
    unsafe { [f64::from(alpha.read()), f64::from(beta.read())] }
}

const fn matrix(at: u64, kind: c_int, pitch: c_int, next: c_longlong) -> Matrix {
    Matrix { at, kind, pitch: pitch as usize, next: next as usize }
}

macro_rules! alone {
    ($name:ident, $complex:literal) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            handle: usize,
            ta: c_int,
            tb: c_int,
            m: c_int,
            n: c_int,
            k: c_int,
            alpha: *const f32,
            a: u64,
            lda: c_int,
            b: u64,
            ldb: c_int,
            beta: *const f32,
            c: u64,
            ldc: c_int,
        ) -> Code {
            let ask = Ask {
                transposed: [ta == 1, tb == 1],
                sizes: [m, n, k].map(|size| size as usize),
                batch: 1,
                complex: $complex,
                // SAFETY: the caller gives both.
                factors: unsafe { factors(alpha, beta) },
                matrices: [matrix(a, FLOAT, lda, 0), matrix(b, FLOAT, ldb, 0), matrix(c, FLOAT, ldc, 0)],
            };
            begin(stringify!($name), handle, ask)
        }
    };
}

macro_rules! batched {
    ($name:ident, $complex:literal) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            handle: usize,
            ta: c_int,
            tb: c_int,
            m: c_int,
            n: c_int,
            k: c_int,
            alpha: *const f32,
            a: u64,
            lda: c_int,
            next_a: c_longlong,
            b: u64,
            ldb: c_int,
            next_b: c_longlong,
            beta: *const f32,
            c: u64,
            ldc: c_int,
            next_c: c_longlong,
            batch: c_int,
        ) -> Code {
            let ask = Ask {
                transposed: [ta == 1, tb == 1],
                sizes: [m, n, k].map(|size| size as usize),
                batch: batch as usize,
                complex: $complex,
                // SAFETY: the caller gives both.
                factors: unsafe { factors(alpha, beta) },
                matrices: [matrix(a, FLOAT, lda, next_a), matrix(b, FLOAT, ldb, next_b), matrix(c, FLOAT, ldc, next_c)],
            };
            begin(stringify!($name), handle, ask)
        }
    };
}

alone!(cublasSgemm_v2, false);
alone!(cublasCgemm_v2, true);
batched!(cublasSgemmStridedBatched, false);
batched!(cublasCgemm3mStridedBatched, true);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGemmEx(
    handle: usize,
    ta: c_int,
    tb: c_int,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const f32,
    a: u64,
    kind_a: c_int,
    lda: c_int,
    b: u64,
    kind_b: c_int,
    ldb: c_int,
    beta: *const f32,
    c: u64,
    kind_c: c_int,
    ldc: c_int,
    compute: c_int,
    _algorithm: c_int,
) -> Code {
    if compute != 68 {
        return INVALID_VALUE;
    }
    let ask = Ask {
        transposed: [ta == 1, tb == 1],
        sizes: [m, n, k].map(|size| size as usize),
        batch: 1,
        complex: false,
        // SAFETY: the caller gives both.
        factors: unsafe { factors(alpha, beta) },
        matrices: [matrix(a, kind_a, lda, 0), matrix(b, kind_b, ldb, 0), matrix(c, kind_c, ldc, 0)],
    };
    begin("cublasGemmEx", handle, ask)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGemmStridedBatchedEx(
    handle: usize,
    ta: c_int,
    tb: c_int,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const f32,
    a: u64,
    kind_a: c_int,
    lda: c_int,
    next_a: c_longlong,
    b: u64,
    kind_b: c_int,
    ldb: c_int,
    next_b: c_longlong,
    beta: *const f32,
    c: u64,
    kind_c: c_int,
    ldc: c_int,
    next_c: c_longlong,
    batch: c_int,
    compute: c_int,
    _algorithm: c_int,
) -> Code {
    if compute != 68 {
        return INVALID_VALUE;
    }
    let ask = Ask {
        transposed: [ta == 1, tb == 1],
        sizes: [m, n, k].map(|size| size as usize),
        batch: batch as usize,
        complex: false,
        // SAFETY: the caller gives both.
        factors: unsafe { factors(alpha, beta) },
        matrices: [matrix(a, kind_a, lda, next_a), matrix(b, kind_b, ldb, next_b), matrix(c, kind_c, ldc, next_c)],
    };
    begin("cublasGemmStridedBatchedEx", handle, ask)
}

//! The one place that talks to cuBLAS: loaded where it is, every call checked, its own words when it fails.

use std::ffi::{c_int, c_longlong, c_void};

use crate::calls::{Function, Precision, Product};
use crate::driver::{Buffer, Gpu, Trouble, forget};
use crate::library::{Library, wrong};

type Code = c_int;
type Handle = *mut c_void;

/// Products computed in f32, and the library's own choice how, as `cublas_api.h` numbers them.
const COMPUTE: c_int = 68;
const CHOICE: c_int = -1;
/// What it cannot do on this GPU.
const NOT_SUPPORTED: Code = 15;
/// Types of numbers, as `library_types.h` numbers them.
const FLOAT: c_int = 0;
const HALF: c_int = 2;

type Factor = *const c_void;
/// `cublasSgemm_v2`, `cublasCgemm_v2`.
type Alone = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    Factor,
    u64,
    c_int,
    u64,
    c_int,
    Factor,
    u64,
    c_int,
) -> Code;
/// `cublasSgemmStridedBatched`, `cublasCgemm3mStridedBatched`.
type Batched = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    Factor,
    u64,
    c_int,
    c_longlong,
    u64,
    c_int,
    c_longlong,
    Factor,
    u64,
    c_int,
    c_longlong,
    c_int,
) -> Code;
/// `cublasGemmEx`.
type Typed = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    Factor,
    u64,
    c_int,
    c_int,
    u64,
    c_int,
    c_int,
    Factor,
    u64,
    c_int,
    c_int,
    c_int,
    c_int,
) -> Code;
/// `cublasGemmStridedBatchedEx`.
type TypedBatched = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    Factor,
    u64,
    c_int,
    c_int,
    c_longlong,
    u64,
    c_int,
    c_int,
    c_longlong,
    Factor,
    u64,
    c_int,
    c_int,
    c_longlong,
    c_int,
    c_int,
    c_int,
) -> Code;

/// A function, found once: looking for it each time would be measured.
#[derive(Clone, Copy)]
enum Found {
    Alone(Alone),
    Batched(Batched),
    Typed(Typed),
    TypedBatched(TypedBatched),
}

/// The loaded library, for one GPU.
#[derive(Debug)]
pub struct Cublas {
    library: Library,
    handle: Handle,
    /// As `cublasGetVersion` says it: 120405 for 12.4.5.
    pub version: c_int,
}

/// A product that the library can do.
pub struct Plan {
    /// What it is.
    pub product: Product,
    name: &'static str,
    found: Found,
}

#[expect(unsafe_code, reason = "a C interface, called by its names in cublas_v2.h")]
impl Cublas {
    /// Loads the library for `gpu` and its stream.
    ///
    /// # Errors
    /// When it is not there, or does not work.
    pub fn load(gpu: &Gpu) -> Result<Self, Trouble> {
        // The one most drivers take comes first.
        let library = Library::find(&["libcublas.so.12", "libcublas.so.13", "libcublas.so.11"])?;
        let mut cublas = Self { library, handle: std::ptr::null_mut(), version: 0 };
        let handle = &raw mut cublas.handle;
        // SAFETY: writes one handle.
        cublas.call::<unsafe extern "C" fn(*mut Handle) -> Code>("cublasCreate_v2", |f| unsafe { f(handle) })?;
        forget();
        let (handle, version) = (cublas.handle, &raw mut cublas.version);
        type Version = unsafe extern "C" fn(Handle, *mut c_int) -> Code;
        // SAFETY: the handle is the library's; writes one number.
        cublas.call::<Version>("cublasGetVersion_v2", |f| unsafe { f(handle, version) })?;
        type Stream = unsafe extern "C" fn(Handle, *mut c_void) -> Code;
        // SAFETY: handle and stream are of this GPU, and the stream lives as long as the process.
        cublas.call::<Stream>("cublasSetStream_v2", |f| unsafe { f(handle, gpu.stream()) })?;
        Ok(cublas)
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.library.path
    }

    /// `cublas-12.4`.
    #[must_use]
    pub fn engine(&self) -> String {
        format!("cublas-{}.{}", self.version / 10_000, self.version / 100 % 100)
    }

    /// Finds the function for a product.
    ///
    /// # Errors
    /// When this library has none of its name.
    pub fn plan(&self, product: Product) -> Result<Plan, Trouble> {
        let (alone, batched) = (|f| Found::Alone(f), |f| Found::Batched(f));
        // SAFETY: each is the signature that cublas_v2.h has for the name; complex numbers lie as two floats.
        let (name, found) = unsafe {
            let of = &self.library;
            match product.function {
                Function::Sgemm => ("cublasSgemm_v2", of.function("cublasSgemm_v2").map(alone)),
                Function::Cgemm => ("cublasCgemm_v2", of.function("cublasCgemm_v2").map(alone)),
                Function::SgemmStridedBatched => {
                    ("cublasSgemmStridedBatched", of.function("cublasSgemmStridedBatched").map(batched))
                }
                Function::Cgemm3mStridedBatched => {
                    ("cublasCgemm3mStridedBatched", of.function("cublasCgemm3mStridedBatched").map(batched))
                }
                Function::GemmEx => ("cublasGemmEx", of.function("cublasGemmEx").map(Found::Typed)),
                Function::GemmStridedBatchedEx => {
                    ("cublasGemmStridedBatchedEx", of.function("cublasGemmStridedBatchedEx").map(Found::TypedBatched))
                }
            }
        };
        Ok(Plan { product, name, found: found? })
    }

    /// Puts `alpha` times the product on the stream, plus what is there where the function is called so.
    ///
    /// # Errors
    /// In the library's words; [`Trouble::Absent`] where it cannot do that on this GPU.
    pub fn start(&self, plan: &Plan, [a, b, c]: [&Buffer; 3], alpha: f32) -> Result<(), Trouble> {
        let Plan { product, name, found } = plan;
        let int = |number: u32| number as c_int;
        let [m, n, k, batch] = [product.m, product.n, product.k, product.batch].map(int);
        let [ta, tb] = product.transposed.map(c_int::from);
        let (lda, ldb) = (if ta == 1 { k } else { m }, if tb == 1 { n } else { k });
        let each = |rows: c_int, columns: c_int| c_longlong::from(rows) * c_longlong::from(columns);
        let [of_a, of_b, of_c] = [each(m, k), each(k, n), each(m, n)];
        let kind = if product.precision == Precision::Fp16 { HALF } else { FLOAT };
        // Real and imaginary part; real functions read the first alone.
        let (factor, kept) = ([alpha, 0.0], [f32::from(u8::from(product.function.adds())), 0.0]);
        let (alpha, beta): (Factor, Factor) = (factor.as_ptr().cast(), kept.as_ptr().cast());
        let (handle, a, b, c) = (self.handle, a.address(), b.address(), c.address());
        // SAFETY: the handle is the library's; factors are read before the call returns; the buffers hold the matrices, and
        // are the caller's until the stream was waited for.
        let code = unsafe {
            match *found {
                Found::Alone(f) => f(handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, m),
                Found::Batched(f) => {
                    f(handle, ta, tb, m, n, k, alpha, a, lda, of_a, b, ldb, of_b, beta, c, m, of_c, batch)
                }
                Found::Typed(f) => {
                    let (x, y) = ((a, kind, lda), (b, kind, ldb));
                    f(handle, ta, tb, m, n, k, alpha, x.0, x.1, x.2, y.0, y.1, y.2, beta, c, kind, m, COMPUTE, CHOICE)
                }
                Found::TypedBatched(f) => {
                    let (x, y) = ((a, kind, lda, of_a), (b, kind, ldb, of_b));
                    f(
                        handle, ta, tb, m, n, k, alpha, x.0, x.1, x.2, x.3, y.0, y.1, y.2, y.3, beta, c, kind, m, of_c,
                        batch, COMPUTE, CHOICE,
                    )
                }
            }
        };
        match code {
            0 => Ok(()),
            NOT_SUPPORTED => Err(Trouble::Absent(format!("{name} is not supported here"))),
            code => Err(wrong(&self.library, (name, WORDS), code)),
        }
    }

    fn call<F: Copy>(&self, name: &str, ask: impl FnOnce(F) -> Code) -> Result<(), Trouble> {
        // SAFETY: callers give the signature that cublas_v2.h has for the name.
        match ask(unsafe { self.library.function::<F>(name) }?) {
            0 => Ok(()),
            code => Err(wrong(&self.library, (name, WORDS), code)),
        }
    }
}

/// The library's function for words.
const WORDS: &str = "cublasGetStatusString";

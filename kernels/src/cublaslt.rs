//! The one place that talks to cuBLASLt: loaded where it is, every call checked, its own words when it fails.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::driver::{Buffer, Gpu, Trouble, forget};
use crate::library::Library;
use crate::twin::Number;

type Code = c_int;
type Object = *mut c_void;
type Set = unsafe extern "C" fn(Object, c_int, *const c_void, usize) -> Code;

/// What has no algorithm, as `cublas_api.h` numbers it.
const NOT_SUPPORTED: Code = 15;
/// Attributes, as `cublasLt.h` numbers them: transposition of the left operand; most workspace; number of an algorithm.
const TRANSPOSED: c_int = 3;
const WORKSPACE: c_int = 1;
const ALGORITHM: c_int = 0;
/// Bytes of workspace: always as many, so that always the same algorithm is chosen.
pub const SPACE: usize = 32 << 20;

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Choice {
    algorithm: [u64; 8],
    workspace: usize,
    state: Code,
    waves: f32,
    reserved: [c_int; 4],
}

/// The loaded library.
#[derive(Debug)]
pub struct CublasLt {
    library: Library,
    handle: Object,
    /// As `cublasLtGetVersion` says it: 120405 for 12.4.5.
    pub version: usize,
}

/// One product of square matrices, with the algorithm that is the library's first choice.
pub struct Plan {
    number: Number,
    /// Edge of the matrices.
    pub edge: u32,
    descriptor: Object,
    operand: Object,
    result: Object,
    choice: Choice,
    /// Number of the algorithm.
    pub algorithm: c_int,
}

/// Types as `library_types.h` numbers them, of operands and result; of the computation as `cublas_api.h` does.
const fn types(number: Number) -> (c_int, c_int, c_int) {
    match number {
        Number::Bf16 => (14, 0, 68),
        Number::Fp16 => (2, 0, 68),
        Number::Tf32 => (0, 0, 77),
        Number::Int8 => (3, 10, 72),
        Number::Fp8 => (28, 0, 68),
        Number::Fp32 => (0, 0, 68),
        Number::Fp64 => (1, 1, 70),
    }
}

#[expect(unsafe_code, reason = "a C interface, called by its names in cublasLt.h")]
impl CublasLt {
    /// Loads the library for the GPU that this thread works on.
    ///
    /// # Errors
    /// When it is not there, or does not work.
    pub fn load() -> Result<Self, Trouble> {
        // The one most drivers take comes first.
        let library = Library::find(&["libcublasLt.so.12", "libcublasLt.so.13", "libcublasLt.so.11"])?;
        // SAFETY: takes nothing, gives a number.
        let version = unsafe { library.function::<unsafe extern "C" fn() -> usize>("cublasLtGetVersion")?() };
        let mut lt = Self { library, handle: std::ptr::null_mut(), version };
        let handle = &raw mut lt.handle;
        // SAFETY: writes one handle.
        lt.call::<unsafe extern "C" fn(*mut Object) -> Code>("cublasLtCreate", |f| unsafe { f(handle) })?;
        forget();
        Ok(lt)
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.library.path
    }

    /// `cublaslt-12.4`.
    #[must_use]
    pub fn engine(&self) -> String {
        // Until 11.x four digits said minor and patch otherwise.
        let (major, minor) = match self.version {
            new @ 100_000.. => (new / 10_000, new / 100 % 100),
            old => (old / 1000, old / 100 % 10),
        };
        format!("cublaslt-{major}.{minor}")
    }

    /// The library's first choice for a product of `edge` by `edge`; nothing where it has none for these numbers here.
    ///
    /// # Errors
    /// In the library's words.
    pub fn plan(&self, number: Number, edge: u32) -> Result<Option<Plan>, Trouble> {
        let (operand_type, result_type, compute) = types(number);
        let scale = result_type;
        let (transposed, space) = (1_i32, SPACE);
        // SAFETY: writes one object.
        let descriptor = self.made("cublasLtMatmulDescCreate", |f: unsafe extern "C" fn(_, _, _) -> _, to| unsafe {
            f(to, compute, scale)
        })?;
        self.set("cublasLtMatmulDescSetAttribute", (descriptor, TRANSPOSED), &transposed)?;
        let layout = |kind: c_int| {
            type Layout = unsafe extern "C" fn(*mut Object, c_int, u64, u64, i64) -> Code;
            // SAFETY: writes one object.
            self.made("cublasLtMatrixLayoutCreate", |f: Layout, to| unsafe {
                f(to, kind, u64::from(edge), u64::from(edge), i64::from(edge))
            })
        };
        let (operand, result) = (layout(operand_type)?, layout(result_type)?);
        type Preference = unsafe extern "C" fn(*mut Object) -> Code;
        // SAFETY: writes one object.
        let preference = self.made("cublasLtMatmulPreferenceCreate", |f: Preference, to| unsafe { f(to) })?;
        self.set("cublasLtMatmulPreferenceSetAttribute", (preference, WORKSPACE), &space)?;
        let mut plan = Plan { number, edge, descriptor, operand, result, choice: Choice::default(), algorithm: 0 };
        if !self.choose(&mut plan, preference)? {
            return Ok(None);
        }
        Ok(Some(plan))
    }

    /// Asks for the first choice; false where there is none.
    fn choose(&self, plan: &mut Plan, preference: Object) -> Result<bool, Trouble> {
        let name = "cublasLtMatmulAlgoGetHeuristic";
        type Ask = unsafe extern "C" fn(
            Object,
            Object,
            Object,
            Object,
            Object,
            Object,
            Object,
            c_int,
            *mut Choice,
            *mut c_int,
        ) -> Code;
        let (operand, result, mut count) = (plan.operand, plan.result, 0);
        // SAFETY: all objects came from the library; writes at most one choice.
        let code = unsafe {
            let ask = self.library.function::<Ask>(name)?;
            let to = (&raw mut plan.choice, &raw mut count);
            ask(self.handle, plan.descriptor, operand, operand, result, result, preference, 1, to.0, to.1)
        };
        match code {
            NOT_SUPPORTED => return Ok(false),
            0 if count == 0 => return Ok(false),
            0 => {}
            code => return Err(self.trouble(name, code)),
        }
        type Tell = unsafe extern "C" fn(*const u64, c_int, *mut c_int, usize, *mut usize) -> Code;
        let (mut number, mut written) = (0, 0);
        // SAFETY: writes one number of four bytes.
        self.call::<Tell>("cublasLtMatmulAlgoConfigGetAttribute", |f| unsafe {
            f(plan.choice.algorithm.as_ptr(), ALGORITHM, &raw mut number, 4, &raw mut written)
        })?;
        plan.algorithm = number;
        Ok(true)
    }

    /// Puts one product on the GPU's stream: every row of `a` times every row of `b`; the result lies column by column.
    ///
    /// # Errors
    /// In the library's words.
    pub fn start(&self, gpu: &Gpu, plan: &Plan, [a, b, c, space]: [&Buffer; 4]) -> Result<(), Trouble> {
        type Multiply = unsafe extern "C" fn(
            Object,
            Object,
            *const c_void,
            u64,
            Object,
            u64,
            Object,
            *const c_void,
            u64,
            Object,
            u64,
            Object,
            *const Choice,
            u64,
            usize,
            *mut c_void,
        ) -> Code;
        let (floats, doubles, integers) = ([1.0_f32, 0.0], [1.0_f64, 0.0], [1_i32, 0]);
        let [one, none]: [*const c_void; 2] = match plan.number {
            Number::Fp64 => [(&raw const doubles[0]).cast(), (&raw const doubles[1]).cast()],
            Number::Int8 => [(&raw const integers[0]).cast(), (&raw const integers[1]).cast()],
            _ => [(&raw const floats[0]).cast(), (&raw const floats[1]).cast()],
        };
        let (operand, result, to) = (plan.operand, plan.result, c.address());
        // SAFETY: all objects came from the library; the buffers hold the matrices and the workspace, and are the caller's
        // until the stream was waited for.
        self.call::<Multiply>("cublasLtMatmul", |f| unsafe {
            let (left, right) = (a.address(), b.address());
            let choice = &raw const plan.choice;
            f(
                self.handle,
                plan.descriptor,
                one,
                left,
                operand,
                right,
                operand,
                none,
                to,
                result,
                to,
                result,
                choice,
                space.address(),
                SPACE,
                gpu.stream(),
            )
        })
    }

    fn made<F: Copy>(&self, name: &str, make: impl FnOnce(F, *mut Object) -> Code) -> Result<Object, Trouble> {
        let mut object = std::ptr::null_mut();
        self.call::<F>(name, |f| make(f, &raw mut object))?;
        Ok(object)
    }

    fn set<T>(&self, name: &str, (object, attribute): (Object, c_int), value: &T) -> Result<(), Trouble> {
        // SAFETY: reads as many bytes as the value has.
        self.call::<Set>(name, |f| unsafe { f(object, attribute, std::ptr::from_ref(value).cast(), size_of::<T>()) })
    }

    fn call<F: Copy>(&self, name: &str, ask: impl FnOnce(F) -> Code) -> Result<(), Trouble> {
        // SAFETY: callers give the signature that cublasLt.h has for the name.
        match ask(unsafe { self.library.function::<F>(name) }?) {
            0 => Ok(()),
            code => Err(self.trouble(name, code)),
        }
    }

    fn trouble(&self, name: &str, code: Code) -> Trouble {
        type Words = unsafe extern "C" fn(Code) -> *const c_char;
        // SAFETY: gives a C string that lives as long as the library.
        let words = unsafe {
            let ask = self.library.function::<Words>("cublasLtGetStatusString").ok();
            ask.map(|f| f(code)).filter(|text| !text.is_null()).map(|text| CStr::from_ptr(text))
        };
        let words = words.map_or_else(|| format!("status {code}"), |words| words.to_string_lossy().into_owned());
        Trouble::Failed(format!("{name}: {words}"))
    }
}

//! The one place that talks to cuBLASLt: loaded where it is, every call checked, its own words when it fails.

mod product;

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::driver::{Gpu, Trouble, forget};
use crate::library::Library;
use crate::twin::Number;
use product::alignment;
pub use product::{Ends, Operand, Product};

type Code = c_int;
type Object = *mut c_void;
type Set = unsafe extern "C" fn(Object, c_int, *const c_void, usize) -> Code;

/// What has no algorithm, as `cublas_api.h` numbers it.
const NOT_SUPPORTED: Code = 15;
/// Attributes, as `cublasLt.h` numbers them, of a product: transposition of the left operand and of the right one; what is done
/// with the result, and where the bias lies that is added.
const TRANSPOSED: [c_int; 2] = [3, 4];
const EPILOGUE: c_int = 7;
const BIAS: c_int = 8;
/// Of a preference: most workspace; alignment of left operand, right operand, and the result before and after.
const WORKSPACE: c_int = 1;
const ALIGNMENT: [c_int; 4] = [5, 6, 7, 8];
/// Of an algorithm: its number.
const ALGORITHM: c_int = 0;
/// `CUBLASLT_EPILOGUE_BIAS`.
const ADD_BIAS: u32 = 4;
/// Bytes of workspace: always as many, so that always the same algorithm is chosen.
pub const SPACE: usize = 32 << 20;

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
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

/// One product, with the algorithm that is the library's first choice.
#[derive(Debug)]
pub struct Plan {
    product: Product,
    ends: Ends,
    descriptor: Object,
    /// Left operand, right operand, result.
    layouts: [Object; 3],
    choice: Choice,
    /// Number of the algorithm.
    pub algorithm: c_int,
}

impl Plan {
    /// Everything that the library knows of the algorithm, which is the same wherever a library of this version makes the same
    /// choice.
    #[must_use]
    pub const fn choice(&self) -> [u64; 8] {
        self.choice.algorithm
    }
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

    /// The library's first choice for a product between these places; nothing where it has none here.
    ///
    /// # Errors
    /// In the library's words.
    pub fn plan(&self, product: Product, ends: Ends) -> Result<Option<Plan>, Trouble> {
        let (operand_type, result_type, compute) = types(product.number);
        // SAFETY: writes one object.
        let descriptor = self.made("cublasLtMatmulDescCreate", |f: unsafe extern "C" fn(_, _, _) -> _, to| unsafe {
            f(to, compute, result_type)
        })?;
        for (attribute, operand) in TRANSPOSED.into_iter().zip([product.left, product.right]) {
            self.set("cublasLtMatmulDescSetAttribute", (descriptor, attribute), &c_int::from(operand.transposed))?;
        }
        if let Some(bias) = ends.bias {
            self.set("cublasLtMatmulDescSetAttribute", (descriptor, EPILOGUE), &ADD_BIAS)?;
            self.set("cublasLtMatmulDescSetAttribute", (descriptor, BIAS), &bias)?;
        }
        let layout = |kind: c_int, (rows, columns, pitch): (u64, u64, u64)| {
            type Layout = unsafe extern "C" fn(*mut Object, c_int, u64, u64, i64) -> Code;
            // SAFETY: writes one object.
            self.made("cublasLtMatrixLayoutCreate", |f: Layout, to| unsafe {
                f(to, kind, rows, columns, pitch.cast_signed())
            })
        };
        let [left, right, result] = product.layouts();
        let layouts = [layout(operand_type, left)?, layout(operand_type, right)?, layout(result_type, result)?];
        let mut plan = Plan { product, ends, descriptor, layouts, choice: Choice::default(), algorithm: 0 };
        let preference = self.preference(ends)?;
        Ok(if self.choose(&mut plan, preference)? { Some(plan) } else { None })
    }

    /// What the library may use, and what it may count on.
    fn preference(&self, ends: Ends) -> Result<Object, Trouble> {
        type Preference = unsafe extern "C" fn(*mut Object) -> Code;
        let name = "cublasLtMatmulPreferenceSetAttribute";
        // SAFETY: writes one object.
        let preference = self.made("cublasLtMatmulPreferenceCreate", |f: Preference, to| unsafe { f(to) })?;
        self.set(name, (preference, WORKSPACE), &SPACE)?;
        for (attribute, at) in ALIGNMENT.into_iter().zip([ends.left, ends.right, ends.result, ends.result]) {
            self.set(name, (preference, attribute), &alignment(at))?;
        }
        Ok(preference)
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
        let ([left, right, result], mut count) = (plan.layouts, 0);
        // SAFETY: all objects came from the library; writes at most one choice.
        let code = unsafe {
            let ask = self.library.function::<Ask>(name)?;
            let to = (&raw mut plan.choice, &raw mut count);
            ask(self.handle, plan.descriptor, left, right, result, result, preference, 1, to.0, to.1)
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

    /// Puts a product on the GPU's stream, with [`SPACE`] bytes of workspace at the address `space`.
    ///
    /// # Errors
    /// In the library's words.
    pub fn start(&self, gpu: &Gpu, plan: &Plan, space: u64) -> Result<(), Trouble> {
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
        let keep = u8::from(plan.product.add);
        let (floats, doubles, integers) = ([1.0, f32::from(keep)], [1.0, f64::from(keep)], [1, i32::from(keep)]);
        let [one, kept]: [*const c_void; 2] = match plan.product.number {
            Number::Fp64 => [(&raw const doubles[0]).cast(), (&raw const doubles[1]).cast()],
            Number::Int8 => [(&raw const integers[0]).cast(), (&raw const integers[1]).cast()],
            _ => [(&raw const floats[0]).cast(), (&raw const floats[1]).cast()],
        };
        let ([left, right, result], Ends { left: a, right: b, result: to, .. }) = (plan.layouts, plan.ends);
        // SAFETY: all objects came from the library; the caller has the matrices at the places that it named, and the workspace,
        // until the stream was waited for.
        self.call::<Multiply>("cublasLtMatmul", |f| unsafe {
            let choice = &raw const plan.choice;
            f(
                self.handle,
                plan.descriptor,
                one,
                a,
                left,
                b,
                right,
                kept,
                to,
                result,
                to,
                result,
                choice,
                space,
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

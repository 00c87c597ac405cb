//! The one place that talks to cuDNN: loaded where it is, every call checked, its own words when it fails.

use std::ffi::{c_int, c_void};

use crate::calls::{Convolution, Precision, Way};
use crate::driver::{Buffer, Gpu, Trouble, forget};
use crate::library::{Library, wrong};

type Code = c_int;
type Object = *mut c_void;
type Make = unsafe extern "C" fn(*mut Object) -> Code;

/// Its function for words.
const WORDS: &str = "cudnnGetErrorString";
/// Types of numbers, as `cudnn.h` numbers them.
const FLOAT: c_int = 0;
const HALF: c_int = 2;
/// Filters out x in x rows x columns.
const PLANES: c_int = 0;
/// Windows are not turned.
const CORRELATION: c_int = 1;

/// How much memory an algorithm wants: of filter or images, of images, of the convolution, of the result.
type Room = unsafe extern "C" fn(Object, Object, Object, Object, Object, c_int, *mut usize) -> Code;
/// `cudnnConvolutionForward` and both ways back: two operands, the convolution, memory, the result.
type Convolve = unsafe extern "C" fn(
    Object,
    *const f32,
    Object,
    u64,
    Object,
    u64,
    Object,
    c_int,
    u64,
    usize,
    *const f32,
    Object,
    u64,
) -> Code;

/// The loaded library, for one GPU.
#[derive(Debug)]
pub struct Cudnn {
    library: Library,
    handle: Object,
    /// As `cudnnGetVersion` says it: 8907 for 8.9.7, 90100 for 9.1.0.
    pub version: usize,
}

/// A convolution with its memory.
pub struct Plan {
    /// What it is.
    pub convolution: Convolution,
    name: &'static str,
    function: Convolve,
    /// Of both operands in the library's order, of the convolution, of the result.
    objects: [Object; 4],
    space: Buffer,
}

#[expect(unsafe_code, reason = "a C interface, called by its names in cudnn.h")]
impl Cudnn {
    /// Loads the library for `gpu` and its stream.
    ///
    /// # Errors
    /// When it is not there, or does not work.
    pub fn load(gpu: &Gpu) -> Result<Self, Trouble> {
        let library = Library::find(&["libcudnn.so.9", "libcudnn.so.8"])?;
        // SAFETY: takes nothing, gives a number.
        let version = unsafe { library.function::<unsafe extern "C" fn() -> usize>("cudnnGetVersion")?() };
        let mut cudnn = Self { library, handle: std::ptr::null_mut(), version };
        cudnn.handle = cudnn.made("cudnnCreate")?;
        forget();
        type Stream = unsafe extern "C" fn(Object, *mut c_void) -> Code;
        // SAFETY: handle and stream are of this GPU, and the stream lives as long as the process.
        cudnn.call::<Stream>("cudnnSetStream", |f| unsafe { f(cudnn.handle, gpu.stream()) })?;
        Ok(cudnn)
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.library.path
    }

    /// `cudnn-9.1`.
    #[must_use]
    pub fn engine(&self) -> String {
        // Until 8.x four digits said major, minor and patch.
        let (major, minor) = match self.version {
            new @ 90_000.. => (new / 10_000, new / 100 % 100),
            old => (old / 1000, old / 100 % 10),
        };
        format!("cudnn-{major}.{minor}")
    }

    /// A convolution by the algorithm that it names.
    ///
    /// # Errors
    /// In the library's words, or when its memory is more than there is; [`Trouble::Absent`] where the library cannot do it
    /// so on this GPU.
    pub fn plan(&self, gpu: &Gpu, convolution: Convolution) -> Result<Plan, Trouble> {
        let Convolution { way, images, edge, size, inputs, outputs, .. } = convolution;
        let kind = if convolution.precision == Precision::Fp16 { HALF } else { FLOAT };
        let (x, y) = (self.tensor(kind, [images, inputs, edge]), self.tensor(kind, [images, outputs, edge]));
        let (x, y, w) = (x?, y?, self.filter(kind, [outputs, inputs, size])?);
        let how = self.convolution(convolution)?;
        let (room, name, objects) = match way {
            Way::Forward => ("cudnnGetConvolutionForwardWorkspaceSize", "cudnnConvolutionForward", [x, w, how, y]),
            Way::BackwardData => {
                ("cudnnGetConvolutionBackwardDataWorkspaceSize", "cudnnConvolutionBackwardData", [w, y, how, x])
            }
            Way::BackwardFilter => {
                ("cudnnGetConvolutionBackwardFilterWorkspaceSize", "cudnnConvolutionBackwardFilter", [x, y, how, w])
            }
        };
        let ([a, b, how, to], algorithm, mut bytes) = (objects, convolution.algorithm as c_int, 0);
        // SAFETY: all objects came from the library; writes one size.
        let code = unsafe {
            let ask = self.library.function::<Room>(room)?;
            ask(self.handle, a, b, how, to, algorithm, &raw mut bytes)
        };
        self.ended(room, code)?;
        // SAFETY: the signature that cudnn.h has for the name.
        let function = unsafe { self.library.function::<Convolve>(name)? };
        Ok(Plan { convolution, name, function, objects, space: gpu.buffer(bytes)? })
    }

    /// Puts the convolution on the stream; `a` and `b` as [`Way`] has them.
    ///
    /// # Errors
    /// As [`Self::plan`].
    pub fn start(&self, plan: &Plan, [a, b, c]: [&Buffer; 3]) -> Result<(), Trouble> {
        // Images come first here, but for what goes back to them.
        let (first, second) = if plan.convolution.way == Way::BackwardData { (a, b) } else { (b, a) };
        let (one, none) = (1.0_f32, 0.0_f32);
        let [x, y, how, to] = plan.objects;
        let (algorithm, space) = (plan.convolution.algorithm as c_int, &plan.space);
        // SAFETY: all objects came from the library; factors are read before the call returns; the buffers hold the tensors
        // and the memory that was asked for, and are the caller's until the stream was waited for.
        let code = unsafe {
            (plan.function)(
                self.handle,
                &raw const one,
                x,
                first.address(),
                y,
                second.address(),
                how,
                algorithm,
                space.address(),
                space.bytes,
                &raw const none,
                to,
                c.address(),
            )
        };
        self.ended(plan.name, code)
    }

    /// What the answer of a function means: that something is not supported has one code in version 8, and a thousand from 9 on.
    fn ended(&self, name: &str, code: Code) -> Result<(), Trouble> {
        match code {
            0 => Ok(()),
            9 | 3000..4000 => Err(Trouble::Absent(format!("{name} is not supported here"))),
            code => Err(wrong(&self.library, (name, WORDS), code)),
        }
    }

    /// Images, one behind the other.
    fn tensor(&self, kind: c_int, [images, channels, edge]: [u32; 3]) -> Result<Object, Trouble> {
        type Set = unsafe extern "C" fn(Object, c_int, c_int, *const c_int, *const c_int) -> Code;
        let object = self.made("cudnnCreateTensorDescriptor")?;
        let sizes = [images, channels, edge, edge].map(|size| size as c_int);
        let strides = [channels * edge * edge, edge * edge, edge, 1].map(|stride| stride as c_int);
        // SAFETY: the object is the library's; reads four numbers of each.
        self.call::<Set>("cudnnSetTensorNdDescriptor", |f| unsafe {
            f(object, kind, 4, sizes.as_ptr(), strides.as_ptr())
        })?;
        Ok(object)
    }

    fn filter(&self, kind: c_int, [outputs, inputs, size]: [u32; 3]) -> Result<Object, Trouble> {
        type Set = unsafe extern "C" fn(Object, c_int, c_int, c_int, *const c_int) -> Code;
        let object = self.made("cudnnCreateFilterDescriptor")?;
        let sizes = [outputs, inputs, size, size].map(|size| size as c_int);
        // SAFETY: the object is the library's; reads four numbers.
        self.call::<Set>("cudnnSetFilterNdDescriptor", |f| unsafe { f(object, kind, PLANES, 4, sizes.as_ptr()) })?;
        Ok(object)
    }

    /// One pixel apart, summed in f32, on tensor cores where numbers have half precision.
    fn convolution(&self, convolution: Convolution) -> Result<Object, Trouble> {
        type Set = unsafe extern "C" fn(Object, c_int, *const c_int, *const c_int, *const c_int, c_int, c_int) -> Code;
        type Math = unsafe extern "C" fn(Object, c_int) -> Code;
        let object = self.made("cudnnCreateConvolutionDescriptor")?;
        let (pads, ones) = ([convolution.pad() as c_int; 2], [1; 2]);
        // SAFETY: the object is the library's; reads two numbers of each.
        self.call::<Set>("cudnnSetConvolutionNdDescriptor", |f| unsafe {
            f(object, 2, pads.as_ptr(), ones.as_ptr(), ones.as_ptr(), CORRELATION, FLOAT)
        })?;
        let tensor_cores = c_int::from(convolution.precision == Precision::Fp16);
        // SAFETY: the object is the library's.
        self.call::<Math>("cudnnSetConvolutionMathType", |f| unsafe { f(object, tensor_cores) })?;
        Ok(object)
    }

    fn made(&self, name: &str) -> Result<Object, Trouble> {
        let mut object = std::ptr::null_mut();
        // SAFETY: writes one object.
        self.call::<Make>(name, |f| unsafe { f(&raw mut object) })?;
        Ok(object)
    }

    fn call<F: Copy>(&self, name: &str, ask: impl FnOnce(F) -> Code) -> Result<(), Trouble> {
        // SAFETY: callers give the signature that cudnn.h has for the name.
        self.ended(name, ask(unsafe { self.library.function::<F>(name) }?))
    }
}

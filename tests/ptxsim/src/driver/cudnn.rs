//! cuDNN, for those who load this file by its name: convolutions of planes one pixel apart, on the CPU.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what cudnn.h says")]

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::dense::{FLOAT, HALF, Manner, read};
use super::errors::Code;
use super::nccl::fault;
use super::queue::Work;
use super::state::{State, state};

const BAD_PARAM: Code = 2000;
const NOT_SUPPORTED: Code = 3000;
const EXECUTION_FAILED: Code = 5000;
/// The one handle there is.
const HANDLE: usize = 88;
/// No algorithm of any way has this number.
const ALGORITHMS: c_int = 8;

/// What was created, by handle.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Object {
    Fresh,
    /// Images or filters: type, and four sizes of a whole block of memory.
    Block {
        kind: c_int,
        sizes: [usize; 4],
    },
    Convolution {
        pad: usize,
        tensor_cores: bool,
    },
}

static OBJECTS: Mutex<Vec<Object>> = Mutex::new(Vec::new());
static STREAM: AtomicUsize = AtomicUsize::new(0);

fn object(handle: usize) -> Option<Object> {
    OBJECTS.lock().unwrap_or_else(PoisonError::into_inner).get(handle.checked_sub(1)?).copied()
}

fn set(handle: usize, new: Object) -> Code {
    let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(object) = handle.checked_sub(1).and_then(|at| objects.get_mut(at)) else { return BAD_PARAM };
    *object = new;
    0
}

unsafe fn create(name: &str, to: *mut usize) -> Code {
    let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    objects.push(Object::Fresh);
    // SAFETY: the caller promises that it may be written.
    unsafe { to.write(objects.len()) };
    drop(objects);
    fault(name).unwrap_or(0)
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnGetVersion() -> usize {
    90_100
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnGetErrorString(code: Code) -> *const c_char {
    match code {
        1001 => c"CUDNN_STATUS_NOT_INITIALIZED",
        BAD_PARAM => c"CUDNN_STATUS_BAD_PARAM",
        NOT_SUPPORTED => c"CUDNN_STATUS_NOT_SUPPORTED",
        EXECUTION_FAILED => c"CUDNN_STATUS_EXECUTION_FAILED",
        _ => c"CUDNN_UNKNOWN_STATUS",
    }
    .as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnCreate(handle: *mut usize) -> Code {
    // SAFETY: the caller promises that it may be written.
    unsafe { handle.write(HANDLE) };
    fault("cudnnCreate").unwrap_or(0)
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnSetStream(handle: usize, stream: usize) -> Code {
    if handle != HANDLE {
        return BAD_PARAM;
    }
    STREAM.store(stream, Ordering::SeqCst);
    0
}

macro_rules! creates {
    ($($name:ident),*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(to: *mut usize) -> Code {
                // SAFETY: the caller promises that it may be written.
                unsafe { create(stringify!($name), to) }
            }
        )*
    };
}

creates!(cudnnCreateTensorDescriptor, cudnnCreateFilterDescriptor, cudnnCreateConvolutionDescriptor);

unsafe fn four(numbers: *const c_int) -> [usize; 4] {
    // SAFETY: the caller promises four numbers.
    std::array::from_fn(|at| unsafe { numbers.add(at).read() } as usize)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnSetTensorNdDescriptor(
    handle: usize,
    kind: c_int,
    count: c_int,
    sizes: *const c_int,
    strides: *const c_int,
) -> Code {
    // SAFETY: the caller promises as many numbers as it says.
    let (sizes, strides) = if count == 4 { unsafe { (four(sizes), four(strides)) } } else { return NOT_SUPPORTED };
    let whole = [sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1];
    if strides == whole { set(handle, Object::Block { kind, sizes }) } else { NOT_SUPPORTED }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnSetFilterNdDescriptor(
    handle: usize,
    kind: c_int,
    format: c_int,
    count: c_int,
    sizes: *const c_int,
) -> Code {
    if (format, count) != (0, 4) {
        return NOT_SUPPORTED;
    }
    // SAFETY: the caller promises as many numbers as it says.
    set(handle, Object::Block { kind, sizes: unsafe { four(sizes) } })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudnnSetConvolutionNdDescriptor(
    handle: usize,
    count: c_int,
    pads: *const c_int,
    steps: *const c_int,
    widths: *const c_int,
    mode: c_int,
    compute: c_int,
) -> Code {
    // SAFETY: the caller promises as many numbers as it says, which are two.
    let two = |numbers: *const c_int| unsafe { [numbers.read(), numbers.add(1).read()] };
    let plain = count == 2 && two(steps) == [1, 1] && two(widths) == [1, 1] && (mode, compute) == (1, FLOAT);
    let [down, right] = two(pads);
    if !plain || down != right {
        return NOT_SUPPORTED;
    }
    set(handle, Object::Convolution { pad: down as usize, tensor_cores: false })
}

#[unsafe(no_mangle)]
pub extern "C" fn cudnnSetConvolutionMathType(handle: usize, math: c_int) -> Code {
    match object(handle) {
        Some(Object::Convolution { pad, .. }) => set(handle, Object::Convolution { pad, tensor_cores: math == 1 }),
        _ => BAD_PARAM,
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Forward,
    Data,
    Filter,
}

/// A convolution: images that go in and come out, filter, zeros around.
#[derive(Clone, Copy, Debug)]
struct Shape {
    way: Way,
    kind: c_int,
    input: [usize; 4],
    output: [usize; 4],
    filter: [usize; 4],
    pad: usize,
}

/// What these objects are together; the result is the last.
fn shape(way: Way, [one, two, how, to]: [usize; 4]) -> Option<Shape> {
    let block = |handle| match object(handle)? {
        Object::Block { kind, sizes } => Some((kind, sizes)),
        _ => None,
    };
    let Object::Convolution { pad, tensor_cores } = object(how)? else { return None };
    let (one, two, to) = (block(one)?, block(two)?, block(to)?);
    let (input, filter, output) = match way {
        Way::Forward => (one, two, to),
        Way::Data => (to, one, two),
        Way::Filter => (one, to, two),
    };
    let kind = input.0;
    let kinds = [FLOAT, HALF].contains(&kind) && filter.0 == kind && output.0 == kind && tensor_cores == (kind == HALF);
    let (input, filter, output) = (input.1, filter.1, output.1);
    let edge = |at: usize| input[at] + 2 * pad + 1 - filter[at] == output[at];
    let fits = input[0] == output[0] && input[1] == filter[1] && output[1] == filter[0] && edge(2) && edge(3);
    (kinds && fits).then_some(Shape { way, kind, input, output, filter, pad })
}

macro_rules! rooms {
    ($($name:ident $way:ident),*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                _handle: usize,
                one: usize,
                two: usize,
                how: usize,
                to: usize,
                algorithm: c_int,
                bytes: *mut usize,
            ) -> Code {
                if let Some(code) = fault(stringify!($name)) {
                    return code;
                }
                if shape(Way::$way, [one, two, how, to]).is_none() || !(0..ALGORITHMS).contains(&algorithm) {
                    return BAD_PARAM;
                }
                // SAFETY: the caller promises that it may be written. As many bytes as tell algorithms apart.
                unsafe { bytes.write(4096 + algorithm as usize) };
                0
            }
        )*
    };
}

rooms!(
    cudnnGetConvolutionForwardWorkspaceSize Forward,
    cudnnGetConvolutionBackwardDataWorkspaceSize Data,
    cudnnGetConvolutionBackwardFilterWorkspaceSize Filter
);

macro_rules! convolutions {
    ($($name:ident $way:ident),*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                handle: usize,
                alpha: *const f32,
                one: usize,
                first: u64,
                two: usize,
                second: u64,
                how: usize,
                algorithm: c_int,
                space: u64,
                bytes: usize,
                beta: *const f32,
                to: usize,
                result: u64,
            ) -> Code {
                // SAFETY: the caller gives both.
                let factors = unsafe { (alpha.read(), beta.read()) };
                let known = handle == HANDLE && factors == (1.0, 0.0) && space != 0;
                match shape(Way::$way, [one, two, how, to]).filter(|_| known && bytes == 4096 + algorithm as usize) {
                    Some(shape) => begin(stringify!($name), shape, [first, second, result]),
                    None => BAD_PARAM,
                }
            }
        )*
    };
}

convolutions!(
    cudnnConvolutionForward Forward,
    cudnnConvolutionBackwardData Data,
    cudnnConvolutionBackwardFilter Filter
);

fn begin(name: &str, shape: Shape, places: [u64; 3]) -> Code {
    let manner = match Manner::of(name) {
        Ok(manner) => manner,
        Err(code) => return code,
    };
    let body = Arc::new(move |state: &mut State, card: usize| shape.run(manner, state, card, places));
    let begun = state().enqueue(STREAM.load(Ordering::SeqCst), Work::Call { body });
    if begun.is_ok() { 0 } else { EXECUTION_FAILED }
}

impl Shape {
    fn run(&self, manner: Manner, state: &mut State, card: usize, [one, two, to]: [u64; 3]) -> Result<(), Code> {
        let count = |sizes: [usize; 4]| sizes.into_iter().product::<usize>();
        let (first, second, result) = match self.way {
            Way::Forward => (self.input, self.filter, self.output),
            Way::Data => (self.filter, self.output, self.input),
            Way::Filter => (self.input, self.output, self.filter),
        };
        let a = read(state, card, (one, self.kind), count(first))?;
        let b = read(state, card, (two, self.kind), count(second))?;
        let mut sums = vec![0.0; count(result)];
        let mut products = 0_usize;
        self.each(|input, filter, output| {
            products += 1;
            match self.way {
                Way::Forward => sums[output] += a[input] * b[filter],
                Way::Data => sums[input] += a[filter] * b[output],
                Way::Filter => sums[filter] += a[input] * b[output],
            }
        });
        manner.finish(state, card, (to, self.kind), (sums, 2.0 * products as f64))
    }

    /// Calls `with` every product's places in images that go in, filter, and images that come out.
    fn each(&self, mut with: impl FnMut(usize, usize, usize)) {
        let at = |sizes: [usize; 4], place: [usize; 4]| {
            place.iter().zip(sizes).fold(0, |at, (place, size)| at * size + place)
        };
        let [images, outputs, height, width] = self.output;
        let [_, inputs, rows, columns] = self.filter;
        for number in 0..images * outputs * height * width {
            let (pixel, plane) = (number % (height * width), number / (height * width));
            let (y, x, output, image) = (pixel / width, pixel % width, plane % outputs, plane / outputs);
            for tap in 0..inputs * rows * columns {
                let (input, place) = (tap / (rows * columns), tap % (rows * columns));
                let (down, right) = (place / columns, place % columns);
                let beside = ((y + down).checked_sub(self.pad), (x + right).checked_sub(self.pad));
                let (Some(v), Some(u)) = beside else { continue };
                if v < self.input[2] && u < self.input[3] {
                    let filter = at(self.filter, [output, input, down, right]);
                    with(at(self.input, [image, input, v, u]), filter, number);
                }
            }
        }
    }
}

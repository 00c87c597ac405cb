//! The one place that talks to the NVIDIA driver: every call checked, every handle owned, nothing that panics.
//!
//! Presence is settled with the dynamic loader before the bindings are touched, because they panic without a library.

mod graph;
mod lanes;
mod peer;
mod pinned;
mod share;
mod trouble;

use std::cell::Cell;
use std::ffi::{CString, c_int, c_void};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use crate::code::{self, Target};
use crate::library::{NO_FILE, loaded};
pub use graph::Graph;
pub use pinned::Pinned;
pub use trouble::Trouble;
use trouble::failed;

/// The driver's library, by the name under which every program loads it.
const LIBRARY: &str = "libcuda.so.1";
/// With `ptx` in this variable of the environment the driver compiles all kernels: for comparing the two.
const CODE: &str = "MUSTER_GPU_CODE";
/// CUDA version of the oldest driver that loads what is shipped (branch 535), as the driver counts it.
const OLDEST: c_int = 12_000;

/// NVIDIA's library called `name`, the one for `what`.
///
/// # Errors
/// Whether it is not there, or broken.
pub fn library(name: &str, what: &str) -> Result<libloading::Library, Trouble> {
    match loaded(name) {
        Ok(Some(library)) => Ok(library),
        Ok(None) => Err(Trouble::NotRun(format!("no NVIDIA {what} library: {name}: {NO_FILE}"))),
        Err(why) => Err(Trouble::Failed(format!("the NVIDIA {what} library does not load: {why}"))),
    }
}

/// How many GPUs the driver shows.
///
/// # Errors
/// Without a usable driver, with its own words.
pub fn count() -> Result<usize, Trouble> {
    let library = library(LIBRARY, "driver")?;
    // The bindings keep their own handle; dropping this one is harmless only while that is open, so it stays.
    std::mem::forget(library);
    result::init().map_err(failed("cuInit"))?;
    let version = version()?;
    if version < OLDEST {
        let (major, minor) = (version / 1000, version % 1000 / 10);
        return Err(Trouble::NotRun(format!(
            "the NVIDIA driver is too old: it knows CUDA {major}.{minor}, 12.0 is needed"
        )));
    }
    let count = result::device::get_count().map_err(failed("cuDeviceGetCount"))?;
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(Trouble::Absent("the NVIDIA driver sees no GPU".to_owned())),
    }
}

/// CUDA version of the driver, as it counts it.
fn version() -> Result<c_int, Trouble> {
    let mut version = 0;
    // SAFETY: the pointer is to a local that outlives the call.
    #[expect(unsafe_code, reason = "driver call")]
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().map_err(failed("cuDriverGetVersion"))?;
    Ok(version)
}

/// One GPU with its kernels loaded.
#[derive(Clone, Debug)]
pub struct Gpu {
    /// Number by PCI address.
    pub index: usize,
    /// Model name.
    pub name: String,
    /// As `nvidia-smi -L` prints it.
    pub uuid: String,
    /// Multiprocessors.
    pub sms: u32,
    /// Largest dynamic shared memory of one block, bytes.
    pub shared: u32,
    /// Most threads of a block.
    pub threads: u32,
    /// Bytes of L2.
    pub l2: usize,
    /// Engine in every metric's identity.
    pub engine: &'static str,
    capability: (c_int, c_int),
    device: sys::CUdevice,
    context: sys::CUcontext,
    modules: Vec<sys::CUmodule>,
    stream: sys::CUstream,
    begin: sys::CUevent,
    end: sys::CUevent,
    mark: sys::CUevent,
}

thread_local! {
    /// Which GPU's context this thread works in: asking the driver each time would be measured as a cost of launching.
    static CURRENT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// A kernel of a loaded module.
#[derive(Clone, Copy, Debug)]
pub struct Function(sys::CUfunction, &'static str);

/// Memory on the GPU, freed when dropped.
#[derive(Debug)]
pub struct Buffer {
    at: sys::CUdeviceptr,
    /// Bytes.
    pub bytes: usize,
}

impl Buffer {
    /// Its address, the same on every GPU of the process.
    #[must_use]
    pub const fn address(&self) -> u64 {
        self.at
    }
}

/// A kernel's argument.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// 32 bits.
    U32(u32),
    /// 64 bits.
    U64(u64),
    /// A double.
    F64(f64),
    /// Address of a buffer.
    At(&'a Buffer),
}

/// Blocks in x and y, threads of a block, bytes of dynamic shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Blocks.
    pub grid: (u32, u32),
    /// Threads of a block.
    pub threads: u32,
    /// Bytes.
    pub shared: u32,
}

#[expect(unsafe_code, reason = "driver calls")]
impl Gpu {
    /// Opens GPU number `index`. [`count`] must have succeeded in this process.
    ///
    /// # Errors
    /// With the driver's words.
    pub fn open(index: usize) -> Result<Self, Trouble> {
        let wrong = failed("opening the GPU");
        let device = result::device::get(index as c_int).map_err(&wrong)?;
        // SAFETY: `device` came from the driver; the context is retained for the life of the process.
        let context = unsafe { result::primary_ctx::retain(device) }.map_err(&wrong)?;
        enter(index, context)?;
        use sys::CUdevice_attribute_enum as Attribute;
        // SAFETY: `device` came from the driver.
        let attribute =
            |which| unsafe { result::device::get_attribute(device, which) }.map_err(failed("cuDeviceGetAttribute"));
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        if major < 8 {
            return Err(Trouble::NotRun(format!("compute capability {major}.{minor} is older than 8.0")));
        }
        let (modules, engine) = load((major, minor))?;
        let positive = |which| Ok::<u32, Trouble>(attribute(which)?.max(1).cast_unsigned());
        Ok(Self {
            index,
            name: result::device::get_name(device).map_err(&wrong)?,
            uuid: uuid(result::device::get_uuid(device).map_err(&wrong)?.bytes),
            sms: positive(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            shared: positive(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            threads: positive(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            l2: positive(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
            engine,
            capability: (major, minor),
            device,
            context,
            modules,
            stream: result::stream::create(result::stream::StreamKind::NonBlocking).map_err(&wrong)?,
            begin: event()?,
            end: event()?,
            mark: event()?,
        })
    }

    /// Which code of these modules runs here; `label` is their name.
    ///
    /// # Errors
    /// With the driver's words.
    pub fn identity(&self, label: &str, modules: &[&str]) -> Result<String, Trouble> {
        Ok(code::identity(self.engine, (label, modules), self.capability, version()?))
    }

    /// Makes this GPU the one that libraries work on.
    pub(crate) fn enter(&self) -> Result<(), Trouble> {
        enter(self.index, self.context)
    }

    /// The kernel called `name`, allowed to use `shared` bytes of dynamic shared memory.
    ///
    /// # Errors
    /// When no module has it.
    pub fn function(&self, name: &'static str, shared: u32) -> Result<Function, Trouble> {
        self.enter()?;
        let text = CString::new(name).map_err(|e| Trouble::Failed(e.to_string()))?;
        // SAFETY: the modules stay loaded while this GPU is open.
        let found = self.modules.iter().find_map(|m| unsafe { result::module::get_function(*m, text.clone()) }.ok());
        let function = found.ok_or_else(|| Trouble::Failed(format!("no kernel '{name}' was loaded")))?;
        let what = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function was just found.
        unsafe { result::function::set_function_attribute(function, what, shared as c_int) }.map_err(failed(name))?;
        Ok(Function(function, name))
    }

    /// Whether a kernel called `name` was loaded: some exist for some devices only.
    ///
    /// # Errors
    /// With the driver's words.
    pub fn has(&self, name: &str) -> Result<bool, Trouble> {
        self.enter()?;
        let text = CString::new(name).map_err(|e| Trouble::Failed(e.to_string()))?;
        // SAFETY: the modules stay loaded while this GPU is open.
        Ok(self.modules.iter().any(|m| unsafe { result::module::get_function(*m, text.clone()) }.is_ok()))
    }

    /// `bytes` of fresh memory.
    ///
    /// # Errors
    /// When there is not that much.
    pub fn buffer(&self, bytes: usize) -> Result<Buffer, Trouble> {
        self.enter()?;
        // SAFETY: a context is current; the size is not zero.
        let at = unsafe { result::malloc_sync(bytes.max(16)) }.map_err(failed("cuMemAlloc"))?;
        Ok(Buffer { at, bytes })
    }

    /// Bytes that are free.
    ///
    /// # Errors
    /// With the driver's words.
    pub fn free(&self) -> Result<usize, Trouble> {
        self.enter()?;
        Ok(result::mem_get_info().map_err(failed("cuMemGetInfo"))?.0)
    }

    /// Puts a kernel on the stream; it runs later.
    ///
    /// # Errors
    /// When the driver does not take it.
    pub fn launch(&self, function: Function, shape: Shape, args: &[Arg<'_>]) -> Result<(), Trouble> {
        self.enter()?;
        let mut words: Vec<u64> = args
            .iter()
            .map(|arg| match arg {
                Arg::U32(value) => u64::from(*value),
                Arg::U64(value) => *value,
                Arg::F64(value) => value.to_bits(),
                Arg::At(buffer) => buffer.at,
            })
            .collect();
        let mut params: Vec<*mut c_void> = words.iter_mut().map(|word| std::ptr::from_mut(word).cast()).collect();
        let grid = (shape.grid.0, shape.grid.1, 1);
        // SAFETY: the function is of a loaded module; each parameter points to eight bytes that outlive the call, at least
        // as many as the kernel reads; buffers are borrowed by the caller until the stream is waited for.
        unsafe {
            result::launch_kernel(function.0, grid, (shape.threads, 1, 1), shape.shared, self.stream, &mut params)
        }
        .map_err(failed(function.1))
    }

    /// Waits for everything on the stream.
    ///
    /// # Errors
    /// When a kernel went wrong.
    pub fn wait(&self) -> Result<(), Trouble> {
        self.enter()?;
        // SAFETY: the stream is ours.
        unsafe { result::stream::synchronize(self.stream) }.map_err(failed("waiting for the GPU"))
    }

    /// Milliseconds on the GPU of what `work` puts on the stream.
    ///
    /// # Errors
    /// Those of `work`, and of the driver.
    pub fn timed(&self, work: &mut dyn FnMut() -> Result<(), Trouble>) -> Result<f64, Trouble> {
        self.start_clock()?;
        work()?;
        self.stop_clock()?;
        self.wait()?;
        self.clocked()
    }

    /// Copies to the GPU, after everything before it on the stream.
    ///
    /// # Errors
    /// With the driver's words.
    pub fn put<T: Copy>(&self, to: &Buffer, from: &[T]) -> Result<(), Trouble> {
        debug_assert!(size_of_val(from) <= to.bytes);
        self.put_at(to.at, from)
    }

    /// The same to an address.
    ///
    /// # Errors
    /// With the driver's words.
    pub fn put_at<T: Copy>(&self, to: u64, from: &[T]) -> Result<(), Trouble> {
        self.enter()?;
        // SAFETY: the slice is copied before the stream goes on; an address outside of what was allocated is an error that the
        // driver tells.
        unsafe { result::memcpy_htod_async(to, from, self.stream) }.map_err(failed("copy to the GPU"))
    }

    /// Copies from the GPU, and waits for it.
    ///
    /// # Errors
    /// With the driver's words.
    pub fn get(&self, to: &mut [u32], from: &Buffer) -> Result<(), Trouble> {
        debug_assert!(size_of_val(to) <= from.bytes);
        self.get_at(to, from.at)
    }

    /// The same from an address.
    ///
    /// # Errors
    /// With the driver's words.
    pub fn get_at(&self, to: &mut [u32], from: u64) -> Result<(), Trouble> {
        self.enter()?;
        // SAFETY: the slice is borrowed until the stream was waited for; an address outside of what was allocated is an error
        // that the driver tells.
        unsafe { result::memcpy_dtoh_async(to, from, self.stream) }.map_err(failed("copy from the GPU"))?;
        self.wait()
    }

    /// Copies between buffers with the copy engine.
    ///
    /// # Errors
    /// With the driver's words.
    pub fn duplicate(&self, to: &Buffer, from: &Buffer) -> Result<(), Trouble> {
        let bytes = to.bytes.min(from.bytes);
        self.enter()?;
        // SAFETY: both buffers hold that many bytes.
        unsafe { result::memcpy_dtod_async(to.at, from.at, bytes, self.stream) }.map_err(failed("copy on the GPU"))
    }
}

#[expect(unsafe_code, reason = "memory of the driver")]
impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated by `Gpu::buffer`, freed once; the driver waits for work that uses it.
        let _ = unsafe { result::free_sync(self.at) };
    }
}

/// To be called when somebody else may have changed this thread's context.
pub(crate) fn forget() {
    CURRENT.set(None);
}

/// An event that knows when it happened.
fn event() -> Result<sys::CUevent, Trouble> {
    result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(failed("cuEventCreate"))
}

/// Makes the context of a GPU this thread's.
fn enter(index: usize, context: sys::CUcontext) -> Result<(), Trouble> {
    if CURRENT.get() != Some(index) {
        // SAFETY: the context was retained for the life of the process.
        #[expect(unsafe_code, reason = "driver call")]
        unsafe { result::ctx::set_current(context) }.map_err(failed("cuCtxSetCurrent"))?;
        CURRENT.set(Some(index));
    }
    Ok(())
}

/// Machine code where the driver takes it, else code that it compiles for itself.
fn load(capability: (i32, i32)) -> Result<(Vec<sys::CUmodule>, &'static str), Trouble> {
    let all = |target: Target| -> Result<Vec<sys::CUmodule>, DriverError> {
        // SAFETY: the images are whole cubins, or PTX that ends with a NUL.
        #[expect(unsafe_code, reason = "driver call")]
        target.modules.iter().map(|m| unsafe { result::module::load_data(m.image().as_ptr().cast()) }).collect()
    };
    let compiled_here = std::env::var_os(CODE).is_some_and(|code| code == "ptx");
    if let Some(target) = code::machine_code(capability).filter(|_| !compiled_here)
        && let Ok(modules) = all(target)
    {
        return Ok((modules, target.engine));
    }
    Ok((all(code::PTX).map_err(failed("loading the kernels"))?, code::PTX.engine))
}

fn uuid(bytes: [std::ffi::c_char; 16]) -> String {
    let hex: String = bytes.iter().map(|b| format!("{:02x}", b.to_ne_bytes()[0])).collect();
    format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

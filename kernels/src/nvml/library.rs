//! The one place that talks to NVIDIA's management library: loaded where it is, every call checked, each answer a value
//! or the reason why there is none.
//!
//! Some forty calls of a few shapes: bindings for the whole library would be larger than all of this worker.

use std::ffi::{CStr, CString, c_char, c_int, c_uint};

use libloading::Library;
use muster_wire::Reading;

use super::record::{Event, Field, Process, Told, Unique, version};
use crate::driver::{Trouble, library};

/// A device of the library.
pub type Handle = usize;
pub(super) type Code = c_int;

const NAME: &str = "libnvidia-ml.so.1";
/// Results, as `nvml.h` numbers them.
pub(super) const SUCCESS: Code = 0;
const NOT_SUPPORTED: Code = 3;
const NO_PERMISSION: Code = 4;
const NOT_FOUND: Code = 6;
const INSUFFICIENT_SIZE: Code = 7;
const FUNCTION_NOT_FOUND: Code = 13;
const VERSION_MISMATCH: Code = 25;
/// Most NVLinks of a GPU.
const LINKS: c_uint = 18;
/// Most processes and retired pages that are asked for.
const LISTED: usize = 64;
/// Critical Xids, as a type of event.
const XID: u64 = 8;

/// How a value is asked for.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// 32 bits.
    Narrow,
    /// 32 bits, about something with a number.
    NarrowOf(c_uint),
    /// 64 bits.
    Wide,
    /// 64 bits, about something with two numbers.
    WideOf(c_uint, c_uint),
    /// 64 bits, about something with three numbers.
    WideOfThree([c_uint; 3]),
    /// 32 bits, and as many behind them that are not asked for: a mode and the next boot's.
    Pair,
    /// A field by its number, of a part with a number.
    Field(c_uint, c_uint),
}

/// A loaded and initialised library.
#[derive(Debug)]
pub struct Nvml(Library);

#[expect(unsafe_code, reason = "a C interface, called by its names in nvml.h")]
impl Nvml {
    /// Loads and initialises the library.
    ///
    /// # Errors
    /// When it is not there, or does not work.
    pub fn load() -> Result<Self, Trouble> {
        let nvml = Self(library(NAME, "management")?);
        // SAFETY: takes nothing.
        match nvml.call::<unsafe extern "C" fn() -> Code>("nvmlInit_v2", |f| unsafe { f() }) {
            Reading::Value(()) => Ok(nvml),
            Reading::Failed(why) => Err(Trouble::Failed(why)),
            _ => Err(Trouble::NotRun("NVIDIA's management library may not be used here".to_owned())),
        }
    }

    /// How many GPUs it knows.
    #[must_use]
    pub fn count(&self) -> Reading<u32> {
        let mut count = 0;
        // SAFETY: writes one number.
        let said = self.call::<unsafe extern "C" fn(*mut c_uint) -> Code>("nvmlDeviceGetCount_v2", |f| unsafe {
            f(&raw mut count)
        });
        with(said, count)
    }

    /// The GPU number `index`.
    #[must_use]
    pub fn at(&self, index: u32) -> Reading<Handle> {
        let mut handle = 0;
        type Ask = unsafe extern "C" fn(c_uint, *mut Handle) -> Code;
        // SAFETY: writes one handle.
        let said = self.call::<Ask>("nvmlDeviceGetHandleByIndex_v2", |f| unsafe { f(index, &raw mut handle) });
        with(said, handle)
    }

    /// The GPU called `uuid`.
    #[must_use]
    pub fn called(&self, uuid: &str) -> Reading<Handle> {
        let Ok(uuid) = CString::new(uuid) else { return Reading::Absent };
        let mut handle = 0;
        type Ask = unsafe extern "C" fn(*const c_char, *mut Handle) -> Code;
        // SAFETY: reads a C string and writes one handle.
        let said = self.call::<Ask>("nvmlDeviceGetHandleByUUID", |f| unsafe { f(uuid.as_ptr(), &raw mut handle) });
        with(said, handle)
    }

    /// What the function called `name` writes as a text.
    #[must_use]
    pub fn text(&self, device: Handle, name: &str) -> Reading<String> {
        let mut text = [0_u8; 96];
        type Ask = unsafe extern "C" fn(Handle, *mut c_char, c_uint) -> Code;
        // SAFETY: writes at most as many bytes as it is told, and the last stays zero.
        let said = self.call::<Ask>(name, |f| unsafe { f(device, text.as_mut_ptr().cast(), text.len() as c_uint - 1) });
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(0);
        with(said, String::from_utf8_lossy(&text[..end]).into_owned())
    }

    /// What the function called `name` counts or measures.
    #[must_use]
    pub fn number(&self, device: Handle, name: &str, how: How) -> Reading<u64> {
        let (mut narrow, mut wide): (c_uint, u64) = (0, 0);
        let mut other = 0;
        // SAFETY: each writes one number of the width that `nvml.h` gives for functions of its shape.
        let said = unsafe {
            match how {
                How::Narrow => {
                    self.call::<unsafe extern "C" fn(Handle, *mut c_uint) -> Code>(name, |f| f(device, &raw mut narrow))
                }
                How::NarrowOf(of) => self
                    .call::<unsafe extern "C" fn(Handle, c_uint, *mut c_uint) -> Code>(name, |f| {
                        f(device, of, &raw mut narrow)
                    }),
                How::Wide => {
                    self.call::<unsafe extern "C" fn(Handle, *mut u64) -> Code>(name, |f| f(device, &raw mut wide))
                }
                How::WideOf(a, b) => {
                    type Ask = unsafe extern "C" fn(Handle, c_uint, c_uint, *mut u64) -> Code;
                    self.call::<Ask>(name, |f| f(device, a, b, &raw mut wide))
                }
                How::WideOfThree([a, b, c]) => {
                    type Ask = unsafe extern "C" fn(Handle, c_uint, c_uint, c_uint, *mut u64) -> Code;
                    self.call::<Ask>(name, |f| f(device, a, b, c, &raw mut wide))
                }
                How::Pair => {
                    type Ask = unsafe extern "C" fn(Handle, *mut c_uint, *mut c_uint) -> Code;
                    self.call::<Ask>(name, |f| f(device, &raw mut narrow, &raw mut other))
                }
                How::Field(id, scope) => return self.field(device, id, scope),
            }
        };
        with(said, u64::from(narrow) | wide)
    }

    /// Field `id` of the part `scope` of a GPU.
    fn field(&self, device: Handle, id: c_uint, scope: c_uint) -> Reading<u64> {
        let mut field = Field::new(id, scope);
        type Ask = unsafe extern "C" fn(Handle, c_int, *mut Field) -> Code;
        // SAFETY: reads and writes one record.
        let said = self.call::<Ask>("nvmlDeviceGetFieldValues", |f| unsafe {
            match f(device, 1, &raw mut field) {
                SUCCESS => field.said,
                code => code,
            }
        });
        match said {
            Reading::Value(()) => field.number(),
            said => with(said, 0),
        }
    }

    /// The record of a GPU.
    #[must_use]
    pub fn told<T: Told>(&self, device: Handle) -> Reading<T> {
        let mut record = T::blank();
        // SAFETY: writes one record of the type that nvml.h has for the name, which `Told` promises.
        let said = self
            .call::<unsafe extern "C" fn(Handle, *mut T) -> Code>(T::CALL, |f| unsafe { f(device, &raw mut record) });
        with(said, record)
    }

    /// Places in on-chip memory that had errors which could not be corrected.
    #[must_use]
    pub fn unique(&self, device: Handle) -> Reading<u32> {
        let mut unique = Unique { version: version::<Unique>(1), count: 0, entries: 0 };
        type Ask = unsafe extern "C" fn(Handle, *mut Unique) -> Code;
        // SAFETY: without room for entries it writes their count alone.
        let said = self.call::<Ask>("nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts", |f| unsafe {
            match f(device, &raw mut unique) {
                INSUFFICIENT_SIZE => SUCCESS,
                code => code,
            }
        });
        with(said, unique.count)
    }

    /// Pages that were retired for single-bit errors (0) or for a double-bit error (1).
    #[must_use]
    pub fn retired(&self, device: Handle, cause: c_uint) -> Reading<u32> {
        let (mut count, mut pages) = (LISTED as c_uint, [0_u64; LISTED]);
        type Ask = unsafe extern "C" fn(Handle, c_uint, *mut c_uint, *mut u64) -> Code;
        // SAFETY: writes at most as many addresses as it is told.
        let said = self.call::<Ask>("nvmlDeviceGetRetiredPages", |f| unsafe {
            match f(device, cause, &raw mut count, pages.as_mut_ptr()) {
                INSUFFICIENT_SIZE => SUCCESS,
                code => code,
            }
        });
        with(said, count)
    }

    /// Processes that compute on a GPU, by their numbers on the host.
    #[must_use]
    pub fn processes(&self, device: Handle) -> Reading<Vec<u32>> {
        let (mut count, mut found) = (LISTED as c_uint, [Process::default(); LISTED]);
        type Ask = unsafe extern "C" fn(Handle, *mut c_uint, *mut Process) -> Code;
        // SAFETY: writes at most as many records as it is told.
        let said = self.call::<Ask>("nvmlDeviceGetComputeRunningProcesses_v3", |f| unsafe {
            f(device, &raw mut count, found.as_mut_ptr())
        });
        with(said, found.iter().take(count as usize).map(|process| process.pid).collect())
    }

    /// Rows of memory that were replaced: for corrected errors, for others, whether some wait for a reset, whether that
    /// failed.
    #[must_use]
    pub fn remapped(&self, device: Handle) -> Reading<[u32; 4]> {
        let mut rows: [c_uint; 4] = [0; 4];
        let [corrected, uncorrected, pending, failed] = &mut rows;
        type Ask = unsafe extern "C" fn(Handle, *mut c_uint, *mut c_uint, *mut c_uint, *mut c_uint) -> Code;
        // SAFETY: writes four numbers.
        let said = self.call::<Ask>("nvmlDeviceGetRemappedRows", |f| unsafe {
            f(device, &raw mut *corrected, &raw mut *uncorrected, &raw mut *pending, &raw mut *failed)
        });
        with(said, rows)
    }

    /// Which of its NVLinks are up; empty without any.
    #[must_use]
    pub fn links(&self, device: Handle) -> Vec<bool> {
        let link = |link| self.number(device, "nvmlDeviceGetNvLinkState", How::NarrowOf(link));
        (0..LINKS).filter_map(|at| link(at).value().map(|active| *active == 1)).collect()
    }

    /// Listens to critical Xids of a GPU from now on; what it gives is for [`xids`](Self::xids).
    #[must_use]
    pub fn listen(&self, device: Handle) -> Option<usize> {
        let mut set = 0_usize;
        // SAFETY: writes one handle.
        let made =
            self.call::<unsafe extern "C" fn(*mut usize) -> Code>("nvmlEventSetCreate", |f| unsafe { f(&raw mut set) });
        type Ask = unsafe extern "C" fn(Handle, u64, usize) -> Code;
        // SAFETY: both handles came from the library.
        let heard = self.call::<Ask>("nvmlDeviceRegisterEvents", |f| unsafe { f(device, XID, set) });
        (made.value().is_some() && heard.value().is_some()).then_some(set)
    }

    /// Xids since the last look.
    #[must_use]
    pub fn xids(&self, set: usize) -> Vec<u64> {
        type Ask = unsafe extern "C" fn(usize, *mut Event, c_uint) -> Code;
        let mut codes = Vec::new();
        while codes.len() < 64 {
            let mut event = Event::default();
            // SAFETY: the set came from the library; writes one event.
            let said = self.call::<Ask>("nvmlEventSetWait_v2", |f| unsafe { f(set, &raw mut event, 0) });
            if said.value().is_none() {
                break;
            }
            codes.push(event.data);
        }
        codes
    }

    /// Calls the function called `name`, of signature `F`; absent where this library or this GPU does not have it.
    pub(super) fn call<F: Copy>(&self, name: &str, ask: impl FnOnce(F) -> Code) -> Reading<()> {
        // SAFETY: callers give the signature that nvml.h has for the name.
        let Ok(function) = (unsafe { self.0.get::<F>(name) }) else { return Reading::Absent };
        match ask(*function) {
            SUCCESS => Reading::Value(()),
            NOT_SUPPORTED | NOT_FOUND | FUNCTION_NOT_FOUND | VERSION_MISMATCH => Reading::Absent,
            NO_PERMISSION => Reading::Denied,
            code => Reading::Failed(format!("{name}: {}", self.words(code))),
        }
    }

    fn words(&self, code: Code) -> String {
        // SAFETY: the function gives a C string that lives as long as the library.
        let words = unsafe {
            let function = self.0.get::<unsafe extern "C" fn(Code) -> *const c_char>("nvmlErrorString");
            function.ok().map(|f| f(code)).filter(|text| !text.is_null()).map(|text| CStr::from_ptr(text))
        };
        words.map_or_else(|| format!("error {code}"), |words| words.to_string_lossy().into_owned())
    }
}

fn with<T>(said: Reading<()>, value: T) -> Reading<T> {
    match said {
        Reading::Value(()) => Reading::Value(value),
        Reading::Absent => Reading::Absent,
        Reading::Denied => Reading::Denied,
        Reading::Failed(why) => Reading::Failed(why),
    }
}

//! The one place that talks to NCCL: loaded where it is, every call checked, its own words when it fails.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::driver::{Buffer, Gpu, Trouble, forget};
use crate::library::Library;

type Code = c_int;
type Comm = *mut c_void;
/// `ncclUint32`, `ncclFloat32` and `ncclSum`, as `nccl.h` numbers them.
const WORD: c_int = 3;
const FLOAT: c_int = 7;
const SUM: c_int = 0;
/// `ncclRemoteError`: another rank is gone, or the network to it.
const REMOTE: Code = 6;
/// Bytes of an [`Id`].
const ID: usize = 128;

type Collective = unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, Comm, *mut c_void) -> Code;
type Reduction = unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, c_int, Comm, *mut c_void) -> Code;
type Send = unsafe extern "C" fn(*const c_void, usize, c_int, c_int, Comm, *mut c_void) -> Code;
type Receive = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Comm, *mut c_void) -> Code;

/// What all GPUs do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// All-reduce: everybody gets the sum.
    Sum,
    /// All-gather: everybody gets what each brings.
    Gather,
    /// All-to-all: everybody gets its part of what each brings.
    Deal,
}

/// What the ranks of a communicator find each other by (`ncclUniqueId`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Id([u8; ID]);

impl Id {
    /// Reads what [`Id::to_string`] wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes().as_chunks::<2>().0;
        let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Vec<u8> = digits.iter().map(byte).collect::<Option<_>>()?;
        (text.len() == 2 * ID).then(|| bytes.try_into().ok().map(Self))?
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A communicator of all GPUs of this node, alone or among those of others.
#[derive(Debug)]
pub struct Nccl {
    library: Library,
    comms: Vec<Comm>,
    /// As `ncclGetVersion` says it: 22105 for 2.21.5.
    pub version: c_int,
}

#[expect(unsafe_code, reason = "a C interface, called by its names in nccl.h")]
impl Nccl {
    /// Loads the library.
    ///
    /// # Errors
    /// When it is not there, or does not work.
    pub fn load() -> Result<Self, Trouble> {
        let mut nccl = Self { library: Library::find(&["libnccl.so.2"])?, comms: Vec::new(), version: 0 };
        let version = &raw mut nccl.version;
        // SAFETY: writes one number.
        nccl.call::<unsafe extern "C" fn(*mut c_int) -> Code>("ncclGetVersion", |f| unsafe { f(version) })?;
        Ok(nccl)
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.library.path
    }

    /// `nccl-2.21`.
    #[must_use]
    pub fn engine(&self) -> String {
        format!("nccl-{}.{}", self.version / 10_000, self.version / 100 % 100)
    }

    /// Brings the GPUs 0 to `count` together.
    ///
    /// # Errors
    /// In the library's words.
    pub fn meet(&mut self, count: usize) -> Result<(), Trouble> {
        type Init = unsafe extern "C" fn(*mut Comm, c_int, *const c_int) -> Code;
        let devices: Vec<c_int> = (0..count as c_int).collect();
        let mut comms = vec![std::ptr::null_mut(); count];
        // SAFETY: reads and writes `count` elements of each.
        let met = self
            .call::<Init>("ncclCommInitAll", |f| unsafe { f(comms.as_mut_ptr(), count as c_int, devices.as_ptr()) });
        forget();
        self.comms = comms;
        met
    }

    /// By what other processes meet this one.
    ///
    /// # Errors
    /// In the library's words.
    pub fn id(&self) -> Result<Id, Trouble> {
        let mut id = Id([0; ID]);
        // SAFETY: writes the bytes of one id.
        self.call::<unsafe extern "C" fn(*mut Id) -> Code>("ncclGetUniqueId", |f| unsafe { f(&raw mut id) })?;
        Ok(id)
    }

    /// Brings `gpus` together with those of all other processes that have `id`: `world` in all, these from `first` on. Returns
    /// once all are there.
    ///
    /// # Errors
    /// In the library's words; [`Trouble::NotRun`] where another rank is at fault.
    pub fn join(&mut self, gpus: &[Gpu], id: Id, (first, world): (usize, usize)) -> Result<(), Trouble> {
        type Init = unsafe extern "C" fn(*mut Comm, c_int, Id, c_int) -> Code;
        self.leave()?;
        let mut comms = vec![std::ptr::null_mut(); gpus.len()];
        self.bare("ncclGroupStart")?;
        let mut asked = Ok(());
        for (rank, (gpu, comm)) in (first..).zip(gpus.iter().zip(&mut comms)) {
            asked = asked.and_then(|()| gpu.enter()).and_then(|()| {
                // SAFETY: the place of the communicator outlives the group.
                self.call::<Init>("ncclCommInitRank", |f| unsafe { f(comm, world as c_int, id, rank as c_int) })
            });
        }
        let ended = self.bare("ncclGroupEnd");
        forget();
        self.comms = comms;
        asked.and(ended)
    }

    /// Ends the communicators, which frees what they hold of every GPU's memory.
    fn leave(&mut self) -> Result<(), Trouble> {
        for comm in std::mem::take(&mut self.comms) {
            // SAFETY: made by this library, and not used again.
            self.call::<unsafe extern "C" fn(Comm) -> Code>("ncclCommDestroy", |f| unsafe { f(comm) })?;
        }
        forget();
        Ok(())
    }

    /// Puts one operation on the streams of all GPUs. `ends` are what each brings and where its result goes; `words` counts
    /// 32-bit elements: of all that is summed, or of the part that goes from one GPU to one other.
    ///
    /// # Errors
    /// In the library's words.
    pub fn start(&self, what: Operation, gpus: &[Gpu], ends: &[(Buffer, Buffer)], words: usize) -> Result<(), Trouble> {
        let ends: Vec<(u64, u64)> = ends.iter().map(|(from, to)| (from.address(), to.address())).collect();
        self.group(what, gpus, &ends, words)
    }

    /// Puts a sum on the streams of all GPUs, in place: `words` floats at an address of each.
    ///
    /// # Errors
    /// In the library's words.
    pub fn sum(&self, gpus: &[Gpu], places: &[u64], words: usize) -> Result<(), Trouble> {
        let ends: Vec<(u64, u64)> = places.iter().map(|place| (*place, *place)).collect();
        self.group(Operation::Sum, gpus, &ends, words)
    }

    /// As [`Nccl::start`], between addresses.
    ///
    /// # Errors
    /// In the library's words.
    pub fn group(&self, what: Operation, gpus: &[Gpu], ends: &[(u64, u64)], words: usize) -> Result<(), Trouble> {
        self.bare("ncclGroupStart")?;
        let mut done = Ok(());
        for (rank, (gpu, ends)) in gpus.iter().zip(ends).enumerate() {
            done = done.and_then(|()| self.put(what, (gpu, rank), *ends, words));
        }
        let ended = self.bare("ncclGroupEnd");
        // It makes other devices current behind our back.
        forget();
        done.and(ended)
    }

    fn put(
        &self,
        what: Operation,
        (gpu, rank): (&Gpu, usize),
        (from, to): (u64, u64),
        words: usize,
    ) -> Result<(), Trouble> {
        let (comm, stream) = (self.comms[rank], gpu.stream());
        let (from, to) = (from as *const u8, to as *mut u8);
        match what {
            // SAFETY: both buffers hold that many elements, on the GPU of this rank, until its stream was waited for.
            Operation::Sum => self.call::<Reduction>("ncclAllReduce", |f| unsafe {
                f(from.cast(), to.cast(), words, FLOAT, SUM, comm, stream)
            }),
            // SAFETY: as above; the result holds one part of each rank.
            Operation::Gather => self.call::<Collective>("ncclAllGather", |f| unsafe {
                f(from.cast(), to.cast(), words, WORD, comm, stream)
            }),
            Operation::Deal => (0..self.comms.len()).try_for_each(|peer| {
                let (part, number) = (peer * words * 4, peer as c_int);
                // SAFETY: as above; each buffer holds one part of or for each rank.
                self.call::<Send>("ncclSend", |f| unsafe {
                    f(from.wrapping_add(part).cast(), words, WORD, number, comm, stream)
                })?;
                // SAFETY: as above.
                self.call::<Receive>("ncclRecv", |f| unsafe {
                    f(to.wrapping_add(part).cast(), words, WORD, number, comm, stream)
                })
            }),
        }
    }

    /// What went wrong since it was put on the streams.
    ///
    /// # Errors
    /// In the library's words, with the GPU.
    pub fn settled(&self) -> Result<(), Trouble> {
        type Ask = unsafe extern "C" fn(Comm, *mut Code) -> Code;
        self.comms.iter().enumerate().try_for_each(|(gpu, comm)| {
            let mut code = 0;
            // SAFETY: writes one code.
            self.call::<Ask>("ncclCommGetAsyncError", |f| unsafe { f(*comm, &raw mut code) })?;
            if code == 0 { Ok(()) } else { Err(self.trouble("NCCL", code).about(&format!("GPU {gpu}"))) }
        })
    }

    fn bare(&self, name: &str) -> Result<(), Trouble> {
        // SAFETY: takes nothing.
        self.call::<unsafe extern "C" fn() -> Code>(name, |f| unsafe { f() })
    }

    fn call<F: Copy>(&self, name: &str, ask: impl FnOnce(F) -> Code) -> Result<(), Trouble> {
        // SAFETY: callers give the signature that nccl.h has for the name.
        match ask(unsafe { self.library.function::<F>(name) }?) {
            0 => Ok(()),
            code => Err(self.trouble(name, code)),
        }
    }

    fn trouble(&self, name: &str, code: Code) -> Trouble {
        type Words = unsafe extern "C" fn(Code) -> *const c_char;
        type Last = unsafe extern "C" fn(Comm) -> *const c_char;
        let text = |found: *const c_char| {
            // SAFETY: not null, so a C string that lives as long as the library.
            (!found.is_null()).then(|| unsafe { CStr::from_ptr(found) }.to_string_lossy().trim().to_owned())
        };
        // SAFETY: signatures of nccl.h; without a communicator the last error of this thread is meant.
        let (words, last) = unsafe {
            let words = self.library.function::<Words>("ncclGetErrorString").ok().and_then(|f| text(f(code)));
            let last = self.library.function::<Last>("ncclGetLastError").ok();
            (words, last.and_then(|f| text(f(std::ptr::null_mut()))))
        };
        let words = words.unwrap_or_else(|| format!("error {code}"));
        let last = last.filter(|last| !last.is_empty()).map(|last| format!(": {last}")).unwrap_or_default();
        let why = format!("{name}: {words}{last}");
        if code == REMOTE { Trouble::NotRun(why) } else { Trouble::Failed(why) }
    }
}

//! Records of `nvml.h` (13.0) that the library fills: their layouts, and which function writes them.

use std::ffi::{c_int, c_uint};

use muster_wire::Reading;

/// `nvmlEventData_t`.
#[repr(C)]
#[derive(Default)]
pub struct Event {
    device: usize,
    kind: u64,
    /// The Xid.
    pub data: u64,
    instances: [c_uint; 2],
}

/// `nvmlEccSramUniqueUncorrectedErrorCounts_v1_t`.
#[repr(C)]
pub struct Unique {
    pub version: c_uint,
    pub count: c_uint,
    pub entries: usize,
}

/// `nvmlProcessInfo_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Process {
    /// Number on the host.
    pub pid: c_uint,
    memory: u64,
    instances: [c_uint; 2],
}

/// `nvmlFieldValue_t`.
#[repr(C)]
#[derive(Default)]
pub struct Field {
    id: c_uint,
    scope: c_uint,
    times: [i64; 2],
    kind: c_uint,
    /// Result for this field.
    pub said: c_int,
    value: u64,
}

impl Field {
    /// Asks for field `id` of the part `scope`.
    pub fn new(id: c_uint, scope: c_uint) -> Self {
        Self { id, scope, ..Self::default() }
    }

    /// The value as the library typed it; absent where it is no count.
    pub fn number(&self) -> Reading<u64> {
        match self.kind {
            1 => Reading::Value(self.value & 0xffff_ffff),
            2 | 3 => Reading::Value(self.value),
            6 => Reading::Value(self.value & 0xffff),
            4 if self.value.cast_signed() >= 0 => Reading::Value(self.value),
            5 if (self.value as u32).cast_signed() >= 0 => Reading::Value(self.value & 0xffff_ffff),
            _ => Reading::Absent,
        }
    }
}

/// A record that `nvml.h` defines, as the function that writes it wants to find it.
///
/// # Safety
/// The type has the layout of what the function called `CALL` writes, and every bit pattern is a value of it.
#[expect(unsafe_code, reason = "the layout is promised, not checked")]
pub unsafe trait Told: Sized {
    /// The function's name.
    const CALL: &'static str;
    /// The record before the call, with its version where it has one.
    fn blank() -> Self;
}

/// `nvmlEccSramErrorStatus_v1_t`: errors of on-chip memory.
#[repr(C)]
pub struct Sram {
    version: c_uint,
    /// Since ever: parity, SEC-DED and corrected; then the same since the driver was loaded; then uncorrected ones since
    /// ever in L2, multiprocessors, PCIe, microcontrollers, elsewhere.
    pub counts: [u64; 11],
    /// Whether NVIDIA's own limit for replacing the GPU is reached.
    pub exceeded: c_uint,
}

/// `nvmlRowRemapperHistogramValues_t`: banks of memory by how many spare rows they have left: all, most, some, few, none.
#[repr(C)]
pub struct Spares(pub [c_uint; 5]);

/// `nvmlMemory_t`: bytes in all, free, in use.
#[repr(C)]
pub struct Memory(pub [u64; 3]);

/// `nvmlGpuFabricInfo_v2_t`: how a GPU is joined to the NVLink fabric.
#[repr(C)]
pub struct Fabric {
    version: c_uint,
    cluster: [u8; 16],
    /// Why joining failed, a result of this library.
    pub status: c_uint,
    /// Which GPUs reach each other.
    pub clique: c_uint,
    /// 0 none here, 1 not begun, 2 going on, 3 done.
    pub state: u8,
    /// Two bits per question; the first two are 1 where bandwidth is degraded.
    pub health: c_uint,
}

/// `nvmlRepairStatus_v1_t`: repairs that wait for a reset, of memory channels and of multiprocessors.
#[repr(C)]
pub struct Repair {
    version: c_uint,
    /// A memory channel.
    pub channel: c_uint,
    /// A cluster of multiprocessors.
    pub tpc: c_uint,
}

/// `NVML_STRUCT_VERSION`.
pub const fn version<T>(number: u32) -> c_uint {
    size_of::<T>() as u32 | number << 24
}

macro_rules! told {
    ($($name:ident from $call:literal: $blank:expr;)*) => {$(
        // SAFETY: laid out field by field as nvml.h (13.0) has it, of integers alone.
        #[expect(unsafe_code, reason = "the layout is promised, not checked")]
        unsafe impl Told for $name {
            const CALL: &'static str = $call;
            fn blank() -> Self {
                $blank
            }
        }
    )*};
}

told! {
    Sram from "nvmlDeviceGetSramEccErrorStatus": Self { version: version::<Self>(1), counts: [0; 11], exceeded: 0 };
    Spares from "nvmlDeviceGetRowRemapperHistogram": Self([0; 5]);
    Memory from "nvmlDeviceGetMemoryInfo": Self([0; 3]);
    Fabric from "nvmlDeviceGetGpuFabricInfoV":
        Self { version: version::<Self>(2), cluster: [0; 16], status: 0, clique: 0, state: 0, health: 0 };
    Repair from "nvmlDeviceGetRepairStatus": Self { version: version::<Self>(1), channel: 0, tpc: 0 };
}

//! The library itself, its devices, and calls that answer with one sensor each.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what nvml.h says")]

use std::ffi::{CStr, c_char, c_uint};

use super::super::state::state;
use super::answer::{Code, INVALID, NOT_FOUND, NOT_SUPPORTED, SUCCESS, count, sensed, show};

unsafe fn say(text: &str, to: *mut c_char, length: c_uint) -> Code {
    if text.len() >= length as usize {
        return INVALID;
    }
    // SAFETY: the caller gave room for `length` bytes, and the text with its NUL is no longer.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), text.len());
        to.add(text.len()).write(0);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> Code {
    state().config.nvml
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(code: Code) -> *const c_char {
    let words = match code {
        9 => c"Driver Not Loaded",
        15 => c"GPU is lost",
        18 => c"Driver/library version mismatch",
        _ => c"Unknown Error",
    };
    words.as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> Code {
    // SAFETY: the caller promises that it may be written.
    unsafe { count.write(state().cards.len() as c_uint) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut usize) -> Code {
    if index as usize >= state().cards.len() {
        return INVALID;
    }
    // SAFETY: the caller promises that it may be written.
    unsafe { device.write(index as usize + 1) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, device: *mut usize) -> Code {
    // SAFETY: the caller gives a C string.
    let uuid = unsafe { CStr::from_ptr(uuid) }.to_string_lossy();
    let count = state().cards.len();
    let Some(index) = (0..count).find(|index| self::uuid(*index) == uuid) else { return NOT_FOUND };
    // SAFETY: the caller promises that it may be written.
    unsafe { device.write(index + 1) };
    SUCCESS
}

/// As the driver tells it, in words.
fn uuid(index: usize) -> String {
    let hex: String = super::super::calls::uuid(index).iter().map(|b| format!("{b:02x}")).collect();
    format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUUID(device: usize, text: *mut c_char, length: c_uint) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { say(&uuid(device - 1), text, length) }
}

/// Calls that say the same of every device.
macro_rules! says {
    ($($name:ident = $text:literal;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(_device: usize, text: *mut c_char, length: c_uint) -> Code {
            // SAFETY: passed on from the caller.
            unsafe { say($text, text, length) }
        }
    )*};
}

says! {
    nvmlDeviceGetName = "PTX simulator";
    nvmlDeviceGetBoardPartNumber = "000-00000-0000-000";
    nvmlDeviceGetVbiosVersion = "00.00.00.00.01";
    nvmlDeviceGetInforomImageVersion = "G000.0000.00.01";
}

/// Calls that show one sensor: name, width of the answer, sensor.
macro_rules! shows {
    ($($name:ident: $width:ty = $sensor:literal;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(device: usize, value: *mut $width) -> Code {
            // SAFETY: passed on from the caller.
            unsafe { show(device, $sensor, value) }
        }
    )*};
}

shows! {
    nvmlDeviceGetPowerUsage: c_uint = "power";
    nvmlDeviceGetEnforcedPowerLimit: c_uint = "power_limit";
    nvmlDeviceGetCurrentClocksThrottleReasons: u64 = "throttle";
    nvmlDeviceGetCurrPcieLinkGeneration: c_uint = "pcie_generation";
    nvmlDeviceGetMaxPcieLinkGeneration: c_uint = "pcie_generation_most";
    nvmlDeviceGetCurrPcieLinkWidth: c_uint = "pcie_width";
    nvmlDeviceGetMaxPcieLinkWidth: c_uint = "pcie_width_most";
    nvmlDeviceGetPcieReplayCounter: c_uint = "replays";
    nvmlDeviceGetPowerManagementDefaultLimit: c_uint = "power_usual";
    nvmlDeviceGetPersistenceMode: c_uint = "persistence";
    nvmlDeviceGetComputeMode: c_uint = "compute_mode";
    nvmlDeviceGetRetiredPagesPendingStatus: c_uint = "retired_pending";
    nvmlDeviceGetTotalEnergyConsumption: u64 = "energy";
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTemperature(device: usize, _sensor: c_uint, value: *mut c_uint) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { show(device, "temperature", value) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUtilizationRates(device: usize, to: *mut [c_uint; 2]) -> Code {
    // SAFETY: the caller promises a record of two numbers, the first of which is the GPU's.
    unsafe { show(device, "utilisation", to.cast::<c_uint>()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo(device: usize, to: *mut [u64; 3]) -> Code {
    let (all, used) = match sensed(device, "memory_used_pct") {
        Ok(percent) => (100 << 30, percent << 30),
        Err(code) => return code,
    };
    // SAFETY: the caller promises a record of three numbers.
    unsafe { to.write([all, all - used, used]) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetClockInfo(device: usize, clock: c_uint, value: *mut c_uint) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { show(device, if clock == 2 { "clock_memory" } else { "clock" }, value) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMaxClockInfo(device: usize, clock: c_uint, value: *mut c_uint) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { show(device, if clock == 2 { "clock_memory" } else { "clock_most" }, value) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetApplicationsClock(device: usize, clock: c_uint, value: *mut c_uint) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { show(device, if clock == 2 { "clock_memory" } else { "clock_application" }, value) }
}

/// Calls that show a mode, now and from the next boot on.
macro_rules! modes {
    ($($name:ident = $sensor:literal;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(device: usize, now: *mut c_uint, next: *mut c_uint) -> Code {
            // SAFETY: passed on from the caller.
            unsafe { show(device, $sensor, now).max(show(device, $sensor, next)) }
        }
    )*};
}

modes! {
    nvmlDeviceGetEccMode = "ecc_mode";
    nvmlDeviceGetMigMode = "mig";
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryErrorCounter(
    device: usize,
    kind: c_uint,
    since: c_uint,
    place: c_uint,
    to: *mut u64,
) -> Code {
    let Some(place) = [(2, "dram"), (7, "sram")].iter().find(|(known, _)| *known == place) else {
        return NOT_SUPPORTED;
    };
    let kind = if kind == 0 { "corrected" } else { "uncorrected" };
    let ever = if since == 0 { "" } else { "_ever" };
    // SAFETY: passed on from the caller.
    unsafe { show(device, &format!("ecc_{kind}_{}{ever}", place.1), to) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTotalEccErrors(
    device: usize,
    kind: c_uint,
    _since: c_uint,
    to: *mut u64,
) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { show(device, if kind == 0 { "ecc_corrected" } else { "ecc_uncorrected" }, to) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetRemappedRows(
    device: usize,
    corrected: *mut c_uint,
    uncorrected: *mut c_uint,
    pending: *mut c_uint,
    failed: *mut c_uint,
) -> Code {
    let rows = [(corrected, "remap_corrected"), (uncorrected, "remap_uncorrected"), (pending, "remap_pending")];
    // SAFETY: passed on from the caller.
    rows.into_iter().map(|(to, name)| unsafe { show(device, name, to) }).max().unwrap_or(SUCCESS).max(
        // SAFETY: passed on from the caller.
        unsafe { show(device, "remap_failed", failed) },
    )
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetNvLinkState(device: usize, link: c_uint, active: *mut c_uint) -> Code {
    let (links, down) = (count(device, "nvlinks"), count(device, "nvlinks_down"));
    if u64::from(link) >= links {
        return INVALID;
    }
    // SAFETY: the caller promises that it may be written.
    unsafe { active.write(c_uint::from(u64::from(link) >= down)) };
    SUCCESS
}

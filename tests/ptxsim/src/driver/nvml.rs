//! NVIDIA's management library, for those who load this file by its name: sensors and counters by the settings' script.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what nvml.h says")]

use std::ffi::{CStr, c_char, c_int, c_uint};

use super::state::state;

type Code = c_int;

const SUCCESS: Code = 0;
const INVALID: Code = 2;
const NOT_SUPPORTED: Code = 3;
const NOT_FOUND: Code = 6;
const TIMEOUT: Code = 10;

/// Writes what the sensor `name` of `device` shows, a handle as this library gives them.
unsafe fn show<T: TryFrom<u64>>(device: usize, name: &str, to: *mut T) -> Code {
    let Some(value) = device.checked_sub(1).and_then(|gpu| state().sense(gpu, name)) else { return NOT_SUPPORTED };
    match T::try_from(value) {
        // SAFETY: the caller promises that it may be written.
        Ok(value) => unsafe { to.write(value) },
        Err(_) => return INVALID,
    }
    SUCCESS
}

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
    let hex: String = super::calls::uuid(index).iter().map(|b| format!("{b:02x}")).collect();
    format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUUID(device: usize, text: *mut c_char, length: c_uint) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { say(&uuid(device - 1), text, length) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(_device: usize, text: *mut c_char, length: c_uint) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { say("PTX simulator", text, length) }
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
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTemperature(device: usize, _sensor: c_uint, value: *mut c_uint) -> Code {
    // SAFETY: passed on from the caller.
    unsafe { show(device, "temperature", value) }
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
    let mut state = state();
    let mut sense = |name| device.checked_sub(1).and_then(|gpu| state.sense(gpu, name)).unwrap_or(0);
    let (links, down) = (sense("nvlinks"), sense("nvlinks_down"));
    if u64::from(link) >= links {
        return INVALID;
    }
    // SAFETY: the caller promises that it may be written.
    unsafe { active.write(c_uint::from(u64::from(link) >= down)) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetCreate(set: *mut usize) -> Code {
    // SAFETY: the caller promises that it may be written.
    unsafe { set.write(1) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceRegisterEvents(device: usize, _kinds: u64, _set: usize) -> Code {
    // Whoever listens hears of one GPU.
    state().current = device.saturating_sub(1);
    SUCCESS
}

/// `nvmlEventData_t`.
#[repr(C)]
pub struct Event {
    device: usize,
    kind: u64,
    data: u64,
    instances: [c_uint; 2],
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetWait_v2(_set: usize, event: *mut Event, _timeout: c_uint) -> Code {
    let mut state = state();
    let current = state.current;
    match state.sense(current, "xid") {
        Some(data) if data > 0 => {
            state.cards[current].sensors.remove("xid");
            // SAFETY: the caller promises that it may be written.
            unsafe { event.write(Event { device: current + 1, kind: 8, data, instances: [0; 2] }) };
            SUCCESS
        }
        _ => TIMEOUT,
    }
}

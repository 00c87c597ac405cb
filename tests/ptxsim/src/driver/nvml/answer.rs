//! How a call answers: a result of `nvml.h`, and a sensor's value where the caller wants it.

use std::ffi::c_int;

use super::super::state::state;

pub(super) type Code = c_int;

pub(super) const SUCCESS: Code = 0;
pub(super) const INVALID: Code = 2;
pub(super) const NOT_SUPPORTED: Code = 3;
pub(super) const NOT_FOUND: Code = 6;
pub(super) const TIMEOUT: Code = 10;
pub(super) const VERSION_MISMATCH: Code = 25;

/// What the sensor `name` of `device`, a handle as this library gives them, shows.
pub(super) fn sensed(device: usize, name: &str) -> Result<u64, Code> {
    device.checked_sub(1).and_then(|gpu| state().sense(gpu, name)).unwrap_or(Err(NOT_SUPPORTED))
}

/// The same, zero where there is no such sensor.
pub(super) fn count(device: usize, name: &str) -> u64 {
    sensed(device, name).unwrap_or(0)
}

/// Writes what the sensor `name` shows.
#[expect(unsafe_code, reason = "a C interface")]
pub(super) unsafe fn show<T: TryFrom<u64>>(device: usize, name: &str, to: *mut T) -> Code {
    match sensed(device, name).map(T::try_from) {
        Ok(Ok(value)) => {
            // SAFETY: the caller promises that it may be written.
            unsafe { to.write(value) };
            SUCCESS
        }
        Ok(Err(_)) => INVALID,
        Err(code) => code,
    }
}

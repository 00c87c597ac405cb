//! Xids, for who listens.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what nvml.h says")]

use std::ffi::c_uint;

use super::super::state::state;
use super::answer::{Code, SUCCESS, TIMEOUT};

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
        Some(Ok(data)) if data > 0 => {
            state.cards[current].sensors.remove("xid");
            // SAFETY: the caller promises that it may be written.
            unsafe { event.write(Event { device: current + 1, kind: 8, data, instances: [0; 2] }) };
            SUCCESS
        }
        _ => TIMEOUT,
    }
}

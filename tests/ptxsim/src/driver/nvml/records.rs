//! Sensors that come in records of `nvml.h`.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what nvml.h says")]

use std::ffi::c_uint;

use super::answer::{Code, SUCCESS, VERSION_MISMATCH, count, sensed};

/// `nvmlEccSramErrorStatus_v1_t`.
#[repr(C)]
pub struct Sram {
    version: c_uint,
    counts: [u64; 11],
    exceeded: c_uint,
}

/// `nvmlGpuFabricInfo_v2_t`.
#[repr(C)]
pub struct Fabric {
    version: c_uint,
    cluster: [u8; 16],
    status: c_uint,
    clique: c_uint,
    state: u8,
    health: c_uint,
}

/// `nvmlRepairStatus_v1_t`.
#[repr(C)]
pub struct Repair {
    version: c_uint,
    channel: c_uint,
    tpc: c_uint,
}

fn known<T>(version: c_uint, number: u32) -> bool {
    version == size_of::<T>() as u32 | number << 24
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetSramEccErrorStatus(device: usize, to: *mut Sram) -> Code {
    // SAFETY: the caller promises a record.
    let to = unsafe { &mut *to };
    let exceeded = match sensed(device, "sram_exceeded") {
        _ if !known::<Sram>(to.version, 1) => return VERSION_MISMATCH,
        Ok(exceeded) => exceeded,
        Err(code) => return code,
    };
    let names = [
        "parity_ever",
        "secded_ever",
        "corrected_ever",
        "parity",
        "secded",
        "corrected",
        "l2_ever",
        "sm_ever",
        "pcie_ever",
        "mcu_ever",
        "other_ever",
    ];
    to.counts = names.map(|name| count(device, &format!("sram_{name}")));
    to.exceeded = exceeded as c_uint;
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetRowRemapperHistogram(device: usize, to: *mut [c_uint; 5]) -> Code {
    let all = match sensed(device, "spares_all") {
        Ok(all) => all,
        Err(code) => return code,
    };
    let rest = ["most", "some", "few", "none"].map(|name| count(device, &format!("spares_{name}")) as c_uint);
    // SAFETY: the caller promises a record of five numbers.
    unsafe { to.write([all as c_uint, rest[0], rest[1], rest[2], rest[3]]) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetGpuFabricInfoV(device: usize, to: *mut Fabric) -> Code {
    // SAFETY: the caller promises a record.
    let to = unsafe { &mut *to };
    to.state = match sensed(device, "fabric_state") {
        _ if !known::<Fabric>(to.version, 2) => return VERSION_MISMATCH,
        Ok(state) => state as u8,
        Err(code) => return code,
    };
    to.cluster = *b"muster-cluster-1";
    to.status = count(device, "fabric_status") as c_uint;
    to.clique = count(device, "fabric_clique") as c_uint;
    // Bandwidth is degraded (1) or not (2).
    to.health = if count(device, "fabric_degraded") > 0 { 1 } else { 2 };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetRepairStatus(device: usize, to: *mut Repair) -> Code {
    // SAFETY: the caller promises a record.
    let to = unsafe { &mut *to };
    to.channel = match sensed(device, "repair_channel") {
        _ if !known::<Repair>(to.version, 1) => return VERSION_MISMATCH,
        Ok(channel) => channel as c_uint,
        Err(code) => return code,
    };
    to.tpc = count(device, "repair_tpc") as c_uint;
    SUCCESS
}

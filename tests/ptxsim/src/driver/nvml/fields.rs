//! Sensors that are asked for by the number of a field.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what nvml.h says")]

use std::ffi::{c_int, c_uint};

use super::answer::{Code, INVALID, NOT_SUPPORTED, SUCCESS, count, sensed};

/// `nvmlFieldValue_t`.
#[repr(C)]
pub struct Field {
    id: c_uint,
    scope: c_uint,
    times: [i64; 2],
    kind: c_uint,
    said: Code,
    value: u64,
}

/// Type of a value with 64 bits, in `nvml.h`.
const WIDE: c_uint = 3;

/// Field and sensor.
const SENSORS: [(c_uint, &str); 17] = [
    (74, "held_power"),
    (75, "held_heat"),
    (77, "held_board"),
    (79, "held_reliability"),
    (82, "temperature_memory"),
    (142, "remap_corrected"),
    (143, "remap_uncorrected"),
    (169, "pcie_recoveries"),
    (173, "pcie_correctable"),
    (174, "pcie_naks"),
    (176, "pcie_bad_tlp"),
    (179, "pcie_nonfatal"),
    (180, "pcie_fatal"),
    (182, "pcie_lcrc"),
    (230, "recovery"),
    (270, "held_hardware"),
    (271, "held_brake"),
];
/// Field of a link, and its sensor before the number of the link.
const LINKS: [(c_uint, &str); 3] = [(161, "nvlink_replays"), (162, "nvlink_recoveries"), (163, "nvlink_crc")];

fn value(device: usize, id: c_uint, scope: c_uint) -> Result<u64, Code> {
    if let Some((_, sensor)) = SENSORS.iter().find(|(known, _)| *known == id) {
        return sensed(device, sensor);
    }
    if scope == c_uint::MAX && [138, 139].contains(&id) {
        return sensed(device, "nvlink_kib");
    }
    let (links, of_link) = (count(device, "nvlinks"), LINKS.iter().find(|(known, _)| *known == id));
    match (of_link, id) {
        _ if u64::from(scope) >= links => Err(INVALID),
        // A link that nobody scripted counts nothing.
        (Some((_, sensor)), _) => Ok(count(device, &format!("{sensor}.{scope}"))),
        (None, 164) => sensed(device, "nvlink_speed"),
        (None, 166) => Ok(4),
        _ => Err(NOT_SUPPORTED),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetFieldValues(device: usize, number: c_int, fields: *mut Field) -> Code {
    // SAFETY: the caller promises as many records.
    let fields = unsafe { std::slice::from_raw_parts_mut(fields, number.max(0) as usize) };
    for field in fields {
        match value(device, field.id, field.scope) {
            Ok(value) => (field.kind, field.said, field.value) = (WIDE, SUCCESS, value),
            Err(code) => field.said = code,
        }
    }
    SUCCESS
}

//! Performance counters: what happened between two samples, by sensors with the number of the metric.

#![expect(unsafe_code, reason = "a C interface: pointers come from the caller, who promises what nvml.h says")]

use std::ffi::c_uint;
use std::sync::{Mutex, PoisonError};

use super::answer::{Code, INVALID, NOT_SUPPORTED, SUCCESS, VERSION_MISMATCH, sensed};

/// Of which device each sample is, zero while it is of none.
static SAMPLES: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// `nvmlGpmSupport_t`.
#[repr(C)]
pub struct Support {
    version: c_uint,
    supported: c_uint,
}

/// `nvmlGpmMetric_t`.
#[repr(C)]
pub struct Metric {
    id: c_uint,
    said: Code,
    value: f64,
    names: [usize; 3],
}

/// `nvmlGpmMetricsGet_t`, before its metrics.
#[repr(C)]
pub struct Metrics {
    version: c_uint,
    count: c_uint,
    samples: [usize; 2],
    metrics: [Metric; 0],
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmQueryDeviceSupport(device: usize, to: *mut Support) -> Code {
    // SAFETY: the caller promises a record.
    let to = unsafe { &mut *to };
    if to.version != 1 {
        return VERSION_MISMATCH;
    }
    to.supported = c_uint::from(sensed(device, "gpm_2").is_ok());
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleAlloc(to: *mut usize) -> Code {
    let mut samples = SAMPLES.lock().unwrap_or_else(PoisonError::into_inner);
    samples.push(0);
    // SAFETY: the caller promises that it may be written.
    unsafe { to.write(samples.len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlGpmSampleGet(device: usize, sample: usize) -> Code {
    let mut samples = SAMPLES.lock().unwrap_or_else(PoisonError::into_inner);
    match sample.checked_sub(1).and_then(|at| samples.get_mut(at)) {
        Some(of) => {
            *of = device;
            SUCCESS
        }
        None => INVALID,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmMetricsGet(to: *mut Metrics) -> Code {
    // SAFETY: the caller promises a record, with as many metrics behind it as it says.
    let (version, samples, metrics) = unsafe {
        let metrics = std::slice::from_raw_parts_mut((&raw mut (*to).metrics).cast::<Metric>(), (*to).count as usize);
        ((*to).version, (*to).samples, metrics)
    };
    if version != 1 {
        return VERSION_MISMATCH;
    }
    let known = SAMPLES.lock().unwrap_or_else(PoisonError::into_inner);
    let of = |sample: usize| sample.checked_sub(1).and_then(|at| known.get(at).copied()).unwrap_or(0);
    let device = of(samples[0]);
    if device == 0 || device != of(samples[1]) || samples[0] == samples[1] {
        return INVALID;
    }
    for metric in metrics {
        match sensed(device, &format!("gpm_{}", metric.id)) {
            Ok(value) => (metric.said, metric.value) = (SUCCESS, value as f64),
            Err(_) => metric.said = NOT_SUPPORTED,
        }
    }
    SUCCESS
}

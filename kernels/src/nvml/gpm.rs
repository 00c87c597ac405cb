//! Performance counters of Hopper and later GPUs: what happened between two samples.

use std::ffi::{c_int, c_uint};

use muster_wire::Reading;

use super::library::{Code, Handle, Nvml, SUCCESS};

/// A sample that the library keeps.
pub type Sample = usize;

/// Room for metrics: the library's own records have between 98 and 333, and only as many as are asked for are touched.
const ROOM: usize = 512;
/// Version of the two records below.
const VERSION: c_uint = 1;

/// `nvmlGpmSupport_t`.
#[repr(C)]
struct Support {
    version: c_uint,
    supported: c_uint,
}

/// `nvmlGpmMetric_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Metric {
    id: c_uint,
    said: c_int,
    value: f64,
    names: [usize; 3],
}

/// `nvmlGpmMetricsGet_t`.
#[repr(C)]
struct Metrics {
    version: c_uint,
    count: c_uint,
    samples: [Sample; 2],
    metrics: [Metric; ROOM],
}

#[expect(unsafe_code, reason = "a C interface, called by its names in nvml.h")]
impl Nvml {
    /// Room for a sample of a GPU that has these counters; it lives as long as the library.
    #[must_use]
    pub fn sample_room(&self, device: Handle) -> Option<Sample> {
        let mut support = Support { version: VERSION, supported: 0 };
        type Ask = unsafe extern "C" fn(Handle, *mut Support) -> Code;
        // SAFETY: writes one record.
        let said = self.call::<Ask>("nvmlGpmQueryDeviceSupport", |f| unsafe { f(device, &raw mut support) });
        said.value().filter(|()| support.supported != 0)?;
        let mut sample = 0;
        // SAFETY: writes one handle.
        let made = self
            .call::<unsafe extern "C" fn(*mut Sample) -> Code>("nvmlGpmSampleAlloc", |f| unsafe { f(&raw mut sample) });
        made.value().map(|()| sample)
    }

    /// Takes a sample of a GPU's counters now; whether that worked.
    #[must_use]
    pub fn sample(&self, device: Handle, into: Sample) -> bool {
        type Ask = unsafe extern "C" fn(Handle, Sample) -> Code;
        // SAFETY: both handles came from the library.
        let said = self.call::<Ask>("nvmlGpmSampleGet", |f| unsafe { f(device, into) });
        said.value().is_some()
    }

    /// What each of the metrics `ids` was from one sample to a later one of the same GPU.
    #[must_use]
    pub fn between(&self, samples: [Sample; 2], ids: &[u32]) -> Vec<Option<f64>> {
        let blank = Metric { id: 0, said: -1, value: 0.0, names: [0; 3] };
        let mut asked = Box::new(Metrics {
            version: VERSION,
            count: ids.len().min(ROOM) as c_uint,
            samples,
            metrics: [blank; ROOM],
        });
        asked.metrics.iter_mut().zip(ids).for_each(|(metric, id)| metric.id = *id);
        // SAFETY: the record has room for more metrics than are asked for, and both samples came from the library.
        let said = self
            .call::<unsafe extern "C" fn(*mut Metrics) -> Code>("nvmlGpmMetricsGet", |f| unsafe { f(&raw mut *asked) });
        let told = |metric: &Metric| (metric.said == SUCCESS && metric.value.is_finite()).then_some(metric.value);
        let worked = matches!(said, Reading::Value(()));
        asked.metrics.iter().take(ids.len()).map(|metric| told(metric).filter(|_| worked)).collect()
    }
}

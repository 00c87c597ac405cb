//! The probe that this console pushes.

use std::sync::Arc;

use muster_fleet::Probe;

static BYTES: &[u8] = include_bytes!(env!("MUSTER_PROBE_PATH"));

/// The bytes of the static probe built with this console.
#[must_use]
pub fn embedded_bytes() -> &'static [u8] {
    BYTES
}

/// The static probe built with this console.
#[must_use]
pub fn embedded() -> Arc<Probe> {
    Arc::new(Probe::new(Arc::from(BYTES)))
}

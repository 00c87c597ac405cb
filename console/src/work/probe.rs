//! The probe that this console pushes.

use std::env::consts::ARCH;
use std::sync::Arc;

use muster_fleet::Probe;

static OWN: &[u8] = include_bytes!(env!("MUSTER_PROBE_PATH"));
/// Empty in a console that was built without it.
static OTHER: &[u8] = include_bytes!(env!("MUSTER_OTHER_PROBE_PATH"));
/// What `uname -m` says where the other one runs.
const OTHER_MACHINE: &str = env!("MUSTER_OTHER_MACHINE");

/// The static probe for this machine's own architecture.
#[must_use]
pub fn embedded_bytes() -> &'static [u8] {
    OWN
}

/// The static probe, for every architecture that it was built for with this console.
#[must_use]
pub fn embedded() -> Arc<Probe> {
    let other = (!OTHER.is_empty()).then(|| (OTHER_MACHINE, Arc::from(OTHER)));
    // The compiler's name of an architecture is that of `uname -m` for both.
    Arc::new(Probe::of((ARCH, Arc::from(OWN)), other))
}

//! Telemetry as Parquet. What the library does with foreign bytes is caught by the reader, so a panic in it is no finding; one in ours is.
#![no_main]

use std::sync::Once;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use muster_import::telemetry::Recording;

static QUIET: Once = Once::new();

fuzz_target!(|bytes: &[u8]| {
    // libFuzzer's own hook ends the process before anybody can catch; what nobody catches still ends it.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let mut recording = Recording::default();
    let _ = recording.add_parquet(Bytes::copy_from_slice(bytes));
    recording.sort();
    assert!(recording.rows().iter().all(|row| row.value.is_finite() && row.time_s >= 0.0));
});

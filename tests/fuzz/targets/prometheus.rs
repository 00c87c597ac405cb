//! Prometheus' answers as they come, and whatever else a file of telemetry may be by its first bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_import::telemetry::{Files, Prometheus, Recording};

fuzz_target!(|bytes: &[u8]| {
    let mut prometheus = Prometheus::default();
    // Twice, as a folder may hold the same series in two files.
    let _ = prometheus.add(bytes).and_then(|()| prometheus.add(bytes));
    let mut recording = Recording::default();
    let left = prometheus.into_recording(&mut recording).unwrap_or_default();
    assert!(left.unknown.len() <= 256);
    recording.sort();
    let _ = recording.hold();
    assert!(recording.rows().iter().all(|row| row.value.is_finite() && row.time_s >= 0.0));
    assert!(recording.nodes.iter().all(|name| !name.contains(['\u{1b}', '\0'])));

    let mut files = Files::default();
    let _ = files.add_stream(bytes);
    let _ = files.finish();
});

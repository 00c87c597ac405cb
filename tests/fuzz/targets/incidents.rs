//! Incident logs of other systems.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_analysis::risk::import::{Limits, csv_incidents, json_incidents, sacctmgr_events};

fuzz_target!(|text: &str| {
    let limits = || Limits { bytes: 1 << 16, rows: 1_000, errors: 10 };
    let _ = (csv_incidents(text, limits()), json_incidents(text, limits()), sacctmgr_events(text, 1.0, limits()));
});

//! Recorded host keys, and what they say of a host.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use muster_fleet::hostkey::KnownHosts;

fuzz_target!(|text: &str| {
    let mut known = KnownHosts::default();
    known.add(text, Path::new("known_hosts"));
    for (host, port) in [("node7", 22), ("10.0.0.7", 2222)] {
        let _ = (known.algorithms(host, port), known.has_authority(host, port));
    }
    let _ = known.skipped();
});

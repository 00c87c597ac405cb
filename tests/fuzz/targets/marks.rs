//! What people said of a case: read, changed, and read back as it was written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_triage::marks::Marks;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut marks) = Marks::parse(bytes) else { return };
    if let Some(first) = marks.wrong.first().cloned() {
        marks.confirm(first.clone());
        marks.set_wrong(first, false);
    }
    let written = serde_json::to_vec(&marks).unwrap();
    assert!(Marks::parse(&written).is_ok_and(|read| read == marks));
});

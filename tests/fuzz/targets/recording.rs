//! A recording of telemetry: raw, or chunks with right checksums around whatever the fuzzer makes of one.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use muster_store::telemetry::{is_recording, replay};

const HEADER: &[u8; 16] = b"MUSTERTEL\r\n\0\x01\0\0\0";

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, rest)) = bytes.split_first() else { return };
    let file = std::path::PathBuf::from(format!("/dev/shm/muster-fuzz-{}.tel", std::process::id()));
    let recording = match mode & 3 {
        0 => rest.to_vec(),
        1 => [HEADER, rest].concat(),
        _ => framed(rest),
    };
    fs::write(&file, recording).unwrap();
    let mut values = 0_u64;
    let _ = (is_recording(&file), replay(&file, &mut |_| values += 1));
    fs::remove_file(file).unwrap();
});

/// Chunks of which the bytes say how long each is.
fn framed(mut rest: &[u8]) -> Vec<u8> {
    let mut recording = HEADER.to_vec();
    while let Some((length, more)) = rest.split_first() {
        let (chunk, left) = more.split_at(more.len().min(usize::from(*length) * 4));
        let payload = zstd::bulk::compress(chunk, 1).unwrap();
        let length = u32::try_from(payload.len()).unwrap();
        let crc = crc32fast::hash(&[&length.to_le_bytes()[..], &payload].concat());
        recording.extend([&length.to_le_bytes()[..], &crc.to_le_bytes(), &payload].concat());
        rest = left;
    }
    recording
}

//! A replay file: raw, or frames with right checksums around whatever the fuzzer makes of a head and a part.
#![no_main]

use std::fs;
use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use muster_store::portable::Portable;

const HEADER: &[u8; 16] = b"MUSTERRPL\r\n\0\x01\0\0\0";

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, rest)) = bytes.split_first() else { return };
    let file = match mode & 3 {
        0 => rest.to_vec(),
        1 => [HEADER, rest].concat(),
        _ => {
            let (head, part) = rest.split_at(rest.len().min(usize::from(mode >> 2) * 4));
            [&HEADER[..], &frame(0, head), &frame(1, part)].concat()
        }
    };
    let dir = PathBuf::from(format!("/dev/shm/muster-fuzz-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let read = Portable::of(&dir.join("fuzzed.replay"), &file[..], file.len() as u64);
    let _ = read.and_then(|portable| portable.unpack(&dir));
    fs::remove_dir_all(&dir).unwrap();
});

/// The first frame of a part, with its length and checksum.
fn frame(part: u32, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len() as u32;
    let place = [&part.to_le_bytes()[..], &0_u64.to_le_bytes(), &u64::from(length).to_le_bytes()].concat();
    let crc = crc32fast::hash(&[&place, bytes].concat());
    [&length.to_le_bytes()[..], &crc.to_le_bytes(), bytes].concat()
}

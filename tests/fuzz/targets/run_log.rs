//! A log file of a database: raw, or frames with right checksums around whatever the fuzzer makes of an entry.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use muster_store::{Db, Store};

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, rest)) = bytes.split_first() else { return };
    let dir = std::path::PathBuf::from(format!("/dev/shm/muster-fuzz-{}", std::process::id()));
    let (runs, criteria) = (dir.join("runs"), dir.join("criteria"));
    fs::create_dir_all(&runs).unwrap();
    fs::create_dir_all(&criteria).unwrap();
    let log = match mode & 3 {
        0 => rest.to_vec(),
        1 => [b"MUSTERLOG\r\n\0\x01\0\0\0", rest].concat(),
        _ => framed(rest),
    };
    let file = match mode >> 2 & 3 {
        0 | 1 => runs.join("r.log"),
        2 => criteria.join("criteria.log"),
        _ => dir.join("incidents.log"),
    };
    fs::write(&file, log).unwrap();
    if let Ok(store) = Db::open_read_only(&dir) {
        let _ = (store.records("r"), store.done("r"), store.summaries("r"), store.incidents(), store.nodes());
        let _ = store.list(muster_store::Table::Criteria);
    }
    fs::remove_file(file).unwrap();
});

/// Entries of which the bytes say how long each is.
fn framed(mut rest: &[u8]) -> Vec<u8> {
    let mut log = b"MUSTERLOG\r\n\0\x01\0\0\0".to_vec();
    while let Some((length, more)) = rest.split_first() {
        let (entry, left) = more.split_at(more.len().min(usize::from(*length) * 4));
        let payload = zstd::bulk::compress(entry, 1).unwrap();
        let length = u32::try_from(payload.len()).unwrap();
        let crc = crc32fast::hash(&[&length.to_le_bytes()[..], &payload].concat());
        log.extend([&length.to_le_bytes()[..], &crc.to_le_bytes(), &payload].concat());
        rest = left;
    }
    log
}

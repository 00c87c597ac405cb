//! What lies beside the log files: the version, the list of files, the contents of a run, the lock.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use muster_store::{Db, Store};

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, rest)) = bytes.split_first() else { return };
    let dir = std::path::PathBuf::from(format!("/dev/shm/muster-fuzz-{}", std::process::id()));
    fs::create_dir_all(dir.join("runs")).unwrap();
    let name = ["version", "files", "runs/r.contents", "lock"][usize::from(mode & 3)];
    // A right checksum leads past the first gate.
    let bytes = match (mode & 3, mode & 4) {
        (1, 4) => {
            let text = String::from_utf8_lossy(rest);
            format!("{text}\n{:08x}\n", crc32fast::hash(format!("{text}\n").as_bytes())).into_bytes()
        }
        (2, 4) => {
            let packed = zstd::bulk::compress(rest, 1).unwrap();
            [&crc32fast::hash(&packed).to_le_bytes()[..], &packed].concat()
        }
        _ => rest.to_vec(),
    };
    fs::write(dir.join("runs/r.log"), b"MUSTERLOG\r\n\0\x01\0\0\0").unwrap();
    fs::write(dir.join(name), bytes).unwrap();
    if let Ok(store) = Db::open_read_only(&dir) {
        let _ = (store.runs(), store.records("r"));
    }
    fs::remove_file(dir.join(name)).unwrap();
});

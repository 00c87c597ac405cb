//! Output of other tools, each in the format that the first byte names and in the one it looks like.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_import::format::{Told, read};
use muster_import::{Format, Limits};

fuzz_target!(|bytes: &[u8]| {
    let Some((which, rest)) = bytes.split_first() else { return };
    let told = Told { node: "n1", benchmark: "b", rank: Some(0), operation: "allreduce" };
    let limits = Limits { line: 1 << 16, rows: 1_000, columns: 1_000 };
    let named = Format::ALL[usize::from(*which) % Format::ALL.len()];
    for format in [Some(named), Format::of(rest)].into_iter().flatten() {
        let _ = read(rest, format, &told, limits);
    }
});

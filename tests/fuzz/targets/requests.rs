//! What a probe may be asked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_wire::{Decoder, MAGIC};

fuzz_target!(|bytes: &[u8]| {
    let mut decoder = Decoder::new();
    decoder.push(&MAGIC);
    decoder.push(bytes);
    while let Ok(Some(_)) = decoder.request() {}
});

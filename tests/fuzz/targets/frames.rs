//! What a node may say: bytes in pieces, up to the first that breaks the contract.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_wire::{Decoder, MAGIC};

fuzz_target!(|bytes: &[u8]| {
    let mut decoder = Decoder::new();
    // The first byte says in pieces of which size, and whether the greeting is there already.
    let Some((first, rest)) = bytes.split_first() else { return };
    if first & 1 == 1 {
        decoder.push(&MAGIC);
    }
    for piece in rest.chunks(usize::from(first >> 1).max(1)) {
        decoder.push(piece);
        loop {
            match decoder.frame() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
    let _ = decoder.noise();
});

//! `node[001-128,130]`: whatever expands also folds, and folds back to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_fleet::hostlist::{expand, fold, terms};

fuzz_target!(|text: &str| {
    let _ = terms(text);
    let Ok(names) = expand(text) else { return };
    if names.len() < 1_000 {
        let folded = fold(names.iter().map(String::as_str));
        let _ = expand(&folded);
    }
});

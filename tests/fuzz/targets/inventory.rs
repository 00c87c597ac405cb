//! The inventory, and a selection from it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_fleet::{Inventory, Selection};

fuzz_target!(|text: &str| {
    let (inventory, selection) = text.split_once('\0').unwrap_or((text, "@all"));
    if let Ok(inventory) = Inventory::parse(inventory, "inventory.toml") {
        // A file of names is not the fuzzer's to read.
        if !selection.contains('^') {
            let _ = inventory.select(&Selection { include: vec![selection.to_owned()], exclude: Vec::new() });
        }
    }
});

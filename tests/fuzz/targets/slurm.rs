//! What Slurm says of its nodes, as text and as JSON, its topology, and the options of a command line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_fleet::Inventory;
use muster_fleet::slurm::{Options, from_json, from_text, leaves};

fuzz_target!(|text: &str| {
    let leaves = leaves(text);
    for listed in [from_text(text), from_json(text)].into_iter().flatten() {
        let inventory = Inventory::from_slurm(&listed, &leaves);
        assert_eq!(inventory.nodes().len(), listed.len(), "each once");
    }
    if let Ok(options) = Options::parse(text) {
        assert_eq!(Options::parse(&options.to_string()).ok(), Some(options));
    }
});

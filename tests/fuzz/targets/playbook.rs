//! A playbook, and the plan made of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_playbook::{Playbook, plan};

fuzz_target!(|text: &str| {
    if let Ok(playbook) = Playbook::parse(text, "playbook.toml") {
        let _ = plan(&playbook, &["n1".to_owned(), "n2".to_owned()]).to_string();
    }
});

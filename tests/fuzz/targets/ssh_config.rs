//! The operator's SSH configuration, and what it says of a host.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use muster_fleet::sshconfig::{Config, Given, Local};

fuzz_target!(|text: &str| {
    // Other files are not the fuzzer's to read.
    if text.to_ascii_lowercase().contains("include") {
        return;
    }
    let local = Local { home: "/home/me".into(), user: "me".into(), host: "here".into() };
    if let Ok(config) = Config::parse(local, text, Path::new("config")) {
        let _ = (config.resolve("node7", Given::default()), config.ignored());
    }
});

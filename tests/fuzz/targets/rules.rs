//! SuperBench's rule files and baselines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_analysis::rules::{Baseline, RuleFile};

fuzz_target!(|text: &str| {
    let _ = (RuleFile::parse(text), Baseline::parse(text));
});

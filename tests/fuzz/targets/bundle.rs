//! Files of a failed job's bundle, alone and together, and the verdict over them.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use muster_triage::diagnose;
use muster_logs::Rules;
use muster_import::bundle::{gather, part};

/// Where a file may stand in a bundle.
const PLACES: [&str; 15] = [
    "job.json",
    "logs/rank_0.log",
    "dmesg/n1.log",
    "ras/poll1.json",
    "ras/poll2.txt",
    "fr/dump_1",
    "fr/dump_2.json",
    "inspector/n1.jsonl",
    "collected.json",
    "processes/n1.json",
    "processes/n2.json",
    "ras/n1/poll2.json",
    "ras/n2/poll2.json",
    "facts/n1.json",
    "facts/n2.json",
];

static RULES: LazyLock<Option<Rules>> = LazyLock::new(|| Rules::built_in().ok());

fuzz_target!(|bytes: &[u8]| {
    let Some(rules) = RULES.as_ref() else { return };
    // Parts are cut at a byte that no text has; the first byte of each is its place.
    let parts = bytes.split(|byte| *byte == 0xff).filter_map(|file| {
        let (place, rest) = file.split_first()?;
        let path = PLACES[usize::from(*place) % PLACES.len()];
        Some((path.to_owned(), part(path, rest, rules)))
    });
    let report = diagnose(&gather(parts), rules);
    assert!(report.suspects.iter().all(|suspect| (0.0..=1.0).contains(&suspect.confidence) && !suspect.sentence.is_empty()));
    assert!(!report.action.is_empty() && !report.steps.is_empty());
});

//! Answers of NCCL's RAS, as text and as JSON with what some versions forget; two polls of the same, and what they say together.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_triage::counters::{level, movement};
use muster_triage::views::merge;
use muster_import::bundle::ras::read;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let polls: Vec<_> = ["poll1.txt", "poll2.json"].iter().filter_map(|name| read(name, &text).ok()).collect();
    for poll in &polls {
        assert!(poll.comms.iter().all(|comm| comm.ranks.iter().all(|rank| rank.process.rank.is_none_or(|rank| rank < 1 << 22))));
        assert!(poll.comms.iter().all(|comm| !comm.hash.contains(['\u{1b}', '\0'])));
    }
    let polls = merge(polls);
    let _ = (movement(&polls), level(&polls));
});

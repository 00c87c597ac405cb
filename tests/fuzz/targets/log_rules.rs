//! The scan of logs, in pieces as the bytes say, and what keeps its hits; the times and writers at the beginning of lines; rule files.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use muster_logs::{Limits, Origin, Rules, Scan, Stream, Tally};
use muster_logs::stamp::Stamp;

static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::built_in().expect("tested rules"));

fuzz_target!(|bytes: &[u8]| {
    let Some((&which, rest)) = bytes.split_first() else { return };
    if let (0, Ok(text)) = (which, std::str::from_utf8(rest)) {
        let _ = Rules::read([("fuzzed", text)]);
        return;
    }
    let mut tally = Tally::new(Limits { per_rule: 4, lines: 64, text: 100 });
    let mut scan = Scan::new(&RULES, Stream::Any);
    let mut keep = |hit: &muster_logs::Hit<'_>| tally.add(hit);
    for piece in rest.chunks(usize::from(which) + 1) {
        scan.feed(piece, &mut keep);
    }
    let scanned = scan.finish(&mut keep);
    assert_eq!(scanned.bytes, rest.len() as u64);
    assert!(tally.seen().len() <= 64 && tally.seen().iter().all(|seen| seen.text.len() <= 100));
    let text = String::from_utf8_lossy(rest);
    let _ = Origin::of(&text);
    assert!(Stamp::of(&text).is_none_or(|stamp| stamp.seconds_near(1.7e9).is_finite()));
});

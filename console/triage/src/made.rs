//! Logs for tests, made of their lines as the import makes them.

use super::case::{Log, Step, Whose};
use muster_logs::{Field, Hit, Kind, Rules, Scan, Stream, Tally};

/// The log of these lines. Communicators and adapters in them are not read.
pub(super) fn log(whose: Whose, lines: &str, rules: &Rules) -> Log {
    let stream = if matches!(whose, Whose::Kernel(_)) { Stream::Kernel } else { Stream::Job };
    let (mut tally, mut steps, mut last) = (Tally::default(), Vec::new(), None);
    let mut take = |hit: &Hit<'_>| {
        tally.add(hit);
        last = hit.stamp.or(last);
        if let Some(step) = hit.fields.number(Field::Step).filter(|_| hit.rule.kind == Kind::Progress) {
            steps.push(Step { step, row: hit.row, at: hit.stamp, seconds: hit.fields.seconds() });
        }
    };
    let mut scan = Scan::new(rules, stream).step_once();
    scan.feed(lines.as_bytes(), &mut take);
    let scanned = scan.finish(&mut take);
    Log { steps, last, ..Log::of(whose, &scanned, &tally) }
}

//! One piece of work: a collector or a benchmark by name, the frames it says, and how it ended.

use std::time::{Duration, Instant};

use muster_wire::limits::TEXT_BYTES;
use muster_wire::{BUSY, Datum, FOREIGN_CPU, Fact, Facts, Finished, Frame, Level, LogLine, Outcome, Reading, clean};

use crate::bench::{self, Context};
use crate::collect::{self, Root};
use crate::passes::How;
use crate::{busy, fault};

/// Progress frames of one benchmark are at least this far apart.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// Looks with the collector called `name` and says its facts. Never panics.
pub(crate) fn collector(name: &str, root: &Root, say: &mut dyn FnMut(Frame)) -> Finished {
    let begin = Instant::now();
    let outcome = match fault::caught(|| collect::collect(name, root)) {
        Err(why) => Outcome::Failed(why),
        Ok(None) => Outcome::NotRun(format!("this probe has no collector called '{}'", clean(name, 96))),
        Ok(Some(facts)) => {
            let outcome = judge(&facts);
            if name == collect::LOAD {
                warn_if_busy(&facts, say);
            }
            say(Frame::Facts(Facts { collector: name.to_owned(), facts }));
            outcome
        }
    };
    Finished { name: collected(name), outcome, elapsed_ns: nanos(begin) }
}

/// The name under which a collector's work ends: `disk` is a benchmark too.
pub(crate) fn collected(name: &str) -> String {
    format!("collect/{name}")
}

/// Runs one pass of the benchmark called `name`, its progress thinned. Never panics.
pub(crate) fn benchmark(name: &str, how: How<'_>, say: &mut dyn FnMut(Frame)) -> Finished {
    let begin = Instant::now();
    let How { profile, scratch, stop, steps } = how;
    let steps = steps.get(name).copied();
    let mut last: Option<Instant> = None;
    let mut thinned = |frame: Frame| {
        if matches!(frame, Frame::Progress(_)) {
            if last.is_some_and(|at| at.elapsed() < PROGRESS_EVERY) {
                return;
            }
            last = Some(Instant::now());
        }
        say(frame);
    };
    let ended = fault::caught(|| bench::run(name, &mut Context { profile, scratch, stop, steps, emit: &mut thinned }));
    let outcome = match (ended, fault::take()) {
        (Err(why), _) => Outcome::Failed(why),
        (Ok(Outcome::Failed(why)), Some(panic)) => Outcome::Failed(clean(&format!("{why}: {panic}"), TEXT_BYTES)),
        (Ok(outcome), _) => outcome,
    };
    Finished { name: name.to_owned(), outcome, elapsed_ns: nanos(begin) }
}

/// Says how much of the CPUs others take, as facts of the load collector. Called before benchmarks when the
/// load was not collected anyway. It warns and refuses nothing: who judges the samples also sees this number.
pub(crate) fn check_busy(root: &Root, say: &mut dyn FnMut(Frame)) {
    if let Ok(facts) = fault::caught(|| busy::look(root)) {
        warn_if_busy(&facts, say);
        say(Frame::Facts(Facts { collector: collect::LOAD.to_owned(), facts }));
    }
}

fn warn_if_busy(facts: &[Fact], say: &mut dyn FnMut(Frame)) {
    let share = facts.iter().find(|fact| fact.key == FOREIGN_CPU).and_then(|fact| match fact.reading {
        Reading::Value(Datum::Number(share)) => Some(share),
        _ => None,
    });
    if let Some(share) = share.filter(|share| *share > BUSY) {
        let text = format!("others use {:.0} % of this node's CPUs: measurements may be low", share * 100.0);
        say(Frame::Log(LogLine { level: Level::Warn, text }));
    }
}

/// Denied or absent as a whole is the collector's own outcome, so that nobody takes silence for health.
fn judge(facts: &[Fact]) -> Outcome {
    if facts.iter().all(|fact| fact.reading == Reading::Absent) {
        return Outcome::NotApplicable("nothing to read on this node".to_owned());
    }
    if facts.iter().all(|fact| matches!(fact.reading, Reading::Denied | Reading::Absent)) {
        return Outcome::Denied("this user may not read it".to_owned());
    }
    Outcome::Done
}

fn nanos(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use std::collections::BTreeMap;

    fn fact(reading: Reading<Datum>) -> Fact {
        Fact { key: "k".into(), reading, unit: None }
    }

    #[test]
    fn a_collector_that_may_read_nothing_is_denied() {
        assert!(matches!(judge(&[fact(Reading::Denied), fact(Reading::Absent)]), Outcome::Denied(_)));
        assert!(matches!(judge(&[fact(Reading::Absent)]), Outcome::NotApplicable(_)));
        assert_eq!(judge(&[fact(Reading::Denied), fact(Reading::Value(Datum::Flag(true)))]), Outcome::Done);
    }

    #[test]
    fn names_this_probe_does_not_know_are_not_run() {
        let how = How {
            profile: muster_wire::Profile::Smoke,
            scratch: None,
            stop: &AtomicBool::new(false),
            steps: &BTreeMap::new(),
        };
        let mut frames = Vec::new();
        let looked = collector("aura", &Root::system(), &mut |f| frames.push(f));
        let measured = benchmark("aura", how, &mut |f| frames.push(f));
        assert!(matches!(looked.outcome, Outcome::NotRun(_)), "{looked:?}");
        assert!(matches!(measured.outcome, Outcome::NotRun(_)), "{measured:?}");
        assert!(frames.is_empty());
    }

    #[test]
    fn a_busy_node_is_said_to_be_busy() {
        let mut said = Vec::new();
        let share = |n| Fact { key: FOREIGN_CPU.into(), reading: Reading::Value(Datum::Number(n)), unit: None };
        warn_if_busy(&[share(0.1)], &mut |f| said.push(f));
        assert!(said.is_empty());
        warn_if_busy(&[share(0.3)], &mut |f| said.push(f));
        assert!(matches!(&said[..], [Frame::Log(line)] if line.level == Level::Warn && line.text.contains("30 %")));
    }
}

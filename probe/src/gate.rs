//! Waits until others leave this node's CPUs alone, for a bounded time, and says how it went.

use std::thread;
use std::time::{Duration, Instant};

use muster_wire::{
    BUSY, Datum, FOREIGN_CPU, Fact, Facts, Finished, Frame, IDLE, Level, LogLine, Outcome, Progress, Reading,
};

use crate::busy;
use crate::collect::Root;
use crate::stop::Stop;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest wait, whatever is asked.
const MOST: Duration = Duration::from_secs(3600);

/// The wait that `name` asks for: `idle@30` for at most 30 s.
pub(crate) fn limit(name: &str) -> Option<Duration> {
    let seconds = name.strip_prefix(IDLE)?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(MOST))
}

/// Waits until the others' share is at most [`BUSY`], `limit` has passed, or a stop is asked for. Time that runs out is
/// no failure: the benchmarks that follow measure the others' share again and are judged by it.
pub(crate) fn wait(name: &str, limit: Duration, stop: &Stop, say: &mut dyn FnMut(Frame)) -> Finished {
    let root = Root::system();
    let begin = Instant::now();
    let (waited, last) = loop {
        let facts = busy::look(&root);
        let share = share(&facts);
        let waited = begin.elapsed();
        match share {
            Some(share) if share > BUSY && waited < limit && !stop.asked() => {
                let done = (waited.as_secs_f64() / limit.as_secs_f64()).min(1.0);
                let note = format!("others use {:.0} % of the CPUs, waiting", share * 100.0);
                say(Frame::Progress(Progress { benchmark: "idle gate".to_owned(), done, note }));
                thread::sleep(PAUSE.min(limit.saturating_sub(waited)));
            }
            share => break (waited, (share, facts)),
        }
    };
    let (share, mut facts) = last;
    say(Frame::Log(said(share, waited)));
    facts.push(Fact {
        key: "waited".to_owned(),
        reading: Reading::Value(Datum::Number(waited.as_secs_f64())),
        unit: Some(muster_wire::Unit::Seconds),
    });
    say(Frame::Facts(Facts { collector: name.to_owned(), facts }));
    let elapsed_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Finished { name: crate::work::collected(name), outcome: Outcome::Done, elapsed_ns }
}

fn share(facts: &[Fact]) -> Option<f64> {
    facts.iter().find(|fact| fact.key == FOREIGN_CPU).and_then(|fact| match fact.reading {
        Reading::Value(Datum::Number(share)) => Some(share),
        _ => None,
    })
}

fn said(share: Option<f64>, waited: Duration) -> LogLine {
    let waited = waited.as_secs_f64();
    let (level, text) = match share {
        None => (Level::Warn, "idle gate: the kernel does not say how busy others keep the CPUs".to_owned()),
        Some(share) if share > BUSY => {
            (Level::Warn, format!("idle gate: others still use {:.0} % of the CPUs after {waited:.0} s", share * 100.0))
        }
        Some(share) => (Level::Info, format!("idle gate: open after {waited:.1} s, others use {:.0} %", share * 100.0)),
    };
    LogLine { level, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_named_in_seconds_and_bounded() {
        assert_eq!(limit("idle@30"), Some(Duration::from_secs(30)));
        assert_eq!(limit("idle@99999999"), Some(MOST));
        assert_eq!(limit("idle@soon"), None);
        assert_eq!(limit("cpu"), None);
    }

    #[test]
    fn a_gate_ends_in_time_and_says_how_busy_others_are() {
        let mut frames = Vec::new();
        let finished = wait("idle@0", Duration::ZERO, &Stop::default(), &mut |frame| frames.push(frame));
        assert_eq!((finished.name.as_str(), finished.outcome), ("collect/idle@0", Outcome::Done));
        let [Frame::Log(line), Frame::Facts(facts)] = &frames[..] else { panic!("{frames:?}") };
        assert!(line.text.starts_with("idle gate: "), "{}", line.text);
        assert!(facts.facts.iter().any(|fact| fact.key == "waited" && fact.reading.value().is_some()));
    }

    #[test]
    fn what_is_said_names_share_and_time() {
        let busy = said(Some(0.42), Duration::from_secs(30));
        assert_eq!(
            (busy.level, busy.text.as_str()),
            (Level::Warn, "idle gate: others still use 42 % of the CPUs after 30 s")
        );
        let open = said(Some(0.05), Duration::from_millis(300));
        assert_eq!((open.level, open.text.as_str()), (Level::Info, "idle gate: open after 0.3 s, others use 5 %"));
    }
}

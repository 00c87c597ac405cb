//! What was and what was not looked at on a node: every benchmark, with its judgement and how old it is.

use muster_wire::{BENCHMARKS, COLLECTORS};

use crate::judgement::{State, severity, word};
use crate::snapshot::{Focus, NodeRow};

/// A result older than this says little of the node today: 30 days.
pub(crate) const STALE_MS: u64 = 30 * 86_400_000;

/// One line of the matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Covered {
    /// Benchmark or collector.
    pub(crate) work: String,
    /// Worst of its verdicts; a collector that reported has passed. `None` where it ran in an older run.
    pub(crate) state: Option<State>,
    /// When it last ran, as far as known.
    pub(crate) at_ms: Option<u64>,
}

impl Covered {
    /// Whether its result is too old to stand for the node as it is.
    pub(crate) fn is_stale(&self, now_ms: u64) -> bool {
        self.at_ms.is_some_and(|at| now_ms.saturating_sub(at) > STALE_MS)
    }

    /// The word for it.
    pub(crate) fn word(&self, now_ms: u64) -> &'static str {
        match self.state {
            _ if self.is_stale(now_ms) => "stale",
            Some(state) => word(state),
            None => "ran",
        }
    }
}

/// Every benchmark, then every collector, in the order of the catalogue.
pub(crate) fn rows(node: &NodeRow, focus: Option<&Focus>) -> Vec<Covered> {
    let seen = |work: &str| focus.and_then(|f| f.past.as_deref()?.works.iter().find(|w| w.work == work));
    let judged = |benchmark: &str| {
        let own = node.verdicts.iter().filter(|v| v.metric.benchmark == benchmark);
        own.map(|v| v.state).min_by_key(|s| severity(*s))
    };
    let benchmarks = BENCHMARKS.iter().map(|b| {
        let seen = seen(b.name);
        let state = match seen.map(|s| s.ended) {
            // What came of it is said by its verdicts, if they are at hand.
            Some(State::Pass) => judged(b.name),
            Some(ended) => Some(ended),
            None => judged(b.name).or(Some(State::NotRun)),
        };
        Covered { work: b.name.to_owned(), state, at_ms: seen.map(|s| s.at_ms) }
    });
    let collectors = COLLECTORS.iter().map(|c| {
        let seen = seen(&format!("collect/{}", c.name));
        let reported = node.facts.iter().any(|f| f.collector == c.name);
        let before = if reported { State::Pass } else { State::NotRun };
        let state = seen.map_or(before, |s| s.ended);
        Covered { work: c.name.to_owned(), state: Some(state), at_ms: seen.map(|s| s.at_ms) }
    });
    benchmarks.chain(collectors).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_stale_after_thirty_days_whatever_it_said() {
        let covered = |state| Covered { work: "disk".to_owned(), state, at_ms: Some(5) };
        for (state, word) in [(Some(State::Pass), "pass"), (Some(State::NotApplicable), "n/a"), (None, "ran")] {
            assert_eq!(covered(state).word(5 + STALE_MS), word);
            assert_eq!(covered(state).word(6 + STALE_MS), "stale");
        }
        assert_eq!(Covered { work: String::new(), state: Some(State::NotRun), at_ms: None }.word(u64::MAX), "not run");
    }
}

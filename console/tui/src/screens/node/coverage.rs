//! What was measured on a node and what was not: every benchmark, with its verdict and age.

use muster_wire::{BENCHMARKS, COLLECTORS};

use crate::judgement::{State, severity};
use crate::snapshot::{Focus, NodeRow};
use crate::stale::{self, Stale};
use crate::theme::{Role, Theme};

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
    /// Glyph and word for it, and how they are drawn.
    pub(crate) fn cell(&self, theme: &Theme, stale: Stale) -> (String, Role) {
        match self.state {
            Some(state) => stale.cell(theme, state, self.at_ms),
            None if stale.is(self.at_ms) => (format!("{} {}", stale::glyph(theme), stale::WORD), Role::Dim),
            None => (format!("{} ran", theme.pick("○", "o")), Role::Dim),
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
    use crate::snapshot::Snapshot;

    #[test]
    fn what_ran_is_stale_past_the_limit_and_what_failed_still_failed() {
        let cell = |state, at_ms, limit_days: u64| {
            let now_ms = 100 * 86_400_000;
            let snapshot = Snapshot { now_ms, stale_result_ms: limit_days * 86_400_000, ..Snapshot::default() };
            let covered = Covered { work: "disk".to_owned(), state, at_ms };
            covered.cell(&Theme::new(true, false), Stale::then(&snapshot)).0
        };
        let at = Some(60 * 86_400_000);
        for (state, fresh) in [(Some(State::Pass), "✓ pass"), (Some(State::NotApplicable), "- n/a"), (None, "○ ran")]
        {
            assert_eq!((cell(state, at, 40), cell(state, at, 39)), (fresh.to_owned(), "◷ stale".to_owned()));
        }
        assert_eq!(cell(Some(State::Fail), at, 1), "✗ fail");
        assert_eq!(cell(Some(State::NotRun), None, 1), "· not run");
    }
}

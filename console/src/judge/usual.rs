//! How many nodes usually fail each benchmark and check: by the runs of the same playbook before this one.

use std::collections::BTreeMap;

use anyhow::Result;
use muster_analysis::Params;
use muster_analysis::history::Outcomes;
use muster_run::{Run, RunState};
use muster_store::Store;

use super::{Judging, report, stored};

/// Earlier runs that are looked at, newest first.
const RUNS: usize = 5;
/// Fewer of them say nothing of what is usual.
const ENOUGH: usize = 3;

/// The answers of an ordinary run: of the last few, the one with the median rate of failures, so that a bad roll-out, even
/// if it lasted two runs, does not become usual.
///
/// # Errors
/// When the store cannot be read.
pub fn usual(store: &dyn Store, run: &Run, params: &Params) -> Result<BTreeMap<String, Outcomes>> {
    let alike = |earlier: &Run| {
        (&earlier.playbook, earlier.profile, earlier.state) == (&run.playbook, run.profile, RunState::Finished)
            && earlier.started_ms < run.started_ms
    };
    let mut seen: BTreeMap<String, Vec<Outcomes>> = BTreeMap::new();
    for earlier in store.runs()?.into_iter().filter(alike).take(RUNS) {
        let judging = Judging::of(store, &earlier, params.clone())?;
        let found = report(&earlier, &stored(store, &earlier, &judging)?);
        for (name, outcomes) in found.outcomes() {
            seen.entry(name.to_owned()).or_default().push(outcomes);
        }
    }
    Ok(seen.into_iter().filter_map(|(name, runs)| Some((name, ordinary(runs)?))).collect())
}

/// Of the runs with an answer the one with the median rate, the lower of two; `None` where they are too few.
fn ordinary(mut runs: Vec<Outcomes>) -> Option<Outcomes> {
    let rate = |o: &Outcomes| o.failed as f64 / (o.failed + o.passed) as f64;
    runs.retain(|o| o.failed + o.passed > 0);
    runs.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    runs.get((runs.len().max(1) - 1) / 2).copied().filter(|_| runs.len() >= ENOUGH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_bad_runs_of_five_are_not_usual_and_two_runs_say_nothing() {
        let of = |failed: &[usize]| {
            ordinary(failed.iter().map(|n| Outcomes { failed: *n, passed: 100 - n, silent: 0 }).collect())
        };
        assert_eq!(of(&[100, 5, 100, 4, 3]).map(|o| o.failed), Some(5));
        assert_eq!(of(&[9, 1, 7, 3]).map(|o| o.failed), Some(3));
        assert_eq!(of(&[5, 5]), None);
        let silent = Outcomes { failed: 0, passed: 0, silent: 9 };
        assert_eq!(ordinary(vec![silent; 5]), None);
    }
}

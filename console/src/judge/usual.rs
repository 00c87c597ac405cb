//! How many nodes usually fail each benchmark and check: by the runs of the same playbook before this one.

use std::collections::BTreeMap;

use anyhow::Result;
use muster_analysis::Params;
use muster_analysis::history::{Outcomes, ordinary};
use muster_run::{Run, RunState};
use muster_store::Store;

use super::{Judging, report, stored};

/// Earlier runs that are looked at, newest first.
const RUNS: usize = 5;

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

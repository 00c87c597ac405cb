//! Steps that a search found to be enough, per benchmark, as the store keeps them.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use muster_store::{Store, Table};
use muster_wire::{Profile, Steps};
use serde::{Deserialize, Serialize};

/// Steps of one benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profiled {
    /// To leave out first, and to measure after them.
    #[serde(flatten)]
    pub steps: Steps,
    /// Profile of the run whose steps they are; `None` for steps of another program.
    #[serde(default)]
    pub profile: Option<Profile>,
    /// When it was found, milliseconds since 1970 UTC.
    pub at_ms: u64,
}

/// Keeps the steps of `benchmark`, or that it has none of its own; the newest holds.
///
/// # Errors
/// When the store cannot keep them.
pub fn keep_steps(store: &mut dyn Store, benchmark: &str, steps: Option<&Profiled>) -> Result<()> {
    store.put(Table::Steps, benchmark, &serde_json::to_vec(&steps)?)?;
    Ok(())
}

/// What is kept, by benchmark.
///
/// # Errors
/// When the store cannot be read.
pub fn kept_steps(store: &dyn Store) -> Result<BTreeMap<String, Profiled>> {
    let mut found = BTreeMap::new();
    for benchmark in store.list(Table::Steps)?.into_iter().map(|seen| seen.key) {
        let Some(bytes) = store.get(Table::Steps, &benchmark)? else { continue };
        let steps: Option<Profiled> =
            serde_json::from_slice(&bytes).with_context(|| format!("the steps of {benchmark} do not decode"))?;
        found.extend(steps.map(|steps| (benchmark, steps)));
    }
    Ok(found)
}

/// The kept steps that `benchmarks` take in `profile`: those of another say nothing of it, as its steps have another length.
#[must_use]
pub fn steps_of(kept: &BTreeMap<String, Profiled>, profile: Profile, benchmarks: &[String]) -> BTreeMap<String, Steps> {
    let used = kept.iter().filter(|(name, kept)| kept.profile == Some(profile) && benchmarks.contains(name));
    used.map(|(name, kept)| (name.clone(), kept.steps)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_store::{Db, Options};

    #[test]
    fn tuned_steps_are_taken_by_their_benchmark_in_their_profile_until_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Db::open(dir.path(), &Options::default()).unwrap();
        let steps = Steps { warmup: 3, measured: 40 };
        let found = |profile| Profiled { steps, profile, at_ms: 1 };
        keep_steps(&mut store, "disk", Some(&found(Some(Profile::Full)))).unwrap();
        keep_steps(&mut store, "imported", Some(&found(None))).unwrap();
        let kept = kept_steps(&store).unwrap();
        let both = ["cpu-gemm".to_owned(), "disk".to_owned(), "imported".to_owned()];
        assert_eq!(steps_of(&kept, Profile::Full, &both), BTreeMap::from([("disk".to_owned(), steps)]));
        assert!(steps_of(&kept, Profile::Quick, &both).is_empty());
        assert!(steps_of(&kept, Profile::Full, &both[..1]).is_empty());
        keep_steps(&mut store, "disk", None).unwrap();
        assert!(!kept_steps(&store).unwrap().contains_key("disk"));
    }
}

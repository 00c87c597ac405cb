//! Steps that a search found to be enough, per benchmark, as the store keeps them.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use muster_store::Store;
use serde::{Deserialize, Serialize};

/// Names of such entries begin so.
pub(super) const TUNED: &str = "tuned ";

/// Steps of one benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profiled {
    /// To leave out first.
    pub warmup: usize,
    /// To measure after them.
    pub measured: usize,
    /// When it was found, milliseconds since 1970 UTC.
    pub at_ms: u64,
}

/// Keeps the steps of `benchmark`; the newest holds.
///
/// # Errors
/// When the store cannot keep them.
pub fn keep_steps(store: &mut dyn Store, benchmark: &str, steps: &Profiled) -> Result<()> {
    store.put_criterion(&format!("{TUNED}{benchmark}"), &serde_json::to_vec(steps)?)?;
    Ok(())
}

/// What is kept, by benchmark.
///
/// # Errors
/// When the store cannot be read.
pub fn kept_steps(store: &dyn Store) -> Result<BTreeMap<String, Profiled>> {
    let mut found = BTreeMap::new();
    for name in store.criteria()?.into_iter().map(|seen| seen.name) {
        let Some(benchmark) = name.strip_prefix(TUNED) else { continue };
        let Some(bytes) = store.criterion(&name)? else { continue };
        let steps =
            serde_json::from_slice(&bytes).with_context(|| format!("the steps of {benchmark} do not decode"))?;
        found.insert(benchmark.to_owned(), steps);
    }
    Ok(found)
}

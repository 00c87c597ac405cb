//! Versions of criteria as the Criteria screen shows them.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use muster_store::Store;
use muster_tui::snapshot::{Criteria, VersionRow};
use muster_wire::clean;
use muster_wire::limits::TEXT_BYTES;

use crate::judge::{Version, frozen, versions};

/// Every version in `store`, with those in force marked.
///
/// # Errors
/// When it cannot be read.
pub fn shelf(store: &dyn Store) -> Result<Criteria> {
    let frozen: BTreeSet<String> = frozen(store)?.into_values().collect();
    let row = |version: Version| VersionRow {
        frozen: frozen.contains(&version.criterion.id),
        criterion: Arc::new(version.criterion),
        group: clean(&version.group, TEXT_BYTES),
        learned_ms: version.learned_ms,
        source: clean(&version.source, TEXT_BYTES),
        outside: version.outside.into_iter().map(|o| (clean(&o.node, TEXT_BYTES), o.similarity)).collect(),
    };
    Ok(Criteria { versions: versions(store)?.into_iter().map(row).collect() })
}

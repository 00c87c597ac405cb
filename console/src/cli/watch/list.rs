//! Which recordings are there?

use std::time::UNIX_EPOCH;

use muster_playbook::report::rfc3339;
use serde::Serialize;

use crate::config::Config;
use crate::exit::{Ended, PASS};
use crate::{out, recordings};

/// A row of the published document.
#[derive(Serialize)]
struct Row {
    id: String,
    path: String,
    bytes: u64,
    /// When it was last written, milliseconds since 1970.
    written_ms: u64,
}

/// Lists them, the newest first.
pub(super) fn run(json: bool, config: &Config) -> Ended {
    let row = |kept: muster_store::telemetry::Kept| {
        let since = kept.written.duration_since(UNIX_EPOCH).unwrap_or_default();
        let written_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Row { id: kept.id, path: kept.path.display().to_string(), bytes: kept.bytes, written_ms }
    };
    let rows: Vec<Row> = recordings::all(config)?.into_iter().map(row).collect();
    if json {
        out::list("muster.recordings", "recordings", &rows)?;
    } else if rows.is_empty() {
        out::line("no recordings yet; `muster watch --record` makes one")?;
    } else {
        let cells = |row: &Row| {
            vec![row.id.clone(), rfc3339(row.written_ms), format!("{} kB", row.bytes.div_ceil(1_000)), row.path.clone()]
        };
        let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
        out::line(&out::table(&["recording", "last written", "size", "file"], &rows))?;
    }
    Ok(PASS)
}

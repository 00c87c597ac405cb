//! A replay file of a watch: the recording as it lies, in whatever form a watch reads, and the labels of its nodes.

use std::io::Write;
use std::path::Path;

use anyhow::anyhow;
use muster_store::portable::Kind;
use muster_store::telemetry;

use super::{labels, of_bytes, of_file};
use crate::config::Config;

/// How files end that a watch reads, longer ones first.
const ENDINGS: [&str; 7] = [".csv.gz", ".parquet.gz", ".json.gz", ".csv", ".parquet", ".json", ".tel"];
/// How the name of its part begins.
pub const PART: &str = "recording";

/// Writes the recording at `file`, which is of these `nodes`.
///
/// # Errors
/// When it cannot be read, or is in no form that a watch reads.
pub fn write((file, nodes): (&Path, &[String]), config: &Config, to: &mut dyn Write) -> anyhow::Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let own = telemetry::is_recording(file);
    let ending = match ENDINGS.iter().find(|ending| name.to_lowercase().ends_with(**ending)) {
        _ if own => ".tel",
        Some(ending) => ending,
        None => return Err(anyhow!("{}: its name ends in none of {}", file.display(), ENDINGS.join(", "))),
    };
    let labels = labels::written(&nodes.iter().map(String::as_str).collect(), config)?;
    let parts = vec![of_file(format!("{PART}{ending}"), file)?, of_bytes(labels::NAME, &labels)];
    super::write(to, (Kind::Watch, name.trim_end_matches(ending)), parts)
}

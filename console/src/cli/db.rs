//! `muster db`: check or rebuild the database.

use clap::Subcommand;

use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS};
use crate::out;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Read every frame of every run file and compare the index with them.
    Check,
    /// Make the index anew from the run files.
    Rebuild,
}

/// Does it; damage is exit code 74.
pub fn run(action: &Action, config: &Config) -> Ended {
    let dir = &config.db.value;
    let report = match action {
        Action::Check => muster_store::check(dir),
        Action::Rebuild => muster_store::rebuild(dir),
    }
    .code(IO)?;
    for file in &report.files {
        let (path, kib) = (file.path.display(), file.bytes.div_ceil(1024));
        out::line(&format!("{path}: {} records in {} frames, {kib} KiB", file.records, file.frames))?;
        for damage in &file.damage {
            out::line(&format!("{path}: damaged: {damage}"))?;
        }
    }
    for line in report.index.iter().map(|l| format!("index: {l}")).chain(report.notes.iter().cloned()) {
        out::line(&line)?;
    }
    out::line(if report.sound() { "sound" } else { "not sound; `muster db rebuild` makes the index anew" })?;
    Ok(if report.sound() { PASS } else { IO })
}

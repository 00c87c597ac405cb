//! `muster db`: check or rebuild the database.

use clap::{Args, Subcommand};
use muster_store::FileReport;
use serde::Serialize;

use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS, Problem};
use crate::out;
use crate::patience::Patience;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Read every frame of every run file and compare the index with them.
    #[command(after_help = "Examples:\n  muster db check\n  muster --db /srv/muster db check --json")]
    Check(Options),
    /// Move what is damaged aside and make version and index anew from what is sound.
    #[command(
        after_help = "Examples:\n  muster db rebuild\n  muster db rebuild --forget-missing   run files were removed on purpose"
    )]
    Rebuild(Rebuild),
}

/// Options of `rebuild`.
#[derive(Args, Debug)]
pub struct Rebuild {
    /// What it prints.
    #[command(flatten)]
    pub options: Options,
    /// Stop telling of log files that are gone.
    #[arg(long)]
    pub forget_missing: bool,
}

/// Options.
#[derive(Args, Debug)]
pub struct Options {
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// The published document.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    version: u32,
    /// Whether nothing is damaged and the index agrees.
    sound: bool,
    files: Vec<File>,
    /// Where the index says something else than the files.
    index: Vec<String>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct File {
    path: String,
    frames: u64,
    records: u64,
    bytes: u64,
    damage: Vec<String>,
}

impl File {
    fn of(file: &FileReport) -> Self {
        let FileReport { path, frames, records, bytes, damage } = file;
        let damage = damage.iter().map(ToString::to_string).collect();
        Self { path: path.display().to_string(), frames: *frames, records: *records, bytes: *bytes, damage }
    }
}

/// Does it; damage is exit code 74.
pub fn run(action: &Action, config: &Config) -> Ended {
    let dir = &config.db.value;
    let waiting = Patience::new("reading the database");
    let (found, options) = match action {
        Action::Check(options) => (muster_store::check(dir).code(IO)?, options),
        Action::Rebuild(Rebuild { options, forget_missing }) => {
            (muster_store::rebuild(dir, *forget_missing).code(IO)?, options)
        }
    };
    drop(waiting);
    let files = found.files.iter().map(File::of).collect();
    let sound = found.sound();
    let report = Report { schema: "muster.db", version: 1, sound, files, index: found.index, notes: found.notes };
    if options.json {
        out::json(&report)?;
    } else {
        tell(&report)?;
    }
    Ok(if sound { PASS } else { IO })
}

fn tell(report: &Report) -> Result<(), Problem> {
    for file in &report.files {
        let File { path, frames, records, bytes, damage } = file;
        out::line(&format!("{path}: {records} records in {frames} frames, {} KiB", bytes.div_ceil(1024)))?;
        for damage in damage {
            out::line(&format!("{path}: damaged: {damage}"))?;
        }
    }
    for line in report.index.iter().map(|l| format!("index: {l}")).chain(report.notes.iter().cloned()) {
        out::line(&line)?;
    }
    out::line(if report.sound {
        "sound"
    } else {
        "not sound; `muster db rebuild` moves what is damaged aside and makes the index anew"
    })
}

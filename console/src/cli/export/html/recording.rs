//! The page of a recording: it is gone through as if the job were running.

use std::path::Path;

use super::super::{Options, chosen};
use super::put;
use crate::cli::watch;
use crate::config::Config;
use crate::exit::{Code, Ended, IO};
use crate::pages::written;
use crate::patience::Patience;
use crate::recordings;
use crate::redact::Redaction;
use crate::views::page::{Told, stretches, watch_page};

/// Reads it, watches it, writes what was found.
pub(in crate::cli::export) fn run(word: &Path, options: &Options, config: &Config) -> Ended {
    let waiting = Patience::new("reading the recording");
    let file = recordings::find(word, config)?;
    let gone = watch::gone_through(&file, config)?;
    let name = file.file_stem().map_or_else(|| word.display().to_string(), |name| name.to_string_lossy().into_owned());
    let told = Told { name: &name, of: (gone.nodes.len(), &gone.metrics), watch: &gone.watch, notes: &gone.notes };
    let page = watch_page(&told, &stretches(gone.watch.alerts(), &gone.recording));
    let mut redaction = Redaction::new(&chosen(options), &gone.recording.nodes, []);
    let text = written(page, &mut redaction).code(IO)?;
    drop(waiting);
    put(&text, options.output.as_deref())
}

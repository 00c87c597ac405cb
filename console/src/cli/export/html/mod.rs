//! `muster export --format html`: one file for a browser or for paper.

mod case;
mod of_run;
mod recording;

use std::path::Path;

use anyhow::anyhow;

use super::Options;
use crate::exit::{Code, Ended, IO, PASS, Problem, USAGE};
use crate::out;

pub(super) use case::run as case;
pub(super) use of_run::run as of_run;
pub(super) use recording::run as recording;

/// Refuses what no other format knows.
pub(super) fn only_here(options: &Options) -> Result<(), Problem> {
    let html = options.format == Some(super::Format::Html);
    if options.recording.is_some() && !options.redact.is_empty() && !html {
        return Err(Problem { code: USAGE, error: anyhow!("--redact of a recording is for --format html") });
    }
    let named = [
        ("--node", options.node.is_some()),
        ("--metric", options.metric.is_some()),
        ("--case", options.case.is_some()),
    ];
    match named.iter().find(|(_, given)| *given) {
        Some((name, _)) if !html => {
            let or_replay = if *name == "--case" { " or replay" } else { "" };
            Err(Problem { code: USAGE, error: anyhow!("{name} is for --format html{or_replay}") })
        }
        _ => Ok(()),
    }
}

/// Writes `text` to the file, or to standard output.
fn put(text: &str, file: Option<&Path>) -> Ended {
    match file {
        Some(file) => out::replace(file, text.as_bytes(), out::PRIVATE).code(IO)?,
        None => out::by(|to| Ok(to.write_all(text.as_bytes())?))?,
    }
    Ok(PASS)
}

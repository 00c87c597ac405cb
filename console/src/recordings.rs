//! Which recording of a watch is meant: by its id, or by its file.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use muster_fleet::inventory::nearest;
use muster_store::telemetry::{self, Kept};

use crate::config::Config;
use crate::exit::{Code, IO, Problem, USAGE};

/// Ids that are named where none fits.
const NAMED: usize = 3;

/// All recordings, the newest first.
///
/// # Errors
/// When they cannot be listed.
pub fn all(config: &Config) -> Result<Vec<Kept>, Problem> {
    let mut all = telemetry::recordings(&config.db.value).code(IO)?;
    all.reverse();
    Ok(all)
}

/// The file that `word` means: a path that is there, or the id of a recording.
///
/// # Errors
/// When it is neither; the message has the ids most like it.
pub fn find(word: &Path, config: &Config) -> Result<PathBuf, Problem> {
    if word.exists() {
        return Ok(word.to_owned());
    }
    let text = word.to_string_lossy();
    let all = all(config)?;
    if let Some(kept) = all.iter().find(|kept| kept.id == text) {
        return Ok(kept.path.clone());
    }
    let near = near(&text, &all);
    let hint = match near.as_str() {
        "" => "`muster watch --list` names the recordings".to_owned(),
        near => format!("did you mean {near}, or another of `muster watch --list`?"),
    };
    // A path is a file that cannot be read; a word is a slip.
    let code = if text.contains('/') || text.contains('.') { IO } else { USAGE };
    let name = muster_wire::clean(&text, 200);
    Err(Problem { code, error: anyhow!("{name}: there is no such file and no recording of that id; {hint}") })
}

/// `A or B`: ids with `word` in their name, else the one that is most like it.
fn near(word: &str, all: &[Kept]) -> String {
    let within = all.iter().filter(|kept| !word.is_empty() && kept.id.contains(word)).take(NAMED);
    let mut names: Vec<String> = within.map(|kept| kept.id.clone()).collect();
    if names.is_empty() {
        names.extend(nearest(word, all.iter().map(|kept| kept.id.as_str())));
    }
    names.join(" or ")
}

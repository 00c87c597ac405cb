//! Which recordings of a folder have their truth beside them, and what do they hold?

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use muster_import::telemetry::{ROWS, Recording};
use muster_watch::minder::{Tick, VALUES};
use muster_watch::trial::{Recorded, Truth};
use serde::Serialize;

use super::{input, recorded};
use crate::exit::{CONFIG, Code, Problem, USAGE};
use crate::out;
use crate::patience::Patience;

/// How the file with the truth ends; what stands before is the recording's name without its ending.
const TRUTH: &str = ".truth.json";
/// Most bytes of a truth file.
const LARGEST: u64 = 4 << 20;

/// A recording of the folder that is not used.
#[derive(Debug, Serialize)]
pub(super) struct LeftOut {
    pub(super) name: String,
    pub(super) why: String,
}

/// What a folder holds.
#[derive(Default)]
pub(super) struct Folder {
    pub(super) recordings: Vec<Recorded>,
    /// Without a truth file.
    pub(super) unlabelled: Vec<LeftOut>,
    /// Whose truth or content is wrong; and the exit code of the first.
    pub(super) bad: Vec<LeftOut>,
    pub(super) code: Option<u8>,
    pub(super) notes: Vec<String>,
}

/// Reads all recordings of a folder that have a truth file. What is wrong with one is kept and said, and the others are read.
pub(super) fn read(folder: &Path) -> Result<Folder, Problem> {
    let name = || folder.display().to_string();
    let entries = std::fs::read_dir(folder).with_context(name)?;
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().with_context(name)?;
    files.retain(|file| is_one(file));
    files.sort_unstable();
    let _waiting = Patience::new(format!("reading the recordings in {}", name()));
    let (mut found, mut rows, mut values) = (Folder::default(), 0, 0);
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let truth = truth_of(&file);
        if !truth.exists() {
            let why = format!("no truth file {}", truth.file_name().unwrap_or_default().to_string_lossy());
            found.unlabelled.push(LeftOut { name, why });
            continue;
        }
        match one(&file, &name, &truth, &mut found.notes) {
            Ok(recorded) => {
                let (nodes, metrics) = recorded.grid.size();
                (rows, values) = (rows + recorded.ticks.len(), values + nodes * metrics * recorded.grid.seconds());
                if rows > ROWS || values > VALUES {
                    let error = anyhow!(
                        "{}: its recordings have more than {ROWS} rows or {VALUES} values together; take fewer at a time",
                        folder.display()
                    );
                    return Err(Problem { code: USAGE, error });
                }
                found.recordings.push(recorded);
            }
            Err(problem) => {
                found.code = found.code.or(Some(problem.code));
                found.bad.push(LeftOut { name, why: format!("{:#}", problem.error) });
            }
        }
    }
    Ok(found)
}

impl Folder {
    /// Says on standard error what is not used.
    pub(super) fn tell(&self) {
        self.bad
            .iter()
            .chain(&self.unlabelled)
            .for_each(|one| out::note(format_args!("{} left out: {}", one.name, one.why)));
    }
}

fn is_one(file: &Path) -> bool {
    input::is_recording(file) && !file.to_string_lossy().to_lowercase().ends_with(TRUTH)
}

/// Where the truth of a recording is.
fn truth_of(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let lower = name.to_lowercase();
    let ending = input::ENDINGS.iter().filter(|ending| lower.ends_with(*ending)).map(|ending| ending.len()).max();
    let stem = name.get(..name.len() - ending.unwrap_or_default()).unwrap_or_default();
    file.with_file_name(format!("{stem}{TRUTH}"))
}

fn one(file: &Path, name: &str, truth: &Path, notes: &mut Vec<String>) -> Result<Recorded, Problem> {
    let of_truth = || truth.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = bounded(truth, LARGEST).with_context(of_truth).code(CONFIG)?;
    let known = Truth::from_json(&text).with_context(of_truth).code(CONFIG)?;
    let input = input::read(&[file.to_owned()]).code(CONFIG)?;
    notes.extend(input.notes.iter().map(|note| format!("{name}: {note}")));
    let (names, ticks) = ticks(&input.recording)?;
    Recorded::new(name.to_owned(), names, ticks, known).code(CONFIG)
}

/// Bytes of a file, if it has no more than `most`.
pub(super) fn bounded(file: &Path, most: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(anyhow!("it has more than {} MB", most >> 20));
    }
    Ok(bytes)
}

/// Names of nodes and metrics.
type Names = (Vec<String>, Vec<String>);

/// The samples that a watch would compare.
fn ticks(recording: &Recording) -> Result<(Names, Vec<Tick>), Problem> {
    let metrics = recorded::metrics(recording, &[])?;
    let places: HashMap<&String, u16> = metrics.iter().zip(0..).collect();
    let of_metric: Vec<Option<u16>> = recording.metrics.iter().map(|name| places.get(name).copied()).collect();
    let tick = |row: &muster_import::telemetry::Row| {
        let (node, metric) = recording.of(row);
        let node = u16::try_from(node).ok()?;
        Some(Tick { time_s: row.time_s, value: row.value, node, metric: of_metric[metric]? })
    };
    Ok(((recording.nodes.clone(), metrics), recording.rows().iter().filter_map(tick).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_truth_stands_beside_the_recording_under_its_name() {
        for (file, truth) in
            [("a/b.csv.gz", "a/b.truth.json"), ("a/b.CSV", "a/b.truth.json"), ("a.json.gz", "a.truth.json")]
        {
            assert_eq!(truth_of(Path::new(file)), Path::new(truth));
        }
        assert!(is_one(Path::new("b.json")) && !is_one(Path::new("b.truth.json")) && !is_one(Path::new("README.md")));
    }
}

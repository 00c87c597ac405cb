//! What do the files of a recording hold, and what of them cannot be used?

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use muster_import::telemetry::{Files, Left, Recording};
use muster_store::telemetry;

use crate::out;

/// How the files of a folder end that belong to its recording.
pub(super) const ENDINGS: [&str; 7] = [".csv", ".csv.gz", ".parquet", ".parquet.gz", ".json", ".json.gz", ".tel"];
/// Names that are listed.
const LISTED: usize = 20;

/// A recording, and what is worth knowing of how it was read.
pub(super) struct Input {
    pub(super) recording: Recording,
    pub(super) notes: Vec<String>,
}

/// All rows of all files, in order of time.
pub(super) fn read(from: &[PathBuf]) -> anyhow::Result<Input> {
    let (mut all, mut notes) = (Files::default(), Vec::new());
    for (file, of_folder) in files(from)? {
        let name = || file.display().to_string();
        if telemetry::is_recording(&file) {
            own(&file, all.recording()).with_context(name)?;
            continue;
        }
        let taken = all.add(File::open(&file).with_context(name)?).with_context(name)?;
        match taken {
            true => {}
            false if of_folder => notes.push(format!("{}: left out: not an answer of Prometheus", name())),
            false => return Err(anyhow!("it is JSON, but no answer of Prometheus' query_range")).with_context(name),
        }
    }
    let (recording, left) = all.finish()?;
    notes.extend(left_out(&recording));
    notes.extend(of_prometheus(&left));
    notes.extend(steps(&recording));
    Ok(Input { recording, notes })
}

/// A recording of our own; what is damaged in it is said, and the rest is read.
fn own(file: &Path, recording: &mut Recording) -> anyhow::Result<()> {
    let mut pushed = Ok(());
    let damages = telemetry::replay(file, &mut |told| {
        if pushed.is_ok() {
            pushed = recording.push(told.node, told.metric, told.time_s, told.value);
        }
    })?;
    pushed?;
    damages.iter().for_each(|damage| out::note(format_args!("{}: {damage}", file.display())));
    Ok(())
}

/// The files of a recording, each with whether it was found in a folder; those by their endings, sorted.
fn files(from: &[PathBuf]) -> anyhow::Result<Vec<(PathBuf, bool)>> {
    let mut files = Vec::new();
    for path in from {
        if !path.is_dir() {
            files.push((path.clone(), false));
            continue;
        }
        let name = || path.display().to_string();
        let entries = std::fs::read_dir(path).with_context(name)?;
        let entries: Vec<PathBuf> =
            entries.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>().with_context(name)?;
        let mut found: Vec<PathBuf> = entries.into_iter().filter(|file| is_recording(file)).collect();
        if found.is_empty() {
            return Err(anyhow!("{}: no file in it ends in {}", name(), ENDINGS.join(" or ")));
        }
        found.sort_unstable();
        files.extend(found.into_iter().map(|file| (file, true)));
    }
    Ok(files)
}

/// Whether the name of a file says that it is one of a recording.
pub(crate) fn is_recording(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending)) && !file.is_dir()
}

/// What of the rows could not be used.
fn left_out(recording: &Recording) -> Vec<String> {
    let said = |count: u64, why: &str| {
        (count > 0).then(|| format!("{} left out: {why}", out::counted(count as usize, "row", "rows")))
    };
    let values = said(recording.not_numbers, "the value is missing or no number");
    let times = said(recording.not_times, "the time is no epoch second");
    let names = said(recording.too_many_names, "too many names of nodes or metrics");
    [values, times, names].into_iter().flatten().collect()
}

/// What of Prometheus' answers could not be used.
fn of_prometheus(left: &Left) -> Vec<String> {
    let series = |count: u64| out::counted(count as usize, "series", "series");
    let said = |count: u64, why: &str| (count > 0).then(|| format!("{} left out: {why}", series(count)));
    let mut notes = Vec::new();
    if !left.unknown.is_empty() {
        let named = left.unknown.iter().take(LISTED).map(|(name, count)| format!("{name} ({})", series(*count)));
        let more = left.unknown.len().saturating_sub(LISTED);
        let more = if more > 0 { format!(" and {more} more names") } else { String::new() };
        notes.push(format!(
            "left out, as no metric of ours is made of them: {}{more}",
            named.collect::<Vec<_>>().join(", ")
        ));
    }
    notes.extend(said(left.unlisted, "of names beyond the first 256 unknown ones"));
    let nameless = "they have no __name__, as functions like rate() remove it; query the counters themselves, muster makes the rates";
    notes.extend(said(left.nameless, nameless));
    notes.extend(said(left.nowhere, "no Hostname, node or instance says of which node they are"));
    notes.extend(said(left.no_values, "they have no values"));
    notes.extend(said(left.too_many, "more than a million series"));
    if left.resets > 0 {
        let times = out::counted(left.resets as usize, "time", "times");
        notes.push(format!("counters began anew {times}; no rate is known for that step"));
    }
    notes
}

/// What it means that samples lie far apart.
fn steps(recording: &Recording) -> Vec<String> {
    let mut notes = Vec::new();
    if recording.held_s > 0.0 {
        notes.push(format!(
            "some metrics have a sample only every {:.0} s; each value counts until the next one, and alerts come up to that much later",
            recording.held_s
        ));
    }
    if !recording.coarse.is_empty() {
        let named = recording.coarse.iter().take(LISTED).map(|(metric, step)| format!("{metric} ({step:.0} s)"));
        let more = recording.coarse.len().saturating_sub(LISTED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named = named.collect::<Vec<_>>().join(", ");
        notes.push(format!(
            "left out, as a sample is needed every 30 s at least: {named}{more}; query with a step of 15 s or less"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_one_recording_of_all_that_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.csv", "a.CSV.gz", "truth.json", "c.parquet", "notes.txt"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let found = files(&[dir.path().to_owned()]).unwrap();
        let name = |file: &PathBuf| file.file_name().unwrap().to_string_lossy().into_owned();
        let names: Vec<_> = found.iter().map(|(file, _)| name(file)).collect();
        assert_eq!(names, ["a.CSV.gz", "b.csv", "c.parquet", "truth.json"]);
        std::fs::create_dir(dir.path().join("empty")).unwrap();
        let why = files(&[dir.path().join("empty")]).unwrap_err().to_string();
        assert!(why.contains("no file in it ends in .csv or .csv.gz"), "{why}");
    }

    #[test]
    fn json_of_another_kind_is_left_out_of_a_folder_and_refused_by_itself() {
        let dir = tempfile::tempdir().unwrap();
        let truth = dir.path().join("truth.json");
        std::fs::write(&truth, "{\"kind\":\"nic\",\"nodes\":[]}").unwrap();
        std::fs::write(dir.path().join("a.csv"), "time_s,node,metric,value\n1,a,m,2\n").unwrap();
        let read_folder = read(&[dir.path().to_owned()]).unwrap();
        assert_eq!(read_folder.recording.rows().len(), 1);
        assert!(read_folder.notes[0].ends_with("truth.json: left out: not an answer of Prometheus"));
        let why = format!("{:#}", read(&[truth]).map(|_| ()).unwrap_err());
        assert!(why.contains("no answer of Prometheus' query_range"), "{why}");
    }
}

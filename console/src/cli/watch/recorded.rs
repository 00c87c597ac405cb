//! A recording, gone through as if the job were running.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use muster_analysis::watch::Watch;
use muster_fleet::Inventory;
use muster_fleet::pattern::matches;
use muster_import::telemetry::{Recording, unpacked};
use muster_store::telemetry;

use super::{Options, past, tell};
use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, Problem, USAGE};
use crate::out;
use crate::patience::Patience;

/// How the files of a folder end that belong to its recording.
const ENDINGS: [&str; 3] = [".csv", ".csv.gz", ".tel"];

/// Reads, watches, tells.
pub(super) fn run(options: &Options, config: &Config) -> Ended {
    let waiting = Patience::new("reading the recording");
    let recording = read(&options.from).code(CONFIG)?;
    let nodes = nodes(&recording, options, config)?;
    let metrics = metrics(&recording, &options.metrics)?;
    let mut watch = Watch::new(options.settings());
    watched(&mut watch, &recording, (&nodes, &metrics), config);
    drop(waiting);
    let mut notes = left_out(&recording);
    notes.extend(past::notes(&watch, &config.db.value));
    tell::document(&watch, (nodes.len(), &metrics), notes, options.json)
}

/// All rows of all files, in order of time.
pub(super) fn read(from: &[PathBuf]) -> anyhow::Result<Recording> {
    let mut recording = Recording::default();
    for file in files(from)? {
        let name = || file.display().to_string();
        if telemetry::is_recording(&file) {
            own(&file, &mut recording).with_context(name)?;
            continue;
        }
        let input = BufReader::with_capacity(1 << 18, File::open(&file).with_context(name)?);
        recording.add(unpacked(input).with_context(name)?).with_context(name)?;
    }
    recording.sort();
    Ok(recording)
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
    damages.iter().for_each(|damage| eprintln!("{}: {damage}", file.display()));
    Ok(())
}

/// The files of a recording; those of a folder by their endings, sorted.
fn files(from: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in from {
        if !path.is_dir() {
            files.push(path.clone());
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
        files.append(&mut found);
    }
    Ok(files)
}

fn is_recording(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending)) && !file.is_dir()
}

/// The nodes that are meant, in the order of the recording.
pub(super) fn nodes(recording: &Recording, options: &Options, config: &Config) -> Result<Vec<String>, Problem> {
    if !options.pick.given() {
        return Ok(recording.nodes.clone());
    }
    options.pick.of_names(recording.nodes.iter().map(String::as_str), "the recording", config)
}

/// The metrics that are meant; a pattern that means none is a slip.
pub(super) fn metrics(recording: &Recording, patterns: &[String]) -> Result<Vec<String>, Problem> {
    let has = |pattern: &&String| recording.metrics.iter().any(|metric| matches(pattern, metric));
    let strange: Vec<&str> = patterns.iter().filter(|pattern| !has(pattern)).map(String::as_str).collect();
    if !strange.is_empty() {
        let known = recording.metrics.join(", ");
        let error = anyhow!("--metrics: not in the recording: {}; it has {known}", strange.join(", "));
        return Err(Problem { code: USAGE, error });
    }
    let meant = |metric: &&String| patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, metric));
    Ok(recording.metrics.iter().filter(meant).cloned().collect())
}

/// Shows the recording to the detector.
fn watched(watch: &mut Watch, recording: &Recording, (nodes, metrics): (&[String], &[String]), config: &Config) {
    // Without an inventory nothing is known of what nodes share; they are compared all the same.
    let inventory = Inventory::load(&config.inventory.value).unwrap_or_default();
    let chosen: BTreeSet<&String> = nodes.iter().collect();
    let mut places = Vec::with_capacity(recording.nodes.len());
    for name in &recording.nodes {
        let place = if chosen.contains(name) { watch.node(name) } else { None };
        if let (Some(place), Some(known)) = (place, inventory.node(name)) {
            known.labels.iter().for_each(|(key, value)| watch.label(place, key, value));
        }
        places.push(place);
    }
    let compared = |name: &String| if metrics.contains(name) { watch.metric(name) } else { None };
    let columns: Vec<_> = recording.metrics.iter().map(compared).collect();
    for row in recording.rows() {
        let (node, metric) = recording.of(row);
        if let (Some(node), Some(metric)) = (places[node], columns[metric]) {
            watch.push(row.time_s, node, metric, f64::from(row.value));
        }
    }
    watch.finish();
}

/// What of the files could not be used.
fn left_out(recording: &Recording) -> Vec<String> {
    let said = |count: u64, why: &str| {
        (count > 0).then(|| format!("{} left out: {why}", out::counted(count as usize, "row", "rows")))
    };
    let values = said(recording.not_numbers, "the value is missing or no number");
    let times = said(recording.not_times, "the time is no epoch second");
    let names = said(recording.too_many_names, "too many names of nodes or metrics");
    [values, times, names].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_one_recording_of_all_its_csv_files() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.csv", "a.CSV.gz", "truth.json"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let found = files(&[dir.path().to_owned()]).unwrap();
        let names: Vec<_> = found.iter().map(|file| file.file_name().unwrap().to_string_lossy().into_owned()).collect();
        assert_eq!(names, ["a.CSV.gz", "b.csv"]);
        std::fs::create_dir(dir.path().join("empty")).unwrap();
        let why = files(&[dir.path().join("empty")]).unwrap_err().to_string();
        assert!(why.contains("no file in it ends in .csv or .csv.gz"), "{why}");
    }

    #[test]
    fn a_metric_that_the_recording_lacks_is_listed_with_those_it_has() {
        let mut recording = Recording::default();
        recording.add(&b"time_s,node,metric,value\n1,a,gpu_power_w,2\n1,a,cpu,2\n"[..]).unwrap();
        let pattern = |text: &str| metrics(&recording, &[text.to_owned()]);
        assert_eq!(pattern("gpu_*").unwrap(), ["gpu_power_w"]);
        let why = pattern("gpu_temp").unwrap_err();
        assert_eq!(why.code, USAGE);
        assert!(why.error.to_string().contains("gpu_temp; it has gpu_power_w, cpu"), "{}", why.error);
    }
}

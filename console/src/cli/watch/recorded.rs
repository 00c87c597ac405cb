//! `muster watch`: which machine of a job is unlike its peers, in which metric, since when; from recorded telemetry.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use muster_analysis::watch::{Alert, Settings, Watch};
use muster_fleet::Inventory;
use muster_fleet::pattern::matches;
use muster_import::telemetry::{Recording, unpacked};
use muster_playbook::report::rfc3339;
use serde::Serialize;

use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, FAIL, PASS, Problem, UNDECIDED, USAGE};
use crate::options::Pick;
use crate::out;
use crate::patience::Patience;

/// How the files of a folder end that belong to its recording.
const ENDINGS: [&str; 2] = [".csv", ".csv.gz"];

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster watch --from telemetry.csv.gz
  muster watch --from recording/ --json           all .csv and .csv.gz files of a folder are one recording
  muster watch --from telemetry.csv -w 'n[01-16]' -x n09 --metrics 'gpu_*,net_tx_gbs'

Reads recordings only; it does not connect to nodes. A recording is CSV with the columns time_s,node,metric,value (epoch \
seconds, rows in any order, gaps and NaN allowed), and is gone through as if the job were running: alerted_s is when \
an alert would have been given. At least 4 nodes and 2 metrics are needed, and about 3 minutes to learn what is usual. A group \
that differs together is called by a label of the inventory (leaf, rack, rail) that its nodes share.

Exit codes: 0 nothing odd, 2 at least one alert, 3 undecided (what is missing is said)")]
pub struct Options {
    /// Recordings: CSV or CSV.gz, or a folder of such files.
    #[arg(long, value_name = "FILE|DIR", num_args = 1.., required = true)]
    pub from: Vec<PathBuf>,
    /// Which nodes of the recording.
    #[command(flatten)]
    pub pick: Pick,
    /// Metrics to compare: names with * and ?, separated by commas [default: all].
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// The published document.
#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    version: u32,
    nodes: usize,
    metrics: Vec<&'a str>,
    from_s: Option<f64>,
    to_s: Option<f64>,
    alerts: &'a [Alert],
    notes: Vec<String>,
}

/// Reads, watches, tells.
pub fn run(options: &Options, config: &Config) -> Ended {
    let waiting = Patience::new("reading the recording");
    let recording = read(&options.from).code(CONFIG)?;
    let nodes = nodes(&recording, options, config)?;
    let metrics = metrics(&recording, &options.metrics)?;
    let watch = watched(&recording, &nodes, &metrics, config);
    drop(waiting);
    let lack = watch.lack().filter(|_| watch.alerts().is_empty());
    let mut notes = left_out(&recording);
    notes.extend(watch.notes());
    notes.extend(lack.map(|lack| format!("undecided: {lack}")));
    let (from_s, to_s) = watch.span().unzip();
    let (schema, version, alerts) = ("muster.watch", 1, watch.alerts());
    let metrics = metrics.iter().map(String::as_str).collect();
    let report = Report { schema, version, nodes: nodes.len(), metrics, from_s, to_s, alerts, notes };
    tell(&report, options.json)?;
    Ok(match () {
        () if !report.alerts.is_empty() => FAIL,
        () if lack.is_some() => UNDECIDED,
        () => PASS,
    })
}

/// All rows of all files, in order of time.
fn read(from: &[PathBuf]) -> anyhow::Result<Recording> {
    let mut recording = Recording::default();
    for file in files(from)? {
        let name = || file.display().to_string();
        let input = BufReader::with_capacity(1 << 18, File::open(&file).with_context(name)?);
        recording.add(unpacked(input).with_context(name)?).with_context(name)?;
    }
    recording.sort();
    Ok(recording)
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
fn nodes(recording: &Recording, options: &Options, config: &Config) -> Result<Vec<String>, Problem> {
    if !options.pick.given() {
        return Ok(recording.nodes.clone());
    }
    options.pick.of_names(recording.nodes.iter().map(String::as_str), "the recording", config)
}

/// The metrics that are meant; a pattern that means none is a slip.
fn metrics(recording: &Recording, patterns: &[String]) -> Result<Vec<String>, Problem> {
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

/// The recording as the detector sees it.
fn watched(recording: &Recording, nodes: &[String], metrics: &[String], config: &Config) -> Watch {
    let mut watch = Watch::new(Settings::default());
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
    watch
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

fn tell(report: &Report<'_>, json: bool) -> Result<(), Problem> {
    if json {
        return out::json(report);
    }
    report.notes.iter().for_each(|note| eprintln!("{note}"));
    for alert in report.alerts {
        let over = alert.until_s.map_or(String::new(), |until| format!(" Over at {}.", at(until)));
        out::line(&format!("{}  {}{over}", at(alert.alerted_s), alert.sentence))?;
    }
    let what = match report.alerts.len() {
        0 => "nothing odd".to_owned(),
        n => out::counted(n, "alert", "alerts"),
    };
    let nodes = out::counted(report.nodes, "node", "nodes");
    let metrics = out::counted(report.metrics.len(), "metric", "metrics");
    let span = report.from_s.zip(report.to_s).map(|(from, to)| format!(" from {} to {}", at(from), at(to)));
    let undecided = report.notes.last().filter(|note| note.starts_with("undecided"));
    let what = undecided.map_or(what, |_| "undecided".to_owned());
    out::line(&format!("{nodes}, {metrics}{}: {what}", span.unwrap_or_default()))
}

/// Epoch seconds as people write them.
fn at(seconds: f64) -> String {
    rfc3339((seconds.max(0.0) * 1e3) as u64)
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

//! A recording, gone through as if the job were running.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use muster_fleet::Inventory;
use muster_fleet::inventory::nearest;
use muster_fleet::pattern::matches;
use muster_import::telemetry::Recording;
use muster_watch::{Settings, Watch};
use muster_wire::{CLOCK_ERROR, telemetry, telemetry_names};

use super::input::{self, Input};
use super::{Options, past, tell};
use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, Problem, USAGE};
use crate::patience::Patience;
use crate::recordings;

/// Names that are listed.
const LISTED: usize = 40;

/// Reads, watches, tells.
pub(super) fn run(options: &Options, config: &Config) -> Ended {
    let waiting = Patience::new("reading the recording");
    let from: Vec<PathBuf> =
        options.from.iter().map(|from| recordings::find(from, config)).collect::<Result<_, _>>()?;
    let Input { recording, mut notes } = input::read(&from).code(CONFIG)?;
    let nodes = nodes(&recording, options, config)?;
    let metrics = metrics(&recording, &options.metrics)?;
    let mut watch = Watch::new(options.settings());
    watched(&mut watch, &recording, (&nodes, &metrics), config);
    drop(waiting);
    notes.extend(strange(&metrics));
    notes.extend(past::notes(&watch, &config.db.value));
    // Of those that somebody named some may have told nothing.
    let reporting = if options.pick.given() {
        let told: BTreeSet<String> = told(&recording).into_iter().collect();
        nodes.iter().filter(|name| told.contains(*name)).count()
    } else {
        nodes.len()
    };
    tell::document(&watch, (nodes.len(), reporting, &metrics), notes, (options.json, None))
}

/// A recording that was gone through as a whole.
pub(crate) struct Gone {
    /// All rows.
    pub(crate) recording: Recording,
    /// The detector after the last row.
    pub(crate) watch: Watch,
    /// Nodes of which anything was told.
    pub(crate) nodes: Vec<String>,
    /// Metrics that were compared.
    pub(crate) metrics: Vec<String>,
    /// What is worth knowing and accuses nobody.
    pub(crate) notes: Vec<String>,
}

/// Goes through all of a recording.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn gone_through(file: &Path, config: &Config) -> Result<Gone, Problem> {
    let Input { recording, mut notes } = input::read(&[file.to_owned()]).code(CONFIG)?;
    let nodes = told(&recording);
    let metrics = metrics(&recording, &[])?;
    let mut watch = Watch::new(Settings::default());
    watched(&mut watch, &recording, (&nodes, &metrics), config);
    notes.extend(strange(&metrics));
    notes.extend(past::notes(&watch, &config.db.value));
    notes.extend(watch.notes());
    Ok(Gone { recording, watch, nodes, metrics, notes })
}

/// The nodes of the recording at `file`.
///
/// # Errors
/// When it cannot be read, or is none.
pub(crate) fn nodes_of(file: &Path) -> Result<Vec<String>, Problem> {
    Ok(input::read(&[file.to_owned()]).code(CONFIG)?.recording.nodes)
}

/// Of those without a usable row nothing can be said.
pub(super) fn told(recording: &Recording) -> Vec<String> {
    let told: BTreeSet<usize> = recording.rows().iter().map(|row| recording.of(row).0).collect();
    told.into_iter().map(|node| recording.nodes[node].clone()).collect()
}

/// The nodes that are meant, in the order of the recording.
pub(super) fn nodes(recording: &Recording, options: &Options, config: &Config) -> Result<Vec<String>, Problem> {
    if !options.pick.given() {
        return Ok(told(recording));
    }
    options.pick.of_names(recording.nodes.iter().map(String::as_str), "the recording", config)
}

/// The metrics that are meant; a pattern that means none is a slip.
pub(super) fn metrics(recording: &Recording, patterns: &[String]) -> Result<Vec<String>, Problem> {
    let has = |pattern: &&String| recording.metrics.iter().any(|metric| matches(pattern, metric));
    let strange: Vec<&str> = patterns.iter().filter(|pattern| !has(pattern)).map(String::as_str).collect();
    if !strange.is_empty() {
        let known = recording.metrics.iter().map(String::as_str);
        let near: Vec<String> = strange.iter().filter_map(|pattern| nearest(pattern, known.clone())).collect();
        let hint = if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
        let known = listed(&recording.metrics);
        let error = anyhow!("--metrics: not in the recording: {}{hint}; it has {known}", strange.join(", "));
        return Err(Problem { code: USAGE, error });
    }
    // Moments between two looks are compared only where somebody wants it.
    let meant = |metric: &&String| {
        let all = patterns.is_empty() && !muster_wire::is_fine(metric);
        let is_metric = metric.as_str() != CLOCK_ERROR;
        is_metric && (all || patterns.iter().any(|pattern| matches(pattern, metric)))
    };
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
        match (places[node], columns[metric]) {
            (Some(node), Some(metric)) => watch.push(row.time_s, node, metric, f64::from(row.value)),
            (Some(node), None) if recording.metrics[metric] == CLOCK_ERROR => watch.clock(node, f64::from(row.value)),
            _ => {}
        }
    }
    watch.finish();
}

/// That a metric's name is not in the catalogue and much like one that is: compared all the same, but without what is known of the other.
fn strange(metrics: &[String]) -> Option<String> {
    let near = |name: &String| {
        let known = telemetry(name).is_some_and(|known| known.name == name);
        let near = if known { None } else { nearest(name, telemetry_names()) };
        near.filter(|near| !metrics.contains(near)).map(|near| format!("{name} (did you mean {near}?)"))
    };
    let near: Vec<String> = metrics.iter().filter_map(near).collect();
    (!near.is_empty()).then(|| format!("compared under names that are not in the catalogue: {}", listed(&near)))
}

/// The first of some names, and how many more there are.
fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(LISTED);
    let first = names.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_that_the_recording_lacks_is_listed_with_those_it_has() {
        let mut recording = Recording::default();
        recording.add_csv(&b"time_s,node,metric,value\n1,a,gpu_power_w,2\n1,a,cpu,2\n"[..]).unwrap();
        let pattern = |text: &str| metrics(&recording, &[text.to_owned()]);
        assert_eq!(pattern("gpu_*").unwrap(), ["gpu_power_w"]);
        let why = pattern("gpu_temp").unwrap_err();
        assert_eq!(why.code, USAGE);
        assert!(why.error.to_string().contains("gpu_temp; it has gpu_power_w, cpu"), "{}", why.error);
    }
}

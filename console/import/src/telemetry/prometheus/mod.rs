//! Which series of Prometheus' `query_range` answers are which metrics of which node?
//!
//! Series are kept as they come, by node, name and device, so that the answers of a folder may be in any order, follow each other in time or overlap.
//! At the end counters become rates, and the devices of a node become one metric.
//!
//! | file | settles |
//! |---|---|
//! | `answer` | the series of an answer, one after the other |
//! | `words` | how long a word in it may be |
//! | `names` | which exporter's name is which of our metrics: one table |
//! | `who` | which node and which device a series is of |
//! | `rate` | what a counter did between two samples |
//! | `join` | one value of a node from those of its devices |

mod answer;
mod join;
mod names;
mod rate;
mod who;
mod words;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::BufRead;

use answer::Series;
pub(super) use answer::is_answer;
use join::{Part, joined};
use names::{Source, Takes};

use super::{LARGEST, ROWS, Recording};
use crate::Bad;

/// Most series that are kept, and samples of all of them together.
const SERIES: usize = 1 << 20;
const SAMPLES: usize = ROWS;
/// Most names that are listed as unknown.
const UNKNOWN: usize = 256;

/// Milliseconds and value.
type Samples = Vec<(i64, f64)>;

/// What of the answers could not be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Names that are not known, with the number of their series.
    pub unknown: BTreeMap<String, u64>,
    /// Series past the names that are listed.
    pub unlisted: u64,
    /// Series without a name, as functions like `rate` leave them.
    pub nameless: u64,
    /// Series that do not say of which node they are.
    pub nowhere: u64,
    /// Series past the limit.
    pub too_many: u64,
    /// Series of native histograms, and of a single moment.
    pub no_values: u64,
    /// Counters that began anew.
    pub resets: u64,
}

/// Answers that were read so far.
#[derive(Clone, Debug, Default)]
pub struct Prometheus {
    kept: HashMap<Key, Samples>,
    samples: usize,
    not_numbers: u64,
    not_times: u64,
    /// Names that `node_uname_info` gives to addresses.
    aliases: BTreeMap<String, String>,
    left: Left,
}

/// What a series is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    node: String,
    name: String,
    device: Vec<String>,
}

impl Prometheus {
    /// Adds the series of a file: an answer of `query_range`, several one behind the other, or the bare list that promtool prints.
    ///
    /// # Errors
    /// When it is none, is torn, says that the query failed, or is more than is kept.
    pub fn add(&mut self, input: impl BufRead) -> Result<(), Bad> {
        answer::read(input, &mut |series| self.take(series))
    }

    fn take(&mut self, series: Series) -> Result<(), Bad> {
        if series.name == who::UNAME {
            self.aliases.extend(who::alias(&series.labels));
            return Ok(());
        }
        let device = match names::takes(&series.name, &series.labels) {
            Takes::Device(device) => device,
            Takes::Nothing => return Ok(()),
            Takes::Unknown => {
                self.unknown(series.name);
                return Ok(());
            }
        };
        let Some(node) = who::node(&series.labels) else {
            self.left.nowhere += 1;
            return Ok(());
        };
        if series.values.is_empty() {
            self.left.no_values += 1;
            return Ok(());
        }
        let key = Key { node, name: series.name, device };
        if self.kept.len() >= SERIES && !self.kept.contains_key(&key) {
            self.left.too_many += 1;
            return Ok(());
        }
        self.samples += series.values.len();
        if self.samples > SAMPLES {
            return Err(Bad::TooMuch { line: 0, limit: SAMPLES, what: "samples" });
        }
        let kept = self.kept.entry(key).or_default();
        for (time_s, value) in series.values {
            if !(0.0..=super::LATEST).contains(&time_s) {
                self.not_times += 1;
            } else if value.is_nan() || value.abs() > LARGEST {
                self.not_numbers += 1;
            } else {
                kept.push(((time_s * 1e3).round() as i64, value));
            }
        }
        Ok(())
    }

    fn unknown(&mut self, name: String) {
        let left = &mut self.left;
        if name.is_empty() {
            left.nameless += 1;
        } else if let Some(series) = left.unknown.get_mut(&name) {
            *series += 1;
        } else if left.unknown.len() < UNKNOWN {
            left.unknown.insert(name, 1);
        } else {
            left.unlisted += 1;
        }
    }

    /// Adds what the answers say of our metrics, and gives what could not be used.
    ///
    /// # Errors
    /// When there are more rows than are kept.
    pub fn into_recording(mut self, recording: &mut Recording) -> Result<Left, Bad> {
        recording.not_numbers += self.not_numbers;
        recording.not_times += self.not_times;
        let mut nodes: BTreeMap<String, Vec<Counted>> = BTreeMap::new();
        for (key, samples) in self.series() {
            let of = nodes.entry(key.node.clone()).or_default();
            of.push(Counted { name: key.name, device: key.device, samples });
        }
        for (node, series) in nodes {
            let refreshed = refreshed(&series);
            for (metric, over, parts) in self.metrics(&series, &refreshed) {
                for (time_ms, value) in joined(&parts, over) {
                    recording.push(&node, metric, time_ms as f64 / 1e3, value as f32)?;
                }
            }
        }
        Ok(self.left)
    }

    /// All series with the names of their nodes, each in order of time and once at a time.
    fn series(&mut self) -> BTreeMap<Key, Samples> {
        let mut merged: BTreeMap<Key, Samples> = BTreeMap::new();
        for (mut key, mut samples) in std::mem::take(&mut self.kept) {
            if let Some(name) = self.aliases.get(&key.node) {
                key.node.clone_from(name);
            }
            merged.entry(key).or_default().append(&mut samples);
        }
        for samples in merged.values_mut() {
            samples.sort_by_key(|(time_ms, _)| *time_ms);
            samples.dedup_by_key(|(time_ms, _)| *time_ms);
        }
        merged
    }

    /// The metrics of a node, each with what its devices add.
    fn metrics<'a>(
        &mut self,
        series: &'a [Counted],
        refreshed: &BTreeMap<&str, i64>,
    ) -> Vec<(&'static str, names::Over, Vec<Part<'a>>)> {
        let mut metrics: BTreeMap<&'static str, (names::Over, Vec<Part<'a>>)> = BTreeMap::new();
        for one in series {
            let refresh = refreshed.get(who::exporter(&one.name)).copied().unwrap_or(0);
            for source in names::of(&one.name).filter(|source| source.wants(&one.device)) {
                let samples = self.scaled(one, &source, refresh);
                let (_, parts) = metrics.entry(source.metric).or_insert_with(|| (source.over, Vec::new()));
                parts.push(Part { device: one.device.first().map_or("", String::as_str), role: source.role, samples });
            }
        }
        metrics.into_iter().map(|(metric, (over, parts))| (metric, over, parts)).collect()
    }

    /// A series in our unit; a gap where a counter began anew.
    fn scaled(&mut self, one: &Counted, source: &Source, refresh: i64) -> Vec<(i64, Option<f64>)> {
        let levels = if source.counts {
            let (rates, resets) = rate::rates(&one.samples, refresh);
            self.left.resets += resets;
            rates
        } else {
            one.samples.iter().map(|(time_ms, value)| (*time_ms, Some(*value))).collect()
        };
        levels.into_iter().map(|(time_ms, value)| (time_ms, value.map(|value| value * source.factor))).collect()
    }
}

/// A series of a node.
struct Counted {
    name: String,
    device: Vec<String>,
    samples: Samples,
}

/// How often each exporter of a node is asked, milliseconds: its counters that move at all move as often.
fn refreshed(series: &[Counted]) -> BTreeMap<&str, i64> {
    let exporters: BTreeSet<&str> = series.iter().map(|one| who::exporter(&one.name)).collect();
    let often = |exporter: &str| {
        let counters = series.iter().filter(|one| who::exporter(&one.name) == exporter && names::counts(&one.name));
        counters.filter_map(|one| rate::moves_every(&one.samples)).min()
    };
    exporters.into_iter().filter_map(|exporter| Some((exporter, often(exporter)?))).collect()
}

#[cfg(test)]
mod tests;

//! Step series of one rank: SuperBench's `nodes/NODE/benchmarks/BENCHMARK/rankN/results.json`.
//!
//! The summary keeps one number per key; only here are the steps that a distribution needs.

use std::collections::BTreeMap;
use std::io::BufRead;

use serde::Deserialize;

use super::Key;
use crate::lines::whole;
use crate::{Bad, Limits, Series, component};

/// Which rank of which node a file is of: its path says so, the file does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// Node.
    pub node: &'a str,
    /// Benchmark as configured, with its annotation: `model-benchmarks:bert`.
    pub benchmark: &'a str,
    /// Rank; `None` when only one ran.
    pub rank: Option<u32>,
}

/// What a rank delivered.
#[derive(Debug, Default)]
pub struct Raw {
    /// One per numeric metric and run, values in our unit.
    pub series: Vec<Series>,
    /// Return codes that are not zero, by benchmark: such a run failed, its series are not here.
    pub failed: Vec<(String, i64)>,
    /// Entries that are `null`: contexts SuperBench could not start.
    pub lost: usize,
    /// Metrics left out, because they are text, counts or unknown, by name.
    pub left_out: Vec<String>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    #[serde(default)]
    return_code: i64,
    #[serde(default)]
    raw_data: BTreeMap<String, Vec<Run>>,
}

/// One run of a metric.
#[derive(Deserialize)]
#[serde(untagged)]
enum Run {
    Steps(Vec<Option<f64>>),
    One(f64),
    Other(serde::de::IgnoredAny),
}

/// Reads one `results.json`.
///
/// # Errors
/// With the line: when it is not SuperBench's list of results, or longer than `limits` allow.
pub fn read(input: impl BufRead, place: Place<'_>, limits: Limits) -> Result<Raw, Bad> {
    let text = whole(input, limits)?;
    let entries: Vec<Option<Entry>> = serde_json::from_str(&text).map_err(|e| Bad::json(1, &e))?;
    let mut raw = Raw::default();
    for entry in entries {
        match entry {
            None => raw.lost += 1,
            Some(entry) if entry.return_code != 0 => raw.failed.push((entry.name, entry.return_code)),
            Some(entry) => raw.take(entry, place),
        }
    }
    Ok(raw)
}

impl Raw {
    fn take(&mut self, entry: Entry, place: Place<'_>) {
        // A model's entry carries the model's name, a micro-benchmark's its own.
        let model = place.benchmark.split(':').next().is_some_and(|b| b != entry.name);
        let head = if model { format!("{}/{}", place.benchmark, entry.name) } else { place.benchmark.to_owned() };
        for (metric, runs) in entry.raw_data {
            let text = match place.rank {
                Some(rank) => format!("{head}/{metric}:{rank}"),
                None => format!("{head}/{metric}"),
            };
            let Some(key) = Key::parse(&text) else { continue };
            let named = || (key.metric_id(), component::superbench(&key, false));
            for run in runs {
                let steps = match run {
                    // A step that is null was not measured: the run is not whole.
                    Run::Steps(steps) => steps.into_iter().collect::<Option<Vec<f64>>>(),
                    Run::One(value) => Some(vec![value]),
                    Run::Other(_) => None,
                };
                let series = steps.and_then(|s| Series::of(place.node, named(), key.meaning(), &s));
                match series {
                    Some(series) => self.series.push(series),
                    None => self.left_out.push(metric.clone()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_wire::{Direction, Unit};
    use proptest::prelude::*;

    const FILE: &str = r#"[
      {"name": "pytorch-bert-large", "type": "model", "run_count": 1, "return_code": 0,
       "raw_data": {"fp16_train_step_time": [[206.5, 207.25, 206.75]], "fp16_train_log": [["text"]]},
       "result": {"fp16_train_step_time": [206.8]}, "reduce_op": {"fp16_train_step_time": "max"}},
      null,
      {"name": "pytorch-gpt2-large", "return_code": 4, "raw_data": {}}
    ]"#;

    #[test]
    fn steps_come_in_our_unit_and_failures_are_said() {
        let place = Place { node: "n1", benchmark: "model-benchmarks:bert", rank: Some(0) };
        let raw = read(FILE.as_bytes(), place, Limits::default()).unwrap();
        let series = &raw.series[0];
        assert_eq!(
            series.metric.to_string(),
            "model-benchmarks:bert/pytorch-bert-large/fp16_train_step_time:0@superbench"
        );
        assert_eq!((series.unit, series.direction), (Unit::Nanos, Direction::LowerIsBetter));
        assert_eq!(series.values, [206.5e6, 207.25e6, 206.75e6]);
        assert_eq!((raw.failed, raw.lost), (vec![("pytorch-gpt2-large".to_owned(), 4)], 1));
        assert_eq!(raw.left_out, ["fp16_train_log"]);
        let micro = r#"[{"name": "kernel-launch", "return_code": 0, "raw_data": {"event_time": [0.00597]}}]"#;
        let raw =
            read(micro.as_bytes(), Place { node: "n", benchmark: "kernel-launch", rank: Some(3) }, Limits::default());
        assert_eq!(raw.unwrap().series[0].metric.to_string(), "kernel-launch/event_time:3@superbench");
    }

    #[test]
    fn a_broken_file_is_refused_with_its_line() {
        let error = read(&b"[\n{\"name\": 3}]"[..], Place { node: "n", benchmark: "b", rank: None }, Limits::default());
        assert!(error.unwrap_err().to_string().starts_with("line 2"));
    }

    proptest! {
        #[test]
        fn no_file_is_too_strange(cut in 0usize..400, flip in 0usize..400, byte in any::<u8>()) {
            let mut bytes = FILE.as_bytes()[..cut.min(FILE.len())].to_vec();
            if let Some(b) = bytes.get_mut(flip) {
                *b = byte;
            }
            let _ = read(&bytes[..], Place { node: "n", benchmark: "b", rank: None }, Limits::default());
        }
    }
}

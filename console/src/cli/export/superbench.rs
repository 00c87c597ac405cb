//! A run as SuperBench's `results-summary.jsonl`: what it measures as well, by its names and in its units, so that its
//! baselines and rules judge our results, and baselines made of ours judge its.

use std::io::Write;

use anyhow::Result;
use muster_import::Meaning;
use muster_import::superbench::{Key, alias};
use muster_run::joined;
use serde_json::{Map, Value};

use super::{Each, newest};

/// One line a node, with the mean of each metric that has a name there.
///
/// # Errors
/// When `to` cannot be written to.
pub(super) fn write(to: &mut dyn Write, nodes: impl FnOnce(Each<'_>) -> Result<()>) -> Result<()> {
    nodes(&mut |records| {
        let Some(node) = records.first().map(|record| record.node.clone()) else { return Ok(()) };
        let mut line = Map::from_iter([("node".to_owned(), Value::from(node))]);
        for (metric, series) in newest(&records).iter().flat_map(|record| record.by_metric()) {
            let Some(name) = alias(metric) else { continue };
            let Some(Meaning::Measure { factor, .. }) = Key::parse(&name).map(|key| key.meaning()) else { continue };
            let (sum, count) = joined(series).into_iter().fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
            if count > 0.0 {
                line.insert(name, Value::from(sum / count / factor));
            }
        }
        serde_json::to_writer(&mut *to, &line).map_err(std::io::Error::from)?;
        Ok(to.write_all(b"\n")?)
    })
}

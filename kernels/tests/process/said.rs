//! The worker as a process beside libraries of a folder, and what it said.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use muster_wire::{Datum, Decoder, Frame, Outcome, Reading, Series};

#[derive(Debug)]
pub struct Said {
    pub outcome: Outcome,
    pub series: BTreeMap<String, Series>,
    pub facts: Vec<(String, String)>,
    /// What it began last.
    pub at: String,
}

impl Said {
    pub fn fact(&self, key: &str) -> &str {
        &self.facts.iter().find(|(k, _)| k == key).unwrap_or_else(|| panic!("no {key} in {:?}", self.facts)).1
    }
}

pub fn worker(folder: PathBuf, arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muster-gpu"));
    let output = command
        .args(arguments)
        .env("MUSTER_LIBRARIES", folder.join("wheels"))
        .env("LD_LIBRARY_PATH", folder)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    heard(&output.stdout)
}

/// What a worker's output says.
pub fn heard(output: &[u8]) -> Said {
    let mut decoder = Decoder::new();
    decoder.push(output);
    let mut said = Said {
        outcome: Outcome::NotRun("no end".into()),
        series: BTreeMap::new(),
        facts: Vec::new(),
        at: String::new(),
    };
    while let Some(frame) = decoder.frame().unwrap() {
        match frame {
            Frame::Series(series) => {
                said.series.insert(series.metric.to_string(), series);
            }
            Frame::Facts(facts) => said.facts.extend(facts.facts.into_iter().map(|fact| match fact.reading {
                Reading::Value(Datum::Text(text)) => (fact.key, text),
                Reading::Value(Datum::Number(number)) => (fact.key, number.to_string()),
                other => (fact.key, format!("{other:?}")),
            })),
            Frame::Progress(progress) => said.at = progress.note,
            Frame::Finished(end) => said.outcome = end.outcome,
            _ => {}
        }
    }
    said
}

//! Which nodes of a run are of one kind, by what the collectors saw.

use std::collections::HashMap;

use crate::groups::{Hardware, hardware_groups};
use muster_run::Record;
use muster_wire::{Component, Datum, Fact, clean, fact_of, limits};

use super::Evidence;

/// Group of each of the nodes, in their order; empty names where all are alike or nobody looked.
pub fn groups(nodes: &[String], evidence: &Evidence<'_>) -> Vec<String> {
    hardware_groups(&nodes.iter().map(|node| hardware(node, evidence)).collect::<Vec<_>>())
}

/// What one node is built of, as far as these records of it tell.
#[must_use]
pub fn hardware_of(node: &str, records: &[Record]) -> Hardware {
    hardware(node, &Evidence::new(records))
}

fn hardware(node: &str, evidence: &Evidence<'_>) -> Hardware {
    let look = |collector: &str| evidence.latest.get(&(node, collector)).copied();
    let (cpu, memory) = (look("collect/cpu"), look("collect/memory"));
    Hardware {
        cpu: cpu.and_then(|record| text(record, |key| key == "model")),
        gpu: look("collect/gpu").and_then(gpu),
        memory: memory.and_then(|record| number(record, "total")).map(|bytes| bytes as u64),
        firmware: look("collect/identity").and_then(|record| text(record, |key| key == "bios.version")),
    }
}

/// The model that most GPUs of the node have.
fn gpu(record: &Record) -> Option<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    let model = |fact: &&Fact| matches!(fact_of(&fact.key), Some((Component::Gpu(_), "model")));
    for fact in record.facts.iter().filter(model) {
        if let Some(Datum::Text(model)) = fact.reading.value() {
            *counts.entry(clean(model, limits::NAME_BYTES)).or_default() += 1;
        }
    }
    counts.into_iter().max_by(|a, b| a.1.cmp(&b.1).then(b.0.cmp(&a.0))).map(|(model, _)| model)
}

fn text(record: &Record, is: impl Fn(&str) -> bool) -> Option<String> {
    match record.facts.iter().find(|fact| is(&fact.key))?.reading.value()? {
        Datum::Text(text) => Some(clean(text, limits::NAME_BYTES)),
        _ => None,
    }
}

fn number(record: &Record, key: &str) -> Option<f64> {
    match record.facts.iter().find(|fact| fact.key == key)?.reading.value()? {
        Datum::Number(number) if number.is_finite() && *number >= 0.0 => Some(*number),
        _ => None,
    }
}

//! Which parts a run found broken, by serial number, so that one is known again in another node.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use muster_analysis::State;
use muster_analysis::service::{Failure, Part};
use muster_playbook::report::RunReport;
use muster_run::{Record, Run};
use muster_store::{Store, Table};
use muster_wire::{Component, Datum, clean, limits};

/// What boards say that have no number of their own.
const NO_NUMBER: [&str; 8] =
    ["", "0", "none", "n/a", "not specified", "default string", "to be filled by o.e.m.", "system serial number"];

/// Keeps which parts `report` finds broken.
///
/// # Errors
/// When the store fails.
pub fn keep_failures(store: &mut dyn Store, run: &Run, report: &RunReport) -> Result<()> {
    let mut all = Vec::new();
    for node in report.nodes.iter().filter(|node| node.state == State::Fail) {
        let broken = node.findings.iter().filter(|finding| finding.state == State::Fail);
        let components: BTreeSet<&str> = broken.map(|finding| finding.component.as_str()).collect();
        let records = store.records_of(&run.id, &node.node)?;
        all.extend(components.into_iter().map(|component| Failure {
            at_ms: run.started_ms,
            node: node.node.clone(),
            component: component.to_owned(),
            part: part(component, &records),
            reason: node.reasons.first().cloned().unwrap_or_default(),
        }));
    }
    if !all.is_empty() {
        store.put(Table::Failures, &run.id, &serde_json::to_vec(&all)?)?;
    }
    Ok(())
}

/// All that was kept, of all runs.
///
/// # Errors
/// When the store cannot be read, or an entry is corrupt.
pub fn failures(store: &dyn Store) -> Result<Vec<Failure>> {
    let mut all = Vec::new();
    for run in store.list(Table::Failures)?.into_iter().map(|seen| seen.key) {
        let Some(bytes) = store.get(Table::Failures, &run)? else { continue };
        let kept: Vec<Failure> = serde_json::from_slice(&bytes)
            .with_context(|| format!("what run {run} found broken is corrupt (run: muster db check)"))?;
        all.extend(kept);
    }
    all.sort_by(|a, b| (a.at_ms, &a.node, &a.component).cmp(&(b.at_ms, &b.node, &b.component)));
    Ok(all)
}

/// The part behind a component: a GPU by its own number, a named disk by its own, all that is built in by the machine's.
fn part(component: &str, records: &[Record]) -> Option<Part> {
    let text = |key: &str| {
        let facts = records.iter().rev().flat_map(|record| &record.facts).filter(|fact| fact.key == key);
        let texts = facts.filter_map(|fact| match fact.reading.value()? {
            Datum::Text(text) => Some(clean(text.trim(), limits::NAME_BYTES)),
            _ => None,
        });
        texts.into_iter().find(|text| !NO_NUMBER.contains(&text.to_ascii_lowercase().as_str()))
    };
    let (kind, serial) = match component.parse::<Component>().ok()? {
        Component::Gpu(at) => ("gpu", text(&format!("nvml.{at}.serial")).or_else(|| text(&format!("nvml.{at}.uuid")))),
        Component::Disk(Some(name)) => ("disk", text(&format!("device.{name}.serial"))),
        Component::Cpu | Component::Core(_) | Component::Memory | Component::Gpus | Component::GpuLink(..) => {
            ("node", text("dmi.serial"))
        }
        _ => return None,
    };
    Some(Part { kind: kind.to_owned(), serial: serial? })
}

#[cfg(test)]
mod tests {
    use muster_wire::{Fact, Outcome, Reading};

    use super::*;

    fn record(facts: &[(&str, &str)]) -> Record {
        let fact = |(key, text): &(&str, &str)| Fact {
            key: (*key).to_owned(),
            reading: Reading::Value(Datum::Text((*text).to_owned())),
            unit: None,
        };
        Record {
            run: "r".into(),
            node: "n".into(),
            work: "collect/gpu".into(),
            outcome: Outcome::Done,
            at_ms: 0,
            elapsed_ns: 0,
            series: Vec::new(),
            facts: facts.iter().map(fact).collect(),
        }
    }

    #[test]
    fn a_part_is_named_by_its_own_number_where_it_has_one() {
        let records = [record(&[
            ("nvml.3.serial", "1654922000123"),
            ("nvml.3.uuid", "GPU-a"),
            ("nvml.4.serial", "0"),
            ("nvml.4.uuid", "GPU-b"),
            ("device.nvme1n1.serial", "S5XX"),
            ("dmi.serial", "Default string"),
        ])];
        let of = |component: &str| part(component, &records).map(|part| (part.kind, part.serial));
        let named = |kind: &str, serial: &str| Some((kind.to_owned(), serial.to_owned()));
        assert_eq!(of("gpu:3"), named("gpu", "1654922000123"));
        assert_eq!(of("gpu:4"), named("gpu", "GPU-b"), "boards of some GPUs have no number");
        assert_eq!(of("disk:nvme1n1"), named("disk", "S5XX"));
        assert_eq!(of("gpu:5"), None);
        assert_eq!(of("memory"), None, "a text that every board of its maker says is no number");
        assert_eq!(of("nic:eth0"), None);
        let own = [record(&[("dmi.serial", "CZ2D1")])];
        assert_eq!(part("memory", &own).map(|part| part.serial).as_deref(), Some("CZ2D1"));
    }
}

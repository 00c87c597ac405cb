//! What a screen says of each GPU of a node: from the facts of its records, and from what was found.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use muster_analysis::gpu::{self, Finding};
use muster_analysis::{State, gpu::Row};
use muster_playbook::report::NodeFindings;
use muster_run::Record;
use muster_tui::snapshot::{GpuRow, Sm};
use muster_wire::limits::TEXT_BYTES;
use muster_wire::{Component, Datum, Unit, clean, fact_of, gpu_fact};

/// GPUs of one node that are shown.
const MOST: u32 = 64;
/// Multiprocessors of one GPU that are shown.
const SMS: u32 = 1024;

#[derive(Default)]
struct Known {
    name: String,
    uuid: Option<String>,
    measured: bool,
    numbers: BTreeMap<String, f64>,
    sms: BTreeMap<u32, Sm>,
}

/// One row per GPU of which `records`, all of one node, tell.
pub fn rows<'a>(records: impl IntoIterator<Item = &'a Record>, finding: &NodeFindings) -> Arc<[GpuRow]> {
    let mut known: BTreeMap<u32, Known> = BTreeMap::new();
    for record in records {
        read(record, &mut known);
    }
    known.into_iter().map(|(index, known)| row(index, known, finding)).collect()
}

fn read(record: &Record, known: &mut BTreeMap<u32, Known>) {
    let mut texts = Vec::new();
    for fact in &record.facts {
        let Some((index, name)) = place(&fact.key) else { continue };
        match fact.reading.value() {
            Some(Datum::Number(number)) => {
                known.entry(index).or_default().numbers.insert(name.to_owned(), *number);
            }
            Some(Datum::Text(text)) => {
                tell(known.entry(index).or_default(), name, text);
                known.entry(index).or_default().measured |= fact.key == gpu_fact(index, name);
                if let Some(row) = Row::parse(&fact.key, text) {
                    let sms = &mut known.entry(index).or_default().sms;
                    for share in row.shares.iter().filter(|share| share.sm < SMS) {
                        sms.entry(share.sm).or_insert(Sm::Good);
                    }
                }
                texts.push((fact.key.as_str(), text.as_str()));
            }
            _ => {}
        }
    }
    for finding in gpu::findings(texts) {
        let (sm, is) = match finding {
            Finding::WrongSm { sm, .. } => (sm, Sm::Wrong),
            Finding::SlowSm { sm, .. } => (sm, Sm::Slow),
            _ => continue,
        };
        if let Some(cell) =
            known.get_mut(&finding.gpu()).and_then(|gpu| gpu.sms.get_mut(&sm)).filter(|c| **c != Sm::Wrong)
        {
            *cell = is;
        }
    }
}

/// GPU and name in `nvml.3.power` and `gpu.3.health`.
fn place(key: &str) -> Option<(u32, &str)> {
    match fact_of(key)? {
        (Component::Gpu(index), name) if index < MOST => Some((index, name)),
        _ => None,
    }
}

fn tell(gpu: &mut Known, name: &str, text: &str) {
    match name {
        "name" => gpu.name = clean(text, 64),
        "uuid" => gpu.uuid = Some(clean(text, 64)),
        "health" => {
            for (name, value) in text.split(' ').filter_map(|word| word.split_once('=')) {
                if let Ok(value) = value.parse::<f64>() {
                    let load = gpu.numbers.entry(format!("load.{name}")).or_insert(value);
                    // Of several loads the hottest is told.
                    *load = if name == "temperature" { load.max(value) } else { value };
                }
            }
        }
        _ => {}
    }
}

fn row(index: u32, known: Known, finding: &NodeFindings) -> GpuRow {
    let number = |name: &str| known.numbers.get(name).copied().filter(|n| n.is_finite());
    let both = |a: &str, b: &str| number(a).zip(number(b));
    let said = said(index, finding);
    let usual = if known.measured { State::Pass } else { State::NotRun };
    let count = known.sms.keys().next_back().map_or(0, |last| last + 1);
    GpuRow {
        index,
        name: known.name.clone(),
        about: about(&known).into(),
        state: said.first().map_or(usual, |(state, _)| *state),
        temperature: number("load.temperature").or_else(|| number("temperature")),
        power: number("load.power").or_else(|| number("power")),
        clock: number("load.clock").or_else(|| number("clock.sm")),
        errors: number("ecc.uncorrected"),
        links: both("nvlink.up", "nvlink.links"),
        pcie: both("load.pcie.generation", "load.pcie.width").or_else(|| both("pcie.generation", "pcie.width")),
        sms: (0..count).map(|sm| known.sms.get(&sm).copied().unwrap_or(Sm::Good)).collect(),
        said: said.into_iter().map(|(_, text)| text).collect(),
    }
}

/// What has no column of its own.
fn about(known: &Known) -> Vec<String> {
    let number = |name: &str| known.numbers.get(name).copied().filter(|n| n.is_finite());
    let mut about = Vec::new();
    about.extend(number("temperature.memory").map(|degrees| format!("memory {degrees:.0} °C")));
    about.extend(number("power.limit").map(|watts| format!("limit {watts:.0} W")));
    about.extend(
        number("remap.corrected").zip(number("remap.uncorrected")).map(|(a, b)| format!("{:.0} replaced rows", a + b)),
    );
    about.extend(number("nvlink.speed").map(|speed| format!("links of {}", Unit::BytesPerSec.show(speed))));
    about.extend(number("ecc.mode").filter(|mode| *mode == 0.0).map(|_| "ECC off".to_owned()));
    about.extend(number("mig").filter(|mode| *mode == 1.0).map(|_| "MIG on".to_owned()));
    about.extend(known.uuid.clone());
    about
}

/// What findings and checks of the node say of GPU number `index`, worst first.
fn said(index: u32, finding: &NodeFindings) -> Vec<(State, String)> {
    let start = format!("GPU {index}: ");
    let own = |component: &Component| *component == Component::Gpu(index);
    let all = finding.all();
    let mut said: Vec<(State, String)> = all
        .iter()
        .filter(|found| found.state > State::Pass)
        .flat_map(|found| found.sentence.split("; ").map(move |part| (found, part)))
        .filter_map(|(found, part)| match part.find(&start) {
            Some(at) => Some((found.state, clean(&part[at + start.len()..], TEXT_BYTES))),
            None if own(&found.component) => Some((found.state, clean(part, TEXT_BYTES))),
            None => None,
        })
        .collect();
    said.sort_by_key(|(state, _)| Reverse(*state));
    said.dedup();
    said
}

#[cfg(test)]
mod tests {
    use muster_analysis::findings::{Finding, Source};
    use muster_wire::{Fact, Outcome, Reading};

    use super::*;

    fn record(work: &str, facts: &[(&str, Datum)]) -> Record {
        let fact = |(key, datum): &(&str, Datum)| Fact {
            key: (*key).to_owned(),
            reading: Reading::Value(datum.clone()),
            unit: None,
        };
        Record {
            run: "r".into(),
            node: "n1".into(),
            work: work.into(),
            outcome: Outcome::Done,
            at_ms: 1,
            elapsed_ns: 1,
            series: Vec::new(),
            facts: facts.iter().map(fact).collect(),
        }
    }

    #[test]
    fn a_gpu_is_told_from_its_health_its_multiprocessors_and_what_was_found() {
        let text = |text: &str| Datum::Text(text.to_owned());
        let finding = |component, state, said: &str| {
            Finding::new("n1", component, Source::Digests("sm-sdc".into()), state, said.to_owned())
        };
        let records = [
            record(
                "collect/gpu",
                &[
                    ("nvml.0.temperature", Datum::Number(40.0)),
                    ("nvml.1.temperature", Datum::Number(41.0)),
                    ("nvml.1.nvlink.up", Datum::Number(17.0)),
                    ("nvml.1.nvlink.links", Datum::Number(18.0)),
                    ("nvml.99999999.temperature", Datum::Number(1.0)),
                ],
            ),
            record(
                "sm-sdc",
                &[
                    ("gpu.1.name", text("H200\u{1b}[2J")),
                    ("gpu.1.health", text("temperature=66 power=600.5 clock=1980000000")),
                    ("gpu.1.sm.ffma.8.1", text("0:a:100 1:a:100 2:b:100 3:a:110 4:a:100")),
                ],
            ),
        ];
        let finding = NodeFindings {
            node: "n1".into(),
            findings: vec![
                finding(
                    Component::Gpus,
                    State::Warn,
                    "n1: gpu-remap: GPU 0: 11 replaced rows; GPU 1: 12 replaced rows",
                ),
                finding(Component::Gpu(1), State::Fail, "n1: sm-sdc: GPU 1: multiprocessor 2 computes wrong bits"),
            ],
            ..NodeFindings::default()
        };
        let rows = rows(&records, &finding);
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert_eq!((rows[0].state, rows[0].temperature, rows[0].sms.len()), (State::Warn, Some(40.0), 0));
        let one = &rows[1];
        assert_eq!((one.state, one.temperature, one.power), (State::Fail, Some(66.0), Some(600.5)));
        assert_eq!(one.links, Some((17.0, 18.0)));
        assert_eq!(*one.sms, [Sm::Good, Sm::Good, Sm::Wrong, Sm::Slow, Sm::Good]);
        assert_eq!(*one.said, ["multiprocessor 2 computes wrong bits", "12 replaced rows"]);
        assert!(!one.name.contains('\u{1b}'));
    }
}

//! What is told of a GPU at rest: identity, settings, sensors, every error counter, links, and who else uses it.

use muster_wire::{Datum, Fact, Reading, Unit};

use super::source::{AT_REST, COUNTERS, HELD, PLACES, links, number, reading};
use crate::nvml::{Fabric, Handle, How, Nvml, Repair, Spares, Sram};

const TEXTS: [(&str, &str); 6] = [
    ("uuid", "nvmlDeviceGetUUID"),
    ("name", "nvmlDeviceGetName"),
    ("serial", "nvmlDeviceGetSerial"),
    ("board", "nvmlDeviceGetBoardPartNumber"),
    ("vbios", "nvmlDeviceGetVbiosVersion"),
    ("inforom", "nvmlDeviceGetInforomImageVersion"),
];
/// Speed and version of a link, as fields.
const SPEED: u32 = 164;
const VERSION: u32 = 166;

/// Everything that is told of GPU number `index` at rest.
pub fn facts(nvml: &Nvml, index: u32) -> Vec<Fact> {
    let gpu = match nvml.at(index) {
        Reading::Value(gpu) => gpu,
        other => {
            return vec![number(format!("nvml.{index}.temperature"), reading(other, |_| 0.0), Unit::Celsius)];
        }
    };
    let mut told = Told { index, facts: Vec::new() };
    for (name, call) in TEXTS {
        told.text(name, nvml.text(gpu, call));
    }
    for source in AT_REST.iter().chain(&COUNTERS).chain(&HELD) {
        told.number(source.key, source.read(nvml, gpu), source.unit);
    }
    memory(nvml, gpu, &mut told);
    nvlinks(nvml, gpu, &mut told);
    let fabric: Reading<Fabric> = nvml.told(gpu);
    // A GPU that belongs to no fabric says so with a state of its own.
    if let Some(fabric) = fabric.value().filter(|fabric| fabric.state > 0) {
        told.count("fabric.state", Reading::Value(f64::from(fabric.state)));
        told.count("fabric.status", Reading::Value(f64::from(fabric.status)));
        told.count("fabric.clique", Reading::Value(f64::from(fabric.clique)));
        told.count("fabric.degraded", Reading::Value(f64::from(u8::from(fabric.health & 3 == 1))));
    }
    let processes = nvml.processes(gpu);
    if let Some(found) = processes.value().filter(|found| !found.is_empty()) {
        told.text("processes.names", Reading::Value(names(found)));
    }
    told.count("processes", reading(processes, |found| found.len() as f64));
    told.facts
}

struct Told {
    index: u32,
    facts: Vec<Fact>,
}

impl Told {
    fn number(&mut self, name: &str, of: Reading<f64>, unit: Unit) {
        self.facts.push(number(format!("nvml.{}.{name}", self.index), of, unit));
    }

    fn count(&mut self, name: &str, of: Reading<f64>) {
        self.number(name, of, Unit::Count);
    }

    fn text(&mut self, name: &str, of: Reading<String>) {
        let key = format!("nvml.{}.{name}", self.index);
        self.facts.push(Fact { key, reading: reading(of, Datum::Text), unit: None });
    }
}

/// Errors by place, replaced rows with what is left to replace them, retired pages, on-chip memory, waiting repairs.
fn memory(nvml: &Nvml, gpu: Handle, told: &mut Told) {
    for (kind, what) in ["corrected", "uncorrected"].into_iter().enumerate() {
        for (ever, since) in ["", ".ever"].into_iter().enumerate() {
            for (place, id) in PLACES {
                let how = How::WideOfThree([kind as u32, ever as u32, id]);
                let errors = nvml.number(gpu, "nvmlDeviceGetMemoryErrorCounter", how);
                // Few GPUs count in more than two places.
                if errors != Reading::Absent {
                    told.count(&format!("ecc.{what}.{place}{since}"), reading(errors, |n| n as f64));
                }
            }
        }
    }
    let rows = nvml.remapped(gpu);
    for (name, at) in [("remap.corrected", 0), ("remap.uncorrected", 1), ("remap.pending", 2), ("remap.failed", 3)] {
        let rows = reading(rows.clone(), |rows| f64::from(rows[at]));
        // Older drivers tell the first two as fields only.
        if at > 1 || rows != Reading::Absent {
            let key = format!("nvml.{}.{name}", told.index);
            told.facts.retain(|fact| fact.key != key);
            told.count(name, rows);
        }
    }
    if let Reading::Value(Spares(banks)) = nvml.told(gpu) {
        for (name, banks) in ["all", "most", "some", "few", "none"].into_iter().zip(banks) {
            told.count(&format!("spares.{name}"), Reading::Value(f64::from(banks)));
        }
    }
    for (name, cause) in [("retired.single", 0), ("retired.double", 1)] {
        told.count(name, reading(nvml.retired(gpu, cause), f64::from));
    }
    if let Reading::Value(Sram { counts, exceeded, .. }) = nvml.told(gpu) {
        let names = [
            "parity.ever",
            "secded.ever",
            "corrected.ever",
            "parity",
            "secded",
            "corrected",
            "l2.ever",
            "sm.ever",
            "pcie.ever",
            "mcu.ever",
            "other.ever",
        ];
        for (name, errors) in names.into_iter().zip(counts) {
            told.count(&format!("sram.{name}"), Reading::Value(errors as f64));
        }
        told.count("sram.exceeded", Reading::Value(f64::from(exceeded)));
    }
    told.count("sram.unique", reading(nvml.unique(gpu), f64::from));
    if let Reading::Value(Repair { channel, tpc, .. }) = nvml.told(gpu) {
        told.count("repair.channel", Reading::Value(f64::from(channel)));
        told.count("repair.tpc", Reading::Value(f64::from(tpc)));
    }
}

fn nvlinks(nvml: &Nvml, gpu: Handle, told: &mut Told) {
    let links = nvml.links(gpu);
    let count = links.len() as u32;
    let up = links.iter().filter(|up| **up).count();
    for (name, of) in [("nvlink.links", links.len()), ("nvlink.up", up)] {
        told.count(name, if links.is_empty() { Reading::Absent } else { Reading::Value(of as f64) });
    }
    if links.is_empty() {
        return;
    }
    let down: Vec<String> = (0..count).filter(|link| !links[*link as usize]).map(|link| link.to_string()).collect();
    if !down.is_empty() {
        told.text("nvlink.down", Reading::Value(down.join(" ")));
    }
    let least = |field| {
        let alive = (0..count).filter(|link| links[*link as usize]);
        alive.filter_map(|link| nvml.number(gpu, "", How::Field(field, link)).value().copied()).min()
    };
    let known = |least: Option<u64>| least.map_or(Reading::Absent, |least| Reading::Value(least as f64));
    told.number("nvlink.speed", reading(known(least(SPEED)), |megabytes| megabytes * 1e6), Unit::BytesPerSec);
    told.count("nvlink.version", known(least(VERSION)));
    let (sums, by_link) = self::links(nvml, gpu, count);
    for (name, errors) in sums {
        told.count(name, Reading::Value(errors));
    }
    if !by_link.is_empty() {
        told.text("nvlink.errors", Reading::Value(by_link));
    }
}

/// `1234 python, 99 train`: a few processes by number and, where this host knows it, name.
pub(super) fn names(pids: &[u32]) -> String {
    let name = |pid: &u32| {
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        format!("{pid} {}", comm.trim()).trim_end().to_owned()
    };
    pids.iter().take(4).map(name).collect::<Vec<_>>().join(", ")
}

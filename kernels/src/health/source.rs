//! Which numbers the management library is asked for, by which call, and what one of each is in its unit.

use muster_wire::{Datum, Fact, Reading, Unit};

use crate::nvml::{Handle, How, Nvml};

/// One number, its call, and what one of it is in the unit.
#[derive(Clone, Copy)]
pub struct Source {
    /// Its name.
    pub(super) key: &'static str,
    pub(super) call: &'static str,
    pub(super) how: How,
    pub(super) scale: f64,
    pub(super) unit: Unit,
}

const fn source(key: &'static str, call: &'static str, how: How, scale: f64, unit: Unit) -> Source {
    Source { key, call, how, scale, unit }
}

const fn count(key: &'static str, call: &'static str, how: How) -> Source {
    source(key, call, how, 1.0, Unit::Count)
}

/// A field by its number in `nvml.h`.
const fn field(key: &'static str, id: u32) -> Source {
    count(key, "", How::Field(id, 0))
}

/// Time for which clocks were held down for one reason, in milliseconds.
const fn held(key: &'static str, id: u32) -> Source {
    source(key, "", How::Field(id, 0), 1e-6, Unit::Count)
}

pub const TEMPERATURE: Source = source("temperature", "nvmlDeviceGetTemperature", How::NarrowOf(0), 1.0, Unit::Celsius);
pub const MEMORY_TEMPERATURE: Source = source("temperature.memory", "", How::Field(82, 0), 1.0, Unit::Celsius);
pub const POWER: Source = source("power", "nvmlDeviceGetPowerUsage", How::Narrow, 1e-3, Unit::Watts);
pub const CLOCK: Source = source("clock.sm", "nvmlDeviceGetClockInfo", How::NarrowOf(1), 1e6, Unit::Hertz);
/// A bit for every reason why clocks are below their most.
pub const REASONS: Source = count("throttle", "nvmlDeviceGetCurrentClocksThrottleReasons", How::Wide);
pub(super) const GENERATION: Source = count("pcie.generation", "nvmlDeviceGetCurrPcieLinkGeneration", How::Narrow);
pub(super) const WIDTH: Source = count("pcie.width", "nvmlDeviceGetCurrPcieLinkWidth", How::Narrow);

const ECC: &str = "nvmlDeviceGetTotalEccErrors";

/// What is read at rest, beside counters, texts, records and links.
pub(super) const AT_REST: [Source; 23] = [
    TEMPERATURE,
    MEMORY_TEMPERATURE,
    POWER,
    source("power.limit", "nvmlDeviceGetEnforcedPowerLimit", How::Narrow, 1e-3, Unit::Watts),
    source("power.limit.usual", "nvmlDeviceGetPowerManagementDefaultLimit", How::Narrow, 1e-3, Unit::Watts),
    CLOCK,
    source("clock.sm.most", "nvmlDeviceGetMaxClockInfo", How::NarrowOf(1), 1e6, Unit::Hertz),
    source("clock.sm.application", "nvmlDeviceGetApplicationsClock", How::NarrowOf(1), 1e6, Unit::Hertz),
    source("clock.memory", "nvmlDeviceGetClockInfo", How::NarrowOf(2), 1e6, Unit::Hertz),
    source("clock.memory.most", "nvmlDeviceGetMaxClockInfo", How::NarrowOf(2), 1e6, Unit::Hertz),
    REASONS,
    count("ecc.mode", "nvmlDeviceGetEccMode", How::Pair),
    count("mig", "nvmlDeviceGetMigMode", How::Pair),
    count("persistence", "nvmlDeviceGetPersistenceMode", How::Narrow),
    count("compute.mode", "nvmlDeviceGetComputeMode", How::Narrow),
    count("ecc.corrected.ever", ECC, How::WideOf(0, 1)),
    count("ecc.uncorrected.ever", ECC, How::WideOf(1, 1)),
    GENERATION,
    count("pcie.generation.most", "nvmlDeviceGetMaxPcieLinkGeneration", How::Narrow),
    WIDTH,
    count("pcie.width.most", "nvmlDeviceGetMaxPcieLinkWidth", How::Narrow),
    count("retired.pending", "nvmlDeviceGetRetiredPagesPendingStatus", How::Narrow),
    // 0 none, 1 reset, 2 reboot, 3 drain peers, 4 drain and reset, 5 recover the IMEX domain.
    field("recovery", 230),
];

/// Errors since the driver was loaded.
pub const ECC_CORRECTED: Source = count("ecc.corrected", ECC, How::WideOf(0, 0));
pub const ECC_LOST: Source = count("ecc.uncorrected", ECC, How::WideOf(1, 0));

/// What only ever grows: told at rest, and by how much it grew over a benchmark.
pub(super) const COUNTERS: [Source; 13] = [
    ECC_CORRECTED,
    ECC_LOST,
    field("remap.corrected", 142),
    field("remap.uncorrected", 143),
    count("pcie.replays", "nvmlDeviceGetPcieReplayCounter", How::Narrow),
    field("pcie.recoveries", 169),
    field("pcie.correctable", 173),
    field("pcie.naks", 174),
    field("pcie.bad-tlp", 176),
    field("pcie.nonfatal", 179),
    field("pcie.fatal", 180),
    field("pcie.lcrc", 182),
    source("energy.kj", "nvmlDeviceGetTotalEnergyConsumption", How::Wide, 1e-6, Unit::Count),
];

/// Milliseconds since the driver was loaded for which clocks were held down: for power, for heat, by the board, for
/// reliability; for heat by hardware, and by the power supply's brake, on newer drivers.
pub(super) const HELD: [Source; 6] = [
    held("held.power", 74),
    held("held.heat", 75),
    held("held.board", 77),
    held("held.reliability", 79),
    held("held.hardware", 270),
    held("held.brake", 271),
];

/// Errors of one NVLink. Generations before Blackwell count the first three, it the last three.
pub(super) const LINK_COUNTERS: [(&str, u32); 6] = [
    ("nvlink.replays", 161),
    ("nvlink.recoveries", 162),
    ("nvlink.crc", 163),
    ("nvlink.retrained", 213),
    ("nvlink.lost", 214),
    ("nvlink.symbols", 221),
];

/// Parts of memory whose errors are counted apart, as `nvml.h` numbers them.
pub(super) const PLACES: [(&str, u32); 7] =
    [("l1", 0), ("l2", 1), ("dram", 2), ("registers", 3), ("shared", 5), ("cbu", 6), ("sram", 7)];

impl Source {
    /// Its value on a GPU, in its unit.
    pub fn read(&self, nvml: &Nvml, gpu: Handle) -> Reading<f64> {
        match nvml.number(gpu, self.call, self.how) {
            // What it cannot tell some functions say with all bits set.
            Reading::Value(number) if number == u64::MAX || number == u64::from(u32::MAX) => Reading::Absent,
            other => reading(other, |number| number as f64 * self.scale),
        }
    }
}

pub(super) fn reading<T, U>(of: Reading<T>, map: impl FnOnce(T) -> U) -> Reading<U> {
    match of {
        Reading::Value(value) => Reading::Value(map(value)),
        Reading::Absent => Reading::Absent,
        Reading::Denied => Reading::Denied,
        Reading::Failed(why) => Reading::Failed(why),
    }
}

pub(super) fn number(key: String, of: Reading<f64>, unit: Unit) -> Fact {
    Fact { key, reading: reading(of, Datum::Number), unit: Some(unit) }
}

/// Sums of each of [`LINK_COUNTERS`] over all links, where any link tells it, and the links that have counted something.
pub(super) fn links(nvml: &Nvml, gpu: Handle, count: u32) -> (Vec<(&'static str, f64)>, String) {
    let mut sums = Vec::new();
    let mut by_link: Vec<Vec<String>> = vec![Vec::new(); count as usize];
    for (name, id) in LINK_COUNTERS {
        let read = |link| nvml.number(gpu, "", How::Field(id, link)).value().copied();
        let found: Vec<(u32, u64)> = (0..count).filter_map(|link| Some((link, read(link)?))).collect();
        if found.is_empty() {
            continue;
        }
        sums.push((name, found.iter().map(|(_, errors)| *errors as f64).sum()));
        for (link, errors) in found.into_iter().filter(|(_, errors)| *errors > 0) {
            let name = name.trim_start_matches("nvlink.");
            by_link[link as usize].push(format!("{name}={errors}"));
        }
    }
    let told = by_link.iter().enumerate().filter(|(_, errors)| !errors.is_empty());
    let told: Vec<String> = told.map(|(link, errors)| format!("{link}:{}", errors.join(","))).collect();
    (sums, told.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_triage_reads_twice_are_counters_by_their_names_here() {
        let counted: Vec<&str> = COUNTERS.iter().chain(&HELD).map(|source| source.key).collect();
        for name in muster_wire::GPU_COUNTERS {
            let of_link = LINK_COUNTERS.iter().any(|(link, _)| *link == name);
            assert!(of_link || counted.contains(&name), "{name}");
        }
    }
}

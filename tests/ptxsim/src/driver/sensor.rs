//! What the management library shows of a good device, and what the settings change about it.

use std::collections::BTreeMap;

/// One sensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sensor {
    /// What it shows.
    pub value: u64,
    /// By how much that grows each time it is asked.
    pub step: u64,
    /// What the call answers instead, as `nvml.h` numbers results.
    pub code: i32,
}

/// A good device under load: an H200 as its data sheet has it, powers in milliwatts, clocks in MHz, links in MB/s, times in
/// nanoseconds, performance counters by their number, in percent and MiB/s. What is not among them, such as retired pages and repairs, this card does not tell.
const GOOD: [(&str, u64); 58] = [
    ("temperature", 58),
    ("temperature_memory", 71),
    ("power", 612_000),
    ("power_limit", 700_000),
    ("power_usual", 700_000),
    ("energy", 0),
    ("clock", 1980),
    ("clock_most", 1980),
    ("clock_application", 1980),
    ("clock_memory", 3201),
    ("throttle", 0),
    ("ecc_mode", 1),
    ("mig", 0),
    ("persistence", 1),
    ("compute_mode", 0),
    ("ecc_corrected", 0),
    ("ecc_uncorrected", 0),
    ("ecc_corrected_dram", 0),
    ("ecc_corrected_sram", 0),
    ("ecc_uncorrected_dram", 0),
    ("ecc_uncorrected_sram", 0),
    ("remap_corrected", 0),
    ("remap_uncorrected", 0),
    ("remap_pending", 0),
    ("remap_failed", 0),
    ("spares_all", 6144),
    ("sram_exceeded", 0),
    ("pcie_generation", 5),
    ("pcie_generation_most", 5),
    ("pcie_width", 16),
    ("pcie_width_most", 16),
    ("replays", 0),
    ("pcie_recoveries", 0),
    ("pcie_correctable", 0),
    ("pcie_naks", 0),
    ("pcie_bad_tlp", 0),
    ("pcie_nonfatal", 0),
    ("pcie_fatal", 0),
    ("pcie_lcrc", 0),
    ("held_power", 0),
    ("held_heat", 0),
    ("held_board", 0),
    ("held_reliability", 0),
    ("nvlinks", 18),
    ("nvlinks_down", 0),
    ("nvlink_speed", 26_562),
    ("fabric_state", 3),
    ("recovery", 0),
    ("utilisation", 98),
    ("memory_used_pct", 80),
    ("gpm_1", 96),
    ("gpm_2", 91),
    ("gpm_5", 42),
    ("gpm_10", 55),
    ("gpm_20", 2_000),
    ("gpm_21", 1_000),
    ("gpm_60", 50_000),
    ("gpm_61", 50_000),
];

/// The sensors of one device with what `changes` says of it.
pub(super) fn sensors<'a>(changes: impl Iterator<Item = (&'a String, &'a Option<Sensor>)>) -> BTreeMap<String, Sensor> {
    let good = |(name, value): &(&str, u64)| ((*name).to_owned(), Sensor { value: *value, ..Sensor::default() });
    let mut sensors: BTreeMap<String, Sensor> = GOOD.iter().map(good).collect();
    for (name, shows) in changes {
        match shows {
            Some(sensor) => drop(sensors.insert(name.clone(), *sensor)),
            None => drop(sensors.remove(name)),
        }
    }
    sensors
}

//! Which checks there are.

use super::{
    Check, cpu, disk, gpu, gpu_load, gpu_rest, host, infiniband, kernel_log, memory, nic, pcie, process, time,
};

/// Areas in the order of lists, each with its checks.
const ALL: &[(&str, &[Check])] = &[
    ("host", host::CHECKS),
    ("cpu", cpu::CHECKS),
    ("memory", memory::CHECKS),
    ("nic", nic::CHECKS),
    ("time", time::CHECKS),
    ("disk", disk::CHECKS),
    ("process", process::CHECKS),
    ("kernel-log", kernel_log::CHECKS),
    ("infiniband", infiniband::CHECKS),
    ("pcie", pcie::CHECKS),
    ("gpu", gpu::CHECKS),
    ("gpu", gpu_rest::CHECKS),
    ("gpu", gpu_load::CHECKS),
];

/// Names of the areas; each names all its checks.
pub const AREAS: &[&str] =
    &["host", "cpu", "memory", "nic", "time", "disk", "process", "kernel-log", "infiniband", "pcie", "gpu"];

/// Every check, by area.
pub fn checks() -> impl Iterator<Item = &'static Check> {
    ALL.iter().flat_map(|(_, checks)| *checks)
}

/// The check called `id`.
#[must_use]
pub fn check(id: &str) -> Option<&'static Check> {
    checks().find(|check| check.id == id)
}

/// The check called `name`, or every check of the area of that name; none when there is neither.
#[must_use]
pub fn named(name: &str) -> Vec<&'static Check> {
    checks().filter(|check| check.id == name || check.area == name).collect()
}

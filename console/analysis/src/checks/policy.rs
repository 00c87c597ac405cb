//! Which limits the checks hold nodes to, as data: defaults here, overridden in a playbook's check step.

use std::collections::{BTreeMap, BTreeSet};

/// A limit that a playbook may move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Name in playbooks.
    pub name: &'static str,
    /// Value where nobody says otherwise.
    pub default: f64,
    /// Meaning and unit.
    pub about: &'static str,
}

const fn limit(name: &'static str, default: f64, about: &'static str) -> Limit {
    Limit { name, default, about }
}

/// Every limit. Defaults are those of the tools named by the checks; none was measured on the fleet at hand.
pub const LIMITS: &[Limit] = &[
    limit("memory_tolerance", 0.03, "share by which memory may differ from what is expected (AzNHC)"),
    limit("edac_corrected", 10.0, "corrected memory errors since boot"),
    limit("free_huge_share", 0.10, "share of free memory in blocks of 2 MB and more, at least"),
    limit("filesystem_warn", 0.85, "share of a file system in use before it is a warning (GCM: 0.80)"),
    limit("filesystem_fail", 0.95, "share of a file system in use before the node fails (GCM: 0.85; imbue: 0.95)"),
    limit("zombies", 10.0, "zombies"),
    limit("memlock_gib", 16.0, "GiB that a login may lock in memory, at least (AWS)"),
    limit("kernel_log_s", 86_400.0, "seconds for which an event of the kernel's log counts (AzNHC: 2 h)"),
    limit("ib_link_downed", 10.0, "times an InfiniBand port may lose its link before the node fails (soperator#481)"),
    limit("ib_errors", 100.0, "errors of an InfiniBand port before the node fails (GCM)"),
    limit("pcie_corrected", 1000.0, "corrected PCIe errors of one device since boot"),
    limit("gpu_remapped", 10.0, "rows of a GPU's memory that were replaced (SuperBench paper, table 1)"),
    limit("gpu_sram_uncorrected", 0.0, "uncorrected errors of a GPU's on-chip memory since it was made (NVIDIA)"),
    limit("gpu_retired", 60.0, "retired pages of a GPU's memory (NVIDIA)"),
    limit(
        "gpu_throttled_share",
        0.01,
        "share of a benchmark for which heat or the power supply held a GPU's clocks down",
    ),
    limit("gpu_nvlink_errors", 100.0, "CRC errors and replays of a GPU's NVLinks during one benchmark (DCGM)"),
    limit("gpu_warm_c", 85.0, "temperature of a GPU under load before it is a warning, °C (VESSL)"),
    limit("gpu_hot_c", 95.0, "temperature of a GPU under load before the node fails, °C (VESSL)"),
    limit("gpu_ecc_corrected", 10_000.0, "corrected errors of a GPU's memory during one benchmark (AzNHC)"),
    limit("gpu_replays", 80.0, "PCIe replays of a GPU during one benchmark (DCGM)"),
    limit("nic_error_share", 1e-6, "errors per packet of an interface since boot"),
    limit("nic_errors", 100.0, "errors of an interface below which their share says nothing"),
    limit("carrier_changes", 10.0, "times a link may have come and gone since boot (soperator#481)"),
    limit("clock_warn_s", 0.1, "seconds by which a clock may be off before it is a warning"),
    limit("clock_fail_s", 1.0, "seconds by which a clock may be off before the node fails"),
    limit("booted_s", 600.0, "seconds since boot, at least (GCM)"),
    limit("majority", 2.0 / 3.0, "share of a group that makes a clear majority"),
];

/// What may be expected of a node, by a label of the inventory or by the playbook.
pub const EXPECTATIONS: &[(&str, &str)] = &[
    ("sockets", "CPU sockets"),
    ("cores", "CPU cores, over all sockets"),
    ("cpus", "logical CPUs"),
    ("numa_nodes", "NUMA nodes"),
    ("memory_gib", "memory, GiB"),
    ("dimms", "memory modules"),
    ("nvme", "NVMe disks"),
    ("hcas", "InfiniBand or RoCE adapters"),
    ("ib_rate_gbit", "rate of every InfiniBand port, Gb/s"),
    ("gpus", "GPUs"),
];

/// The limits and expectations in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    limits: BTreeMap<String, f64>,
    expect: BTreeMap<String, f64>,
    demand: BTreeSet<String>,
}

impl Policy {
    /// The limit called `name`.
    ///
    /// # Panics
    /// When there is no such limit: a check that asks for one that does not exist is a programming error.
    #[must_use]
    pub fn limit(&self, name: &str) -> f64 {
        let default = LIMITS.iter().find(|limit| limit.name == name);
        let default = default.unwrap_or_else(|| panic!("no limit is called {name}")).default;
        self.limits.get(name).copied().unwrap_or(default)
    }

    /// Moves a limit; a name that does not exist changes nothing.
    pub fn set_limit(&mut self, name: &str, value: f64) {
        if LIMITS.iter().any(|limit| limit.name == name) {
            self.limits.insert(name.to_owned(), value);
        }
    }

    /// What is expected of every node.
    #[must_use]
    pub fn expected(&self, name: &str) -> Option<f64> {
        self.expect.get(name).copied()
    }

    /// Expects `value` of every node; a name that does not exist changes nothing.
    pub fn expect(&mut self, name: &str, value: f64) {
        if EXPECTATIONS.iter().any(|(known, _)| *known == name) {
            self.expect.insert(name.to_owned(), value);
        }
    }

    /// Wants an answer of the check `id` from every login.
    pub fn demand(&mut self, id: &str) {
        self.demand.insert(id.to_owned());
    }

    /// Whether the check `id` must be answered.
    #[must_use]
    pub fn demands(&self, id: &str) -> bool {
        self.demand.contains(id)
    }

    /// Every check that must be answered.
    pub fn demanded(&self) -> impl Iterator<Item = &str> {
        self.demand.iter().map(String::as_str)
    }

    /// What differs from the defaults: limits, then expectations.
    #[must_use]
    pub fn changes(&self) -> [&BTreeMap<String, f64>; 2] {
        [&self.limits, &self.expect]
    }
}

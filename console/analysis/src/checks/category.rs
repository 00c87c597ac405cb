//! What broke where a check fails, in the words of the incident log.

use muster_wire::Category;

use super::Check;

/// Checks whose area alone would say something else.
const OWN: &[(Category, &[&str])] = &[
    (Category::Gpu, &["xid"]),
    (Category::NvLink, &["sxid", "gpu-nvlink", "gpu-nvlink-errors", "gpu-fabric"]),
    (Category::Pcie, &["pcie-log-uncorrected", "pcie-log-corrected", "gpu-pcie-load"]),
    (Category::Network, &["mlx5-health", "link-down-log"]),
    (Category::CpuMemory, &["machine-check"]),
    (Category::Disk, &["nvme-timeout", "disk-error"]),
    (Category::PowerThermal, &["thermal-log", "cpu-throttled", "gpu-throttle", "gpu-temperature"]),
    (
        Category::Software,
        &[
            "microcode-consistent",
            "cpu-governor",
            "cpu-quota",
            "numa-balancing",
            "swap",
            "hugepages-consistent",
            "memory-fragmentation",
            "filesystem-use",
            "filesystem-inodes",
            "fstab-mounted",
            "acs",
            "iommu",
            "gpu-driver",
            "gpu-device-files",
            "gpu-driver-consistent",
            "gpu-settings-consistent",
            "gpu-idle",
            "nouveau",
            "peermem",
        ],
    ),
];

impl Check {
    /// What is broken where it does not pass.
    #[must_use]
    pub fn category(&self) -> Category {
        let own = OWN.iter().find(|(_, ids)| ids.contains(&self.id));
        own.map_or_else(|| of_area(self.area), |(category, _)| *category)
    }
}

fn of_area(area: &str) -> Category {
    match area {
        "cpu" | "memory" => Category::CpuMemory,
        "nic" | "infiniband" => Category::Network,
        "disk" => Category::Disk,
        "pcie" => Category::Pcie,
        "gpu" => Category::Gpu,
        _ => Category::Software,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{check, checks};

    #[test]
    fn every_check_says_what_is_broken_and_every_name_in_the_table_is_a_check() {
        assert!(checks().all(|check| check.category() != Category::Unknown));
        for id in OWN.iter().flat_map(|(_, ids)| *ids) {
            assert!(check(id).is_some(), "{id}");
        }
        for (id, category) in [
            ("gpu-ecc", Category::Gpu),
            ("xid", Category::Gpu),
            ("gpu-nvlink", Category::NvLink),
            ("pcie-link", Category::Pcie),
            ("ib-port", Category::Network),
            ("memory-uncorrected", Category::CpuMemory),
            ("raid-whole", Category::Disk),
            ("gpu-throttle", Category::PowerThermal),
            ("kernel-oops", Category::Software),
            ("time-offset", Category::Software),
        ] {
            assert_eq!(check(id).unwrap().category(), category, "{id}");
        }
    }
}

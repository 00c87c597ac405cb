//! What broke, in the words of an incident history.

use serde::{Deserialize, Serialize};

use crate::ComponentKind;

/// What broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// GPU or its memory.
    #[serde(alias = "gpu_hbm", alias = "hbm")]
    Gpu,
    /// Link between GPUs of a node.
    #[serde(rename = "nvlink")]
    NvLink,
    /// PCI Express.
    Pcie,
    /// Network card, cable, switch port.
    Network,
    /// CPU or main memory.
    CpuMemory,
    /// Local storage.
    Disk,
    /// Power supply, cooling.
    PowerThermal,
    /// Driver, kernel, service.
    Software,
    /// Not said.
    #[serde(other)]
    Unknown,
}

impl Category {
    /// All, in the order of features.
    pub const ALL: [Self; 9] = [
        Self::Gpu,
        Self::NvLink,
        Self::Pcie,
        Self::Network,
        Self::CpuMemory,
        Self::Disk,
        Self::PowerThermal,
        Self::Software,
        Self::Unknown,
    ];

    /// Name in files and features.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::NvLink => "nvlink",
            Self::Pcie => "pcie",
            Self::Network => "network",
            Self::CpuMemory => "cpu_memory",
            Self::Disk => "disk",
            Self::PowerThermal => "power_thermal",
            Self::Software => "software",
            Self::Unknown => "unknown",
        }
    }

    /// The category of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.name() == name)
    }

    /// What a defect of such a component is.
    #[must_use]
    pub const fn of(kind: ComponentKind) -> Self {
        match kind {
            ComponentKind::Cpu | ComponentKind::Core | ComponentKind::Memory => Self::CpuMemory,
            ComponentKind::Disk => Self::Disk,
            ComponentKind::Nic | ComponentKind::IbPort => Self::Network,
            ComponentKind::Gpu | ComponentKind::Gpus => Self::Gpu,
            ComponentKind::GpuLink => Self::NvLink,
            ComponentKind::Application | ComponentKind::Node => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_category_has_a_name_of_its_own_and_is_read_back() {
        let names = Category::ALL.map(Category::name);
        let all = ["gpu", "nvlink", "pcie", "network", "cpu_memory", "disk", "power_thermal", "software", "unknown"];
        assert_eq!(names, all);
        for category in Category::ALL {
            assert_eq!(Category::named(category.name()), Some(category));
        }
        assert_eq!(Category::named("cosmic rays"), None);
    }
}

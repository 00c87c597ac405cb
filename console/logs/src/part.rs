//! Which part of a machine, or of what surrounds it, a line speaks of.

use muster_wire::{Category, ComponentKind};
use serde::{Deserialize, Serialize};

/// Which part a line speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// A GPU.
    Gpu,
    /// Memory of a GPU.
    GpuMemory,
    /// NVLink between GPUs.
    GpuLink,
    /// An NVSwitch, and what manages it.
    GpuSwitch,
    /// Driver of a GPU or adapter.
    Driver,
    /// PCI Express.
    Pcie,
    /// A network adapter.
    Nic,
    /// A port or cable.
    IbPort,
    /// What lies between machines, as far as the line can say.
    Network,
    /// A local disk and its file system.
    Disk,
    /// Storage over the network.
    Storage,
    /// Main memory: its hardware.
    Memory,
    /// A processor.
    Cpu,
    /// Power supply.
    Power,
    /// Temperature, fans.
    Cooling,
    /// The machine as a whole, its kernel and services.
    Node,
    /// The program that runs, and its libraries.
    Program,
    /// Settings and environment: interfaces, limits, versions.
    Settings,
    /// The scheduler, and whoever ends jobs.
    Scheduler,
    /// The line does not say.
    Unknown,
}

impl Part {
    /// Name in rule files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::GpuMemory => "gpu-memory",
            Self::GpuLink => "gpu-link",
            Self::GpuSwitch => "gpu-switch",
            Self::Driver => "driver",
            Self::Pcie => "pcie",
            Self::Nic => "nic",
            Self::IbPort => "ib-port",
            Self::Network => "network",
            Self::Disk => "disk",
            Self::Storage => "storage",
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Power => "power",
            Self::Cooling => "cooling",
            Self::Node => "node",
            Self::Program => "program",
            Self::Settings => "settings",
            Self::Scheduler => "scheduler",
            Self::Unknown => "unknown",
        }
    }

    /// The kind of component of a node that is meant; `None` for what is no part of a node.
    #[must_use]
    pub const fn component(self) -> Option<ComponentKind> {
        match self {
            Self::Gpu | Self::GpuMemory => Some(ComponentKind::Gpu),
            Self::GpuLink => Some(ComponentKind::GpuLink),
            Self::GpuSwitch => Some(ComponentKind::Gpus),
            Self::Nic => Some(ComponentKind::Nic),
            Self::IbPort => Some(ComponentKind::IbPort),
            Self::Disk => Some(ComponentKind::Disk),
            Self::Memory => Some(ComponentKind::Memory),
            Self::Cpu => Some(ComponentKind::Cpu),
            Self::Driver | Self::Pcie | Self::Power | Self::Cooling | Self::Node => Some(ComponentKind::Node),
            Self::Program => Some(ComponentKind::Application),
            Self::Network | Self::Storage | Self::Settings | Self::Scheduler | Self::Unknown => None,
        }
    }

    /// What an incident of this part is filed under.
    #[must_use]
    pub const fn incident(self) -> Category {
        match self {
            Self::Gpu | Self::GpuMemory => Category::Gpu,
            Self::GpuLink | Self::GpuSwitch => Category::NvLink,
            Self::Pcie => Category::Pcie,
            Self::Nic | Self::IbPort | Self::Network => Category::Network,
            Self::Memory | Self::Cpu => Category::CpuMemory,
            Self::Disk => Category::Disk,
            Self::Power | Self::Cooling => Category::PowerThermal,
            Self::Driver | Self::Node | Self::Storage => Category::Software,
            Self::Program | Self::Settings | Self::Scheduler | Self::Unknown => Category::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_written_by_its_name_is_a_component_of_the_node_and_files_its_incidents() {
        use ComponentKind as Of;
        for (part, component, incident) in [
            (Part::Gpu, Some(Of::Gpu), Category::Gpu),
            (Part::GpuMemory, Some(Of::Gpu), Category::Gpu),
            (Part::GpuLink, Some(Of::GpuLink), Category::NvLink),
            (Part::GpuSwitch, Some(Of::Gpus), Category::NvLink),
            (Part::Driver, Some(Of::Node), Category::Software),
            (Part::Pcie, Some(Of::Node), Category::Pcie),
            (Part::Nic, Some(Of::Nic), Category::Network),
            (Part::IbPort, Some(Of::IbPort), Category::Network),
            (Part::Network, None, Category::Network),
            (Part::Disk, Some(Of::Disk), Category::Disk),
            (Part::Storage, None, Category::Software),
            (Part::Memory, Some(Of::Memory), Category::CpuMemory),
            (Part::Cpu, Some(Of::Cpu), Category::CpuMemory),
            (Part::Power, Some(Of::Node), Category::PowerThermal),
            (Part::Cooling, Some(Of::Node), Category::PowerThermal),
            (Part::Node, Some(Of::Node), Category::Software),
            (Part::Program, Some(Of::Application), Category::Unknown),
            (Part::Settings, None, Category::Unknown),
            (Part::Scheduler, None, Category::Unknown),
            (Part::Unknown, None, Category::Unknown),
        ] {
            assert_eq!(serde_json::to_value(part).unwrap(), part.name());
            assert_eq!((part.component(), part.incident()), (component, incident), "{part:?}");
        }
    }
}

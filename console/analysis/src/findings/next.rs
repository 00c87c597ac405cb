//! What to do about a slow component.

use muster_wire::ComponentKind;

/// The next step for a component that is slower than its peers.
pub(super) const fn for_slow(kind: ComponentKind) -> &'static str {
    match kind {
        ComponentKind::Cpu | ComponentKind::Core => {
            "check clocks and throttling (cpupower frequency-info, turbostat), cgroup limits and the BIOS power profile"
        }
        ComponentKind::Memory => {
            "check that all DIMMs are seen at full speed (dmidecode -t memory) and the ECC counters (edac-util)"
        }
        ComponentKind::Disk => {
            "check the drive (smartctl -a, nvme smart-log), the PCIe link of the controller, and other users of the disk"
        }
        ComponentKind::Nic | ComponentKind::IbPort => {
            "check link speed and errors (ethtool, ibstat), cable and switch port, then run muster pairs"
        }
        ComponentKind::Gpu | ComponentKind::Gpus => {
            "check throttle reasons, clocks, temperature and ECC (nvidia-smi -q)"
        }
        ComponentKind::GpuLink => {
            "check NVLink errors and PCIe link width of both GPUs (nvidia-smi nvlink -s, nvidia-smi -q)"
        }
        ComponentKind::Application | ComponentKind::Node => "run cbd on it to find the slow component",
    }
}

/// The next step where nothing could be decided for lack of repeatability.
pub(super) const TOO_NOISY: &str = "measure again when the node is idle, or with a longer profile";
/// The next step where too few nodes can be compared.
pub(super) const TOO_FEW: &str = "add nodes of the same kind, or freeze a criterion learned from a larger fleet";
/// The next step where nodes disagree about what is normal.
pub(super) const CONTESTED: &str =
    "label the models if these are two kinds of hardware, else freeze a criterion from a fleet known to be good";
/// The next step after a doubt.
pub(super) const AGAIN: &str = "measure again";
/// The next step where all nodes are slower than before.
pub(super) const WHOLE_RUN: &str =
    "find out what changed for all nodes: firmware, driver, kernel, power limit, cooling";

//! Which exporter's name is which of our metrics?
//!
//! One table. What several devices of a node add up to is as for live nodes: counts add up, the busiest disk and the hottest sensor stand for all;
//! of GPUs, levels are averaged and traffic adds up, and beside a mean the worst GPU has a metric of its own.

use std::collections::BTreeMap;

use muster_wire::watched;

use super::who;
use Over::{Each, Least, Mean, Most, Share, Sum};
use Role::{All, Free, Used};

/// How devices become one value of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// They add up.
    Sum,
    /// They add up, and are divided by how many different first labels there are: time of a CPU becomes time of the node.
    Each,
    /// Their mean.
    Mean,
    /// The largest.
    Most,
    /// The smallest.
    Least,
    /// Percent that is used, from what is used, free and all.
    Share,
}

impl Over {
    /// Whether a missing device makes it wrong.
    pub(super) const fn needs_all(self) -> bool {
        matches!(self, Sum | Each | Share)
    }
}

/// What a series is of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Used,
    Free,
    All,
}

/// What a name is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    /// The exporter's name; `*` stands for anything.
    name: &'static str,
    /// Our name.
    pub(super) metric: &'static str,
    /// Whether it counts up.
    pub(super) counts: bool,
    /// What one of its units is in ours.
    pub(super) factor: f64,
    pub(super) over: Over,
    pub(super) role: Role,
    /// Labels that tell the devices of a node apart.
    devices: &'static [&'static str],
    /// Whether a series without these labels is of no use, as it was summed up.
    needs: bool,
    /// Values that one of these labels may have; a `*` at its end stands for anything.
    only: Option<(usize, &'static [&'static str])>,
    skips: Skips,
}

/// Devices that lie on others, so that they would count twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Skips {
    Nothing,
    Nics,
    Disks,
}

const GPU: &[&str] = &["gpu", "UUID", "GPU_I_ID"];
const CPU: &[&str] = &["cpu", "mode"];
const DEVICE: &[&str] = &["device"];
const PORT: &[&str] = &["device", "port"];
const NODE: &[&str] = &[];
const BUSY: &[&str] = &["user", "nice", "system", "irq", "softirq", "steal"];
const KERNEL: &[&str] = &["system", "irq", "softirq"];

const fn level(name: &'static str, metric: &'static str, factor: f64, over: Over) -> Source {
    let (role, devices, skips) = (Used, NODE, Skips::Nothing);
    Source { name, metric, counts: false, factor, over, role, devices, needs: false, only: None, skips }
}

const fn count(name: &'static str, metric: &'static str, factor: f64) -> Source {
    Source { counts: true, ..level(name, metric, factor, Sum) }
}

impl Source {
    const fn of(self, devices: &'static [&'static str]) -> Self {
        Self { devices, ..self }
    }

    const fn role(self, role: Role) -> Self {
        Self { role, ..self }
    }

    const fn most(self) -> Self {
        Self { over: Most, ..self }
    }

    const fn only(self, label: usize, values: &'static [&'static str]) -> Self {
        Self { only: Some((label, values)), ..self }
    }

    const fn nics(self) -> Self {
        Self { devices: DEVICE, skips: Skips::Nics, ..self }
    }

    const fn disks(self) -> Self {
        Self { devices: DEVICE, skips: Skips::Disks, ..self }
    }

    /// Time of every CPU in one of these modes.
    const fn mode(metric: &'static str, modes: &'static [&'static str]) -> Self {
        let count = count("node_cpu_seconds_total", metric, 100.0).of(CPU).only(1, modes);
        Self { over: Each, needs: true, ..count }
    }

    /// Whether it takes this device.
    pub(super) fn wants(&self, device: &[String]) -> bool {
        let first = device.first().map_or("", String::as_str);
        let allowed = self.only.is_none_or(|(label, values)| {
            device.get(label).is_some_and(|device| values.iter().any(|value| fits(value, device)))
        });
        allowed
            && match self.skips {
                Skips::Nothing => true,
                Skips::Nics => !first.contains('.') && !NICS.iter().any(|kind| first.starts_with(kind)),
                Skips::Disks => !DISKS.iter().any(|kind| first.starts_with(kind)) && !is_part(first),
            }
    }
}

/// Interfaces and disks that lie on others, as the probe knows them.
const NICS: [&str; 10] = ["lo", "docker", "br", "virbr", "bond", "team", "vlan", "cali", "cilium", "flannel"];
const DISKS: [&str; 5] = ["loop", "ram", "zram", "dm-", "md"];

/// `nvme0n1p1`, `sda1`.
fn is_part(disk: &str) -> bool {
    let whole = disk.trim_end_matches(|c: char| c.is_ascii_digit());
    let nvme = disk.starts_with("nvme") || disk.starts_with("mmcblk");
    if nvme {
        whole.ends_with('p') && whole.len() < disk.len()
    } else {
        whole.len() < disk.len() && whole.starts_with(['s', 'h', 'v', 'x'])
    }
}

/// dcgm-exporter's names, then node_exporter's.
static SOURCES: [Source; 56] = [
    level("DCGM_FI_DEV_GPU_UTIL", "gpu_util_pct", 1.0, Mean).of(GPU),
    level("DCGM_FI_DEV_POWER_USAGE", "gpu_power_w", 1.0, Mean).of(GPU),
    level("DCGM_FI_DEV_GPU_TEMP", "gpu_temp_c", 1.0, Mean).of(GPU),
    level("DCGM_FI_DEV_SM_CLOCK", "gpu_clock_mhz", 1.0, Mean).of(GPU),
    level("DCGM_FI_DEV_FB_USED", "gpu_mem_used_pct", 1.0, Share).of(GPU),
    level("DCGM_FI_DEV_FB_FREE", "gpu_mem_used_pct", 1.0, Share).of(GPU).role(Free),
    level("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gr_active", 1.0, Mean).of(GPU),
    level("DCGM_FI_PROF_SM_ACTIVE", "sm_active", 1.0, Mean).of(GPU),
    level("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "tensor_active", 1.0, Mean).of(GPU),
    level("DCGM_FI_PROF_DRAM_ACTIVE", "dram_active", 1.0, Mean).of(GPU),
    level("DCGM_FI_DEV_GPU_UTIL", "gpu_util_least_pct", 1.0, Least).of(GPU),
    level("DCGM_FI_DEV_POWER_USAGE", "gpu_power_least_w", 1.0, Least).of(GPU),
    level("DCGM_FI_DEV_SM_CLOCK", "gpu_clock_least_mhz", 1.0, Least).of(GPU),
    level("DCGM_FI_DEV_GPU_TEMP", "gpu_temp_most_c", 1.0, Most).of(GPU),
    level("DCGM_FI_PROF_SM_ACTIVE", "sm_least_active", 1.0, Least).of(GPU),
    level("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "tensor_least_active", 1.0, Least).of(GPU),
    // Bytes per second already, though exporters call them counters.
    level("DCGM_FI_PROF_PCIE_TX_BYTES", "pcie_tx_gbs", 1e-9, Sum).of(GPU),
    level("DCGM_FI_PROF_PCIE_RX_BYTES", "pcie_rx_gbs", 1e-9, Sum).of(GPU),
    level("DCGM_FI_PROF_NVLINK_TX_BYTES", "nvlink_gbs", 1e-9, Sum).of(GPU),
    level("DCGM_FI_PROF_NVLINK_RX_BYTES", "nvlink_gbs", 1e-9, Sum).of(GPU),
    Source::mode("cpu_util_pct", BUSY),
    Source::mode("cpu_system_pct", KERNEL),
    Source::mode("cpu_iowait_pct", &["iowait"]),
    Source::mode("cpu_steal_pct", &["steal"]),
    level("node_cpu_scaling_frequency_hertz", "cpu_clock_mhz", 1e-6, Mean).of(&["cpu"]),
    level("node_hwmon_temp_celsius", "cpu_temp_c", 1.0, Most).of(&["chip", "sensor"]).only(0, &["platform_coretemp*"]),
    count("node_rapl_package_joules_total", "cpu_power_w", 1.0).of(&["index", "path"]),
    count("node_context_switches_total", "context_switches_per_s", 1.0),
    count("node_pressure_cpu_waiting_seconds_total", "cpu_pressure_pct", 100.0),
    count("node_pressure_memory_waiting_seconds_total", "memory_pressure_pct", 100.0),
    count("node_pressure_io_waiting_seconds_total", "io_pressure_pct", 100.0),
    level("node_memory_MemTotal_bytes", "mem_used_pct", 1.0, Share).role(All),
    level("node_memory_MemAvailable_bytes", "mem_used_pct", 1.0, Share).role(Free),
    count("node_vmstat_pgmajfault", "major_faults_per_s", 1.0),
    count("node_vmstat_pswpin", "swap_pages_per_s", 1.0),
    count("node_vmstat_pswpout", "swap_pages_per_s", 1.0),
    count("node_disk_read_bytes_total", "disk_read_gbs", 1e-9).disks(),
    count("node_disk_written_bytes_total", "disk_write_gbs", 1e-9).disks(),
    count("node_disk_io_time_seconds_total", "disk_busy_pct", 100.0).disks().most(),
    count("node_network_receive_bytes_total", "net_rx_gbs", 1e-9).nics(),
    count("node_network_transmit_bytes_total", "net_tx_gbs", 1e-9).nics(),
    count("node_network_receive_drop_total", "net_drops_pps", 1.0).nics(),
    count("node_network_receive_errs_total", "net_drops_pps", 1.0).nics(),
    count("node_network_transmit_drop_total", "net_drops_pps", 1.0).nics(),
    count("node_network_transmit_errs_total", "net_drops_pps", 1.0).nics(),
    count("node_netstat_Tcp_RetransSegs", "tcp_retrans_pps", 1.0),
    count("node_infiniband_port_data_transmitted_bytes_total", "rdma_tx_gbs", 1e-9).of(PORT),
    count("node_infiniband_port_data_received_bytes_total", "rdma_rx_gbs", 1e-9).of(PORT),
    count("node_infiniband_port_transmit_wait_total", "rdma_wait_per_s", 1.0).of(PORT),
    count("node_infiniband_port_discards_transmitted_total", "net_drops_pps", 1.0).of(PORT),
    count("node_infiniband_port_errors_received_total", "net_drops_pps", 1.0).of(PORT),
    count("node_ethtool_received_prio*_pause", "pfc_rx_pps", 1.0).of(DEVICE),
    count("node_ethtool_transmitted_prio*_pause", "pfc_tx_pps", 1.0).of(DEVICE),
    count("node_ethtool_transmitted_discards_phy", "net_drops_pps", 1.0).of(DEVICE),
    count("node_ethtool_received_discards_phy", "net_drops_pps", 1.0).of(DEVICE),
    count("node_ethtool_received_out_of_buffer", "net_drops_pps", 1.0).of(DEVICE),
];

/// What a name is, each of our metrics that it belongs to; a name of ours is itself.
pub(super) fn of(name: &str) -> impl Iterator<Item = Source> {
    let ours = watched(name).map(|ours| level(ours.name, ours.name, 1.0, Mean).of(GPU));
    SOURCES.iter().filter(move |source| fits(source.name, name)).copied().chain(ours)
}

/// Whether it counts up.
pub(super) fn counts(name: &str) -> bool {
    of(name).any(|source| source.counts)
}

/// What a series is good for.
pub(super) enum Takes {
    /// It is of this device.
    Device(Vec<String>),
    /// Its name is known, and its device or mode is not needed.
    Nothing,
    /// Its name is not known, or its labels were summed away.
    Unknown,
}

/// What a series is good for, by its name and labels.
pub(super) fn takes(name: &str, labels: &BTreeMap<String, String>) -> Takes {
    let Some(first) = of(name).next() else { return Takes::Unknown };
    let label = |label: &&str| labels.get(*label).cloned().unwrap_or_default();
    let device: Vec<String> = first.devices.iter().map(label).collect();
    match () {
        () if first.needs && device.iter().any(String::is_empty) => Takes::Unknown,
        () if of(name).any(|source| source.wants(&device)) => Takes::Device(device),
        () => Takes::Nothing,
    }
}

/// Whether a label says which node or which of its devices.
pub(super) fn is_read(label: &str) -> bool {
    who::names(label) || SOURCES.iter().any(|source| source.devices.contains(&label))
}

/// Whether `name` is `pattern`, in which one `*` stands for anything.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((begin, end)) => name.strip_prefix(begin).is_some_and(|rest| rest.ends_with(end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_of_a_metric_of_the_catalogue_and_rows_of_a_name_have_the_same_devices() {
        for source in &SOURCES {
            assert!(watched(source.metric).is_some(), "{}", source.metric);
            let same = |other: &Source| other.name != source.name || other.devices == source.devices;
            assert!(SOURCES.iter().all(same), "{}", source.name);
            let over = |other: &Source| other.metric != source.metric || other.over == source.over;
            assert!(SOURCES.iter().all(over), "{}", source.metric);
        }
    }

    #[test]
    fn what_lies_on_other_devices_is_not_taken() {
        let takes = |name: &str, device: &str| of(name).any(|source| source.wants(&[device.to_owned()]));
        for (device, wanted) in [("eth0", true), ("lo", false), ("bond0", false), ("eth0.12", false), ("ib0", true)] {
            assert_eq!(takes("node_network_receive_bytes_total", device), wanted, "{device}");
        }
        for (device, wanted) in
            [("nvme0n1", true), ("nvme0n1p2", false), ("sda", true), ("sda1", false), ("dm-0", false), ("md127", false)]
        {
            assert_eq!(takes("node_disk_io_time_seconds_total", device), wanted, "{device}");
        }
        assert!(
            takes("node_hwmon_temp_celsius", "platform_coretemp_0") && !takes("node_hwmon_temp_celsius", "nvme_nvme0")
        );
    }

    #[test]
    fn a_name_is_known_by_the_table_or_is_one_of_ours() {
        let metrics = |name: &str| of(name).map(|source| source.metric).collect::<Vec<_>>();
        assert_eq!(metrics("node_cpu_seconds_total").len(), 4);
        assert_eq!(metrics("node_ethtool_received_prio3_pause"), ["pfc_rx_pps"]);
        assert_eq!(metrics("gpu_power_w"), ["gpu_power_w"]);
        assert!(metrics("node_load1").is_empty() && metrics("*_pct").is_empty());
    }
}

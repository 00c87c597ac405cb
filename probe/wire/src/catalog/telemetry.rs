//! What is watched while a job runs: per-second metrics of a node, and what the detector has to know of each.
//!
//! A metric that is not here is watched all the same, by [`Telemetry::unknown`]: it is compared with its peers, but never says
//! whether the job moves.

use super::entry::decimals;
use crate::{ComponentKind, Unit};
use ComponentKind::{Application, Cpu, Disk, Gpus, Memory, Nic, Node};

/// What recordings keep beside metrics: by how many seconds the times of a node may be off. It is compared with nobody's.
pub const CLOCK_ERROR: &str = "clock_error_s";

/// A watched metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Telemetry {
    /// Its name in recordings; the end of a name where it begins with `*`.
    pub name: &'static str,
    /// What the field calls it; empty where only the name is known.
    pub title: &'static str,
    /// What it speaks of.
    pub of: ComponentKind,
    /// The unit of recorded values, as people write it.
    pub symbol: &'static str,
    /// Unit after multiplying by `factor`.
    pub unit: Unit,
    /// See `unit`.
    pub factor: f64,
    /// Level, in the unit of recorded values, below which a ratio means nothing: counters that are mostly zero have one.
    pub quantum: f64,
    /// Smallest relative spread between healthy nodes that is taken seriously.
    pub floor: f64,
    /// Most that can be recorded; a node at the ceiling cannot be above its peers.
    pub ceiling: f64,
    /// What it says of the job.
    pub job: SaysOfJob,
    /// The metric whose worst part it is: of several GPUs the mean and the worst speak of the same, and count once.
    pub worst_of: Option<&'static str>,
    /// Share of its evidence with which it says what is wrong, 0 to 1: less than 1 where it also shows what another part does to the
    /// node, 0 where it also shows what other nodes do to it, so that it names nobody by itself.
    pub leads: f64,
    /// Whether it may be looked at many times a second.
    pub fine: bool,
}

/// What a watched metric says of the job as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaysOfJob {
    /// Near zero on every node when the job does not move: it tells that the job stopped.
    Moves,
    /// Tells an idle node from a busy one once the job has stopped.
    Busy,
    /// Time in which work waited for something that the node lacks: near zero where all is well, also while the job stands still.
    Waits,
    /// Nothing.
    Nothing,
}

/// Bytes, watts and the like as they are: unit, its symbol, and one.
type Scale = (Unit, &'static str, f64);
const PERCENT: Scale = (Unit::Ratio, "%", 0.01);
const SHARE: Scale = (Unit::Ratio, "", 1.0);
const GIGABYTES: Scale = (Unit::BytesPerSec, "GB/s", 1e9);
const EVENTS: Scale = (Unit::OpsPerSec, "1/s", 1.0);
const WATTS: Scale = (Unit::Watts, "W", 1.0);
const DEGREES: Scale = (Unit::Celsius, "°C", 1.0);
const MILLISECONDS: Scale = (Unit::Seconds, "ms", 1e-3);
const MEGAHERTZ: Scale = (Unit::Hertz, "MHz", 1e6);

impl Telemetry {
    /// Digits of a value shown in `unit`.
    #[must_use]
    pub const fn decimals(&self) -> u8 {
        decimals(self.unit)
    }

    /// `value`, as recorded, with its unit.
    #[must_use]
    pub fn show(&self, value: f64) -> String {
        if self.unit == Unit::OpsPerSec {
            // Packets and retransmits are no operations.
            return format!("{}/s", Unit::Count.show_with(value * self.factor, 1));
        }
        self.unit.show_with(value * self.factor, if self.unit == Unit::Count { 2 } else { self.decimals() })
    }

    /// What is assumed of a metric that nobody described: no ceiling, no say in the state of the job.
    #[must_use]
    pub const fn unknown() -> Self {
        Self::new("", Node, (Unit::Count, "", 1.0), "")
    }

    const fn new(name: &'static str, of: ComponentKind, (unit, symbol, factor): Scale, title: &'static str) -> Self {
        let (job, ceiling, worst_of) = (SaysOfJob::Nothing, f64::INFINITY, None);
        Self {
            name,
            title,
            of,
            symbol,
            unit,
            factor,
            quantum: 0.0,
            floor: 0.02,
            ceiling,
            job,
            worst_of,
            leads: 1.0,
            fine: false,
        }
    }

    const fn percent(name: &'static str, of: ComponentKind, title: &'static str) -> Self {
        Self { ceiling: 100.0, ..Self::new(name, of, PERCENT, title) }
    }

    const fn share(name: &'static str, of: ComponentKind, title: &'static str) -> Self {
        Self { ceiling: 1.0, ..Self::new(name, of, SHARE, title) }
    }

    /// Bytes that a job sends; a node at rest sends a little all the same.
    const fn traffic(name: &'static str, of: ComponentKind, title: &'static str) -> Self {
        Self { job: SaysOfJob::Moves, quantum: 1e-4, fine: true, ..Self::new(name, of, GIGABYTES, title) }
    }

    /// Events that healthy nodes rarely count.
    const fn events(name: &'static str, title: &'static str) -> Self {
        Self { quantum: 10.0, floor: 0.10, fine: true, ..Self::new(name, Nic, EVENTS, title) }
    }

    const fn of(self, of: ComponentKind) -> Self {
        Self { of, ..self }
    }

    const fn busy(self) -> Self {
        Self { job: SaysOfJob::Busy, ..self }
    }

    /// A share of the time in which work waited.
    const fn waits(name: &'static str, of: ComponentKind, title: &'static str) -> Self {
        Self { job: SaysOfJob::Waits, ..Self::percent(name, of, title) }
    }

    const fn moves(self) -> Self {
        Self { job: SaysOfJob::Moves, ..self }
    }

    const fn leading(self, leads: f64) -> Self {
        Self { leads, ..self }
    }

    /// The worst of several parts, of which `mean` is the mean or the sum.
    const fn worst_of(self, mean: &'static str) -> Self {
        Self { worst_of: Some(mean), ..self }
    }

    const fn coarse(self) -> Self {
        Self { fine: false, ..self }
    }

    const fn fine(self) -> Self {
        Self { fine: true, ..self }
    }

    /// A plain number.
    const fn plain(name: &'static str, of: ComponentKind, title: &'static str) -> Self {
        Self::new(name, of, (Unit::Count, "", 1.0), title)
    }

    const fn loose(self, quantum: f64, floor: f64) -> Self {
        Self { quantum, floor, ..self }
    }
}

/// Minder's twenty metrics, by the names of recordings, then what else a node tells of itself; rows that begin with `*` come last
/// and hold for names that end so.
static WATCHED: [Telemetry; 74] = [
    Telemetry::events("pfc_tx_pps", "PFC pause frames sent").coarse(),
    Telemetry::percent("cpu_util_pct", Cpu, "CPU utilisation").loose(2.0, 0.03),
    Telemetry::percent("gpu_util_pct", Gpus, "GPU utilisation").busy(),
    Telemetry::new("gpu_power_w", Gpus, WATTS, "GPU power").busy(),
    Telemetry::share("gr_active", Gpus, "graphics engine activity").busy().fine(),
    Telemetry::share("tensor_active", Gpus, "tensor core activity").moves().fine(),
    Telemetry::share("sm_active", Gpus, "SM activity").busy().fine(),
    Telemetry::share("dram_active", Gpus, "GPU memory activity").fine(),
    Telemetry::traffic("nvlink_gbs", ComponentKind::GpuLink, "NVLink throughput"),
    Telemetry::traffic("net_tx_gbs", Nic, "network throughput sent"),
    Telemetry::traffic("net_rx_gbs", Nic, "network throughput received"),
    Telemetry::new("pcie_tx_gbs", Gpus, GIGABYTES, "PCIe throughput sent").fine(),
    Telemetry::new("pcie_rx_gbs", Gpus, GIGABYTES, "PCIe throughput received").fine(),
    Telemetry::percent("mem_used_pct", Memory, "memory used"),
    Telemetry::percent("gpu_mem_used_pct", Gpus, "GPU memory used"),
    Telemetry::percent("disk_busy_pct", Disk, "disk busy").loose(2.0, 0.05),
    Telemetry::waits("cpu_iowait_pct", Disk, "CPU waiting for I/O").loose(2.0, 0.05),
    Telemetry::new("gpu_temp_c", Gpus, DEGREES, "GPU temperature"),
    Telemetry::new("gpu_clock_mhz", Gpus, MEGAHERTZ, "GPU clock").fine(),
    Telemetry::events("pfc_rx_pps", "PFC pause frames received").coarse(),
    Telemetry::events("ecn_pps", "ECN-marked packets"),
    Telemetry::events("cnp_pps", "congestion notifications"),
    Telemetry::events("tcp_retrans_pps", "TCP retransmits"),
    Telemetry::new("tcp_rtt_least_ms", Nic, MILLISECONDS, "TCP round trip to the nearest peer")
        .loose(1.0, 0.20)
        .leading(0.5),
    Telemetry::percent("cpu_system_pct", Cpu, "CPU time in the kernel").loose(2.0, 0.05),
    Telemetry::waits("cpu_steal_pct", Cpu, "CPU time taken by the hypervisor").loose(2.0, 0.05),
    Telemetry::waits("cpu_pressure_pct", Cpu, "time in which a task waited for a CPU").loose(5.0, 0.10),
    Telemetry::new("cpu_clock_mhz", Cpu, MEGAHERTZ, "CPU clock"),
    Telemetry::new("cpu_temp_c", Cpu, DEGREES, "CPU temperature").loose(0.0, 0.05),
    Telemetry::new("cpu_power_w", Cpu, WATTS, "CPU power").loose(5.0, 0.03),
    // A neighbour that sends in small pieces wakes its peers more often.
    Telemetry::events("context_switches_per_s", "context switches").of(Cpu).loose(500.0, 0.10).coarse().leading(0.0),
    Telemetry::plain("blocked_tasks", Disk, "tasks that wait for I/O").loose(2.0, 0.10),
    Telemetry::waits("memory_pressure_pct", Memory, "time in which a task waited for memory").loose(2.0, 0.10),
    Telemetry::events("major_faults_per_s", "page faults that read from disk").of(Memory).coarse(),
    Telemetry::events("swap_pages_per_s", "pages swapped").of(Memory).coarse(),
    Telemetry::events("reclaimed_pages_per_s", "pages that tasks had to free themselves")
        .of(Memory)
        .loose(1e3, 0.10)
        .coarse(),
    Telemetry::waits("io_pressure_pct", Disk, "time in which a task waited for I/O").loose(5.0, 0.10),
    Telemetry::new("disk_read_gbs", Disk, GIGABYTES, "disk throughput read").loose(1e-3, 0.10),
    Telemetry::new("disk_write_gbs", Disk, GIGABYTES, "disk throughput written").loose(1e-3, 0.10),
    Telemetry::plain("disk_queue", Disk, "requests that wait for the busiest disk").loose(2.0, 0.10),
    Telemetry::new("disk_temp_c", Disk, DEGREES, "disk temperature").loose(0.0, 0.05),
    Telemetry::events("net_drops_pps", "packets dropped or broken"),
    Telemetry::events("net_discards_pps", "packets discarded by network cards").coarse(),
    Telemetry::new("net_link_gbs", Nic, GIGABYTES, "network link speed").loose(1e-3, 0.02),
    Telemetry::new("rdma_link_gbs", Nic, GIGABYTES, "RDMA link speed").loose(1e-3, 0.02),
    Telemetry::traffic("rdma_tx_gbs", Nic, "RDMA throughput sent"),
    Telemetry::traffic("rdma_rx_gbs", Nic, "RDMA throughput received"),
    Telemetry::events("rdma_wait_per_s", "waits of the RDMA port for credits").loose(1e4, 0.10),
    Telemetry::events("rdma_out_of_sequence_pps", "RDMA packets out of sequence"),
    Telemetry::percent("job_cpu_pct", Cpu, "CPU use of the job's processes").loose(2.0, 0.03).busy(),
    Telemetry::waits("job_wait_pct", Cpu, "time in which the job was ready and got no CPU").loose(5.0, 0.10),
    Telemetry::waits("job_stopped_pct", Application, "processes of the job that are stopped").loose(5.0, 0.10),
    Telemetry::percent("job_mem_pct", Memory, "memory of the job's processes").loose(1.0, 0.02),
    Telemetry::plain("job_blocked", Disk, "processes of the job that wait for I/O").loose(2.0, 0.10),
    Telemetry::events("job_switches_per_s", "context switches of the job's processes")
        .of(Cpu)
        .loose(100.0, 0.10)
        .coarse()
        .leading(0.0),
    Telemetry::new("job_read_gbs", Disk, GIGABYTES, "disk reads of the job's processes").loose(1e-3, 0.10),
    Telemetry::new("job_write_gbs", Disk, GIGABYTES, "disk writes of the job's processes").loose(1e-3, 0.10),
    Telemetry::percent("gpu_util_least_pct", Gpus, "utilisation of the least busy GPU").worst_of("gpu_util_pct"),
    Telemetry::new("gpu_power_least_w", Gpus, WATTS, "power of the GPU with the least").worst_of("gpu_power_w"),
    Telemetry::new("gpu_clock_least_mhz", Gpus, MEGAHERTZ, "clock of the slowest GPU").worst_of("gpu_clock_mhz").fine(),
    Telemetry::new("gpu_temp_most_c", Gpus, DEGREES, "temperature of the hottest GPU").worst_of("gpu_temp_c"),
    Telemetry::percent("gpu_mem_used_most_pct", Gpus, "memory used of the fullest GPU").worst_of("gpu_mem_used_pct"),
    Telemetry::share("sm_least_active", Gpus, "SM activity of the least active GPU").worst_of("sm_active").fine(),
    Telemetry::share("tensor_least_active", Gpus, "tensor core activity of the least active GPU")
        .worst_of("tensor_active")
        .fine(),
    Telemetry::new(
        "nvlink_least_gbs",
        ComponentKind::GpuLink,
        GIGABYTES,
        "NVLink throughput of the GPU with the least",
    )
    .loose(1e-4, 0.02)
    .worst_of("nvlink_gbs")
    .fine(),
    Telemetry::new("gpu_mem_temp_c", Gpus, DEGREES, "temperature of the hottest GPU memory").loose(0.0, 0.02),
    Telemetry::percent("gpu_throttled_pct", Gpus, "GPUs slowed by heat, hardware or the power supply").loose(2.0, 0.05),
    Telemetry::percent("gpu_power_capped_pct", Gpus, "GPUs at their power limit").loose(10.0, 0.10),
    Telemetry::plain("gpu_count", Gpus, "GPUs that answer"),
    Telemetry::events("gpu_ecc_per_s", "corrected GPU memory errors").of(Gpus).loose(1.0, 0.10).coarse(),
    Telemetry::plain("gpu_ecc_lost", Gpus, "GPU memory errors that could not be corrected").loose(0.5, 0.10),
    Telemetry::percent("*_pct", Node, ""),
    Telemetry::share("*_active", Node, ""),
    Telemetry::new("*_gbs", Node, GIGABYTES, ""),
];

/// Metrics that may be looked at many times a second, and what such values are recorded as.
static FINE: [(&str, &str); 22] = [
    ("gr_active", "gr_active@fine"),
    ("tensor_active", "tensor_active@fine"),
    ("sm_active", "sm_active@fine"),
    ("dram_active", "dram_active@fine"),
    ("nvlink_gbs", "nvlink_gbs@fine"),
    ("net_tx_gbs", "net_tx_gbs@fine"),
    ("net_rx_gbs", "net_rx_gbs@fine"),
    ("pcie_tx_gbs", "pcie_tx_gbs@fine"),
    ("pcie_rx_gbs", "pcie_rx_gbs@fine"),
    ("gpu_clock_mhz", "gpu_clock_mhz@fine"),
    ("ecn_pps", "ecn_pps@fine"),
    ("cnp_pps", "cnp_pps@fine"),
    ("tcp_retrans_pps", "tcp_retrans_pps@fine"),
    ("net_drops_pps", "net_drops_pps@fine"),
    ("rdma_tx_gbs", "rdma_tx_gbs@fine"),
    ("rdma_rx_gbs", "rdma_rx_gbs@fine"),
    ("rdma_wait_per_s", "rdma_wait_per_s@fine"),
    ("rdma_out_of_sequence_pps", "rdma_out_of_sequence_pps@fine"),
    ("gpu_clock_least_mhz", "gpu_clock_least_mhz@fine"),
    ("sm_least_active", "sm_least_active@fine"),
    ("tensor_least_active", "tensor_least_active@fine"),
    ("nvlink_least_gbs", "nvlink_least_gbs@fine"),
];

/// What the detector has to know of the metric called `name`; `None` where the catalogue does not know it, not even by its end.
#[must_use]
pub fn telemetry(name: &str) -> Option<&'static Telemetry> {
    WATCHED.iter().find(|known| match known.name.strip_prefix('*') {
        Some(end) => name.ends_with(end),
        None => name == known.name,
    })
}

/// Names of all metrics that a node may send.
pub fn telemetry_names() -> impl Iterator<Item = &'static str> {
    WATCHED.iter().map(|known| known.name).filter(|name| !name.starts_with('*'))
}

/// Name under which values of `name` are recorded that were read many times a second, and not once: means of a second and moments of
/// one are not the same metric.
#[must_use]
pub fn finely(name: &str) -> Option<&'static str> {
    FINE.iter().find(|(known, _)| *known == name).map(|(_, fine)| *fine)
}

/// Whether `name` is one that [`finely`] gives.
#[must_use]
pub fn is_fine(name: &str) -> bool {
    FINE.iter().any(|(_, fine)| *fine == name)
}

/// The same for a name that stands in the catalogue itself: what a node may send.
#[must_use]
pub fn watched(name: &str) -> Option<&'static Telemetry> {
    telemetry(name).filter(|known| known.name == name && !name.starts_with('*'))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_name_stands_once_and_endings_come_last() {
        let names: std::collections::BTreeSet<&str> = WATCHED.iter().map(|known| known.name).collect();
        assert_eq!(names.len(), WATCHED.len());
        let first = WATCHED.iter().position(|known| known.name.starts_with('*')).unwrap();
        assert!(WATCHED[first..].iter().all(|known| known.name.starts_with('*') && known.title.is_empty()));
        assert!(WATCHED[..first].iter().all(|known| !known.title.is_empty()));
    }

    #[test]
    fn what_may_be_looked_at_finely_has_a_name_for_it_and_the_worst_of_many_has_a_mean() {
        for known in &WATCHED {
            let fine = finely(known.name);
            assert_eq!(fine.is_some(), known.fine, "{}", known.name);
            assert!(fine.is_none_or(|fine| is_fine(fine) && fine.strip_suffix("@fine") == Some(known.name)));
            let mean = known.worst_of.map(|mean| watched(mean).unwrap());
            assert!(mean.is_none_or(|mean| (mean.unit, mean.of, mean.fine) == (known.unit, known.of, known.fine)));
        }
        assert!(!is_fine("net_tx_gbs") && finely("cpu_util_pct").is_none());
    }

    #[test]
    fn a_name_is_known_by_itself_then_by_its_end_and_else_not_at_all() {
        let of = |name| telemetry(name).map(|known| (known.symbol, known.ceiling, known.job));
        assert_eq!(of("tensor_active"), Some(("", 1.0, SaysOfJob::Moves)));
        assert_eq!(of("swap_used_pct"), Some(("%", 100.0, SaysOfJob::Nothing)));
        assert_eq!(of("requests"), None);
        assert!(watched("cpu_util_pct").is_some() && watched("swap_used_pct").is_none() && watched("*_pct").is_none());
        assert_eq!(Telemetry::unknown().ceiling, f64::INFINITY);
        let names: Vec<&str> = telemetry_names().collect();
        assert!(names.contains(&"net_tx_gbs") && names.iter().all(|name| watched(name).is_some()));
    }

    #[test]
    fn what_is_known_of_each_metric_is_as_it_was_written_down() {
        let text: String = WATCHED.iter().map(|known| format!("{known:?}\n")).collect();
        muster_golden::hold(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/telemetry.txt"), &text);
    }

    #[test]
    fn values_are_shown_in_the_units_people_say() {
        let show = |name, value| telemetry(name).map(|known| known.show(value)).unwrap_or_default();
        assert_eq!(show("cpu_util_pct", 36.7), "36.7 %");
        assert_eq!(show("net_tx_gbs", 57.31), "57.3 GB/s");
        assert_eq!(show("gpu_power_w", 559.2), "559 W");
        assert_eq!(show("pfc_tx_pps", 30.0), "30.0/s");
        assert_eq!(show("gpu_clock_mhz", 1_980.0), "1.98 GHz");
        assert_eq!(Telemetry::unknown().show(4.6789), "4.68");
    }
}

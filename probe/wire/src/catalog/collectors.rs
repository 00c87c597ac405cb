//! What looks at a node without measuring: the collectors, and the facts that benchmarks leave beside their series.

/// A collector's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collector {
    /// Name used in playbooks and fact frames.
    pub name: &'static str,
    /// One sentence for lists.
    pub about: &'static str,
}

/// Every collector.
pub const COLLECTORS: &[Collector] = &[
    Collector { name: "identity", about: "DMI, serial, boot id, kernel, libc" },
    Collector { name: "cpu", about: "model, cores, NUMA nodes, governor, frequencies" },
    Collector { name: "memory", about: "sizes, huge pages, ECC counters" },
    Collector { name: "disk", about: "disks, mounts, free space" },
    Collector { name: "nic", about: "network interfaces, link state, speed, errors" },
    Collector { name: "kernel", about: "command line, parameters, driver versions, mitigations" },
    Collector { name: "time", about: "whether and how well the clock is kept" },
    Collector { name: "process", about: "services, zombies, stuck processes, limits of the login" },
    Collector { name: "infiniband", about: "adapters, ports, rates, error counters, firmware" },
    Collector { name: "pcie", about: "links of GPUs, adapters and disks, their errors, address translation" },
    Collector { name: "gpu", about: "GPUs on the bus, in the driver and as device files; their health by NVML" },
    Collector { name: "load", about: "load average, foreign processes, pressure" },
    Collector { name: "kernel-log", about: "tail of the kernel log" },
];

/// Fact of a benchmark: the share of all CPUs that others used while it ran, 0 to 1.
pub const FOREIGN_CPU: &str = "foreign.cpu";

/// Begins the name of an idle gate, a collector that waits: `idle@30` until others leave the CPUs alone, at most 30 s.
pub const IDLE: &str = "idle@";

/// Fact of `cpu-core`, with the core's number behind it: the share of the core's measured time for which others held it.
pub const HELD_CPU: &str = "held.core";

/// Facts of a benchmark that begin so hold digests of its steps: hexadecimal words, one a step, the same on every node
/// that computes rightly.
pub const DIGEST: &str = "digest.";

/// Foreign load from which on a measurement says more of the others than of the node, as a share of all CPUs.
pub const BUSY: f64 = 0.2;

/// The entry called `name`.
#[must_use]
pub fn collector(name: &str) -> Option<&'static Collector> {
    COLLECTORS.iter().find(|c| c.name == name)
}

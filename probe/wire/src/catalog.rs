//! The names that exist: which benchmarks and collectors a probe of this version knows.

/// A benchmark's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Benchmark {
    /// Name used in playbooks, on the command line and in metric identities.
    pub name: &'static str,
    /// One sentence for lists.
    pub about: &'static str,
    /// Longest it may take per profile (smoke, quick, standard, full), seconds; past it the console gives up.
    pub limit_s: [u32; 4],
}

/// A collector's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collector {
    /// Name used in playbooks and fact frames.
    pub name: &'static str,
    /// One sentence for lists.
    pub about: &'static str,
}

/// Every benchmark, in the order a plain `run` takes them.
pub const BENCHMARKS: &[Benchmark] = &[
    Benchmark { name: "cpu-gemm", about: "matrix product on every core, fp32 and fp64", limit_s: [20, 60, 180, 600] },
    Benchmark { name: "cpu-stream", about: "memory bandwidth: copy, scale, add, triad", limit_s: [20, 60, 180, 600] },
    Benchmark {
        name: "cpu-latency",
        about: "pointer chase through L1, L2, last-level cache and DRAM",
        limit_s: [20, 60, 180, 600],
    },
    Benchmark {
        name: "cpu-dispatch",
        about: "system call, futex wake and thread hand-off latency",
        limit_s: [20, 60, 180, 600],
    },
    Benchmark {
        name: "cpu-core",
        about: "speed and memory latency of every core by itself",
        limit_s: [20, 60, 180, 600],
    },
    Benchmark {
        name: "cpu-burn",
        about: "all cores at full load; every core must compute the same bits",
        limit_s: [20, 60, 180, 600],
    },
    Benchmark {
        name: "cpu-memory-bw-latency",
        about: "bandwidth and latency between all NUMA nodes, latency under load",
        limit_s: [20, 60, 180, 600],
    },
    Benchmark {
        name: "disk",
        about: "sequential and random read and write with direct I/O on a file of its own",
        limit_s: [30, 90, 300, 900],
    },
    Benchmark { name: "net-loopback", about: "TCP throughput and latency over loopback", limit_s: [20, 60, 180, 600] },
    Benchmark { name: "kernel-launch", about: "GPU: time to start an empty kernel", limit_s: [60, 120, 180, 600] },
    Benchmark {
        name: "gpu-stream",
        about: "GPU: memory bandwidth (write, copy, read, triad) and latency, verified",
        limit_s: [120, 120, 300, 900],
    },
    Benchmark {
        name: "gpu-copy-bw",
        about: "GPU: copies from the host, to the host and on the device, verified",
        limit_s: [120, 240, 600, 1200],
    },
    Benchmark {
        name: "gpu-peer-bw",
        about: "GPUs: copies from each to each other, by copy engine and by kernels, verified",
        limit_s: [120, 240, 600, 1200],
    },
    Benchmark {
        name: "p2p-allreduce",
        about: "GPUs: sum over all GPUs of a node by own kernels, bus bandwidth, every sum checked",
        limit_s: [120, 120, 300, 900],
    },
    Benchmark {
        name: "nccl-bw",
        about: "GPUs: NCCL's all-reduce, all-gather and all-to-all over a node, where it is installed, verified",
        limit_s: [120, 240, 600, 1200],
    },
    Benchmark {
        name: "gemm-flops",
        about: "GPU: matrix products of every type on tensor cores, fp32 and fp64, verified",
        limit_s: [120, 120, 300, 900],
    },
    Benchmark {
        name: "gpu-overlap",
        about: "GPU: matrix products and copies at the same time, and what each loses by it",
        limit_s: [120, 240, 600, 1200],
    },
    Benchmark {
        name: "cublaslt-gemm",
        about: "GPU: matrix products by cuBLASLt, where it is installed, bits compared",
        limit_s: [120, 120, 300, 900],
    },
    Benchmark {
        name: "gpu-burn",
        about: "GPU: every multiprocessor under load, bits compared",
        limit_s: [120, 120, 300, 900],
    },
    Benchmark {
        name: "sm-sdc",
        about: "GPU: does each multiprocessor compute the same bits in the same time, as far from L2 as before",
        limit_s: [120, 120, 300, 900],
    },
    Benchmark {
        name: "gpu-memory-map",
        about: "GPU: which pages keep what is written, and how long each takes",
        limit_s: [120, 120, 300, 900],
    },
    Benchmark {
        name: "overlap",
        about: "what computing and TCP over loopback cost each other",
        limit_s: [20, 60, 180, 600],
    },
    Benchmark {
        name: "sharding-matmul",
        about: "one matrix product split among cores that talk over loopback TCP",
        limit_s: [20, 60, 180, 600],
    },
    Benchmark {
        name: "train-gpt2",
        about: "training steps of a nano GPT-2, from standard on of GPT-2 small (1.7 GB); every loss has one right value",
        limit_s: [30, 60, 240, 700],
    },
    Benchmark {
        name: "train-bert",
        about: "training steps of a nano BERT, from standard on of BERT base (1.4 GB); every loss has one right value",
        limit_s: [30, 60, 240, 700],
    },
    Benchmark {
        name: "train-lstm",
        about: "training steps of a nano LSTM, from standard on of 8 layers of 1000 (0.8 GB); every loss has one right value",
        limit_s: [30, 60, 240, 700],
    },
    Benchmark {
        name: "train-resnet",
        about: "training steps of a nano ResNet, from standard on of ResNet-50 (0.8 GB); every loss has one right value",
        limit_s: [30, 60, 240, 700],
    },
];

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
pub fn benchmark(name: &str) -> Option<&'static Benchmark> {
    BENCHMARKS.iter().find(|b| b.name == name)
}

/// The entry called `name`.
#[must_use]
pub fn collector(name: &str) -> Option<&'static Collector> {
    COLLECTORS.iter().find(|c| c.name == name)
}

//! Benchmarks of processors and memory.

use super::entry::{Benchmark, Metric, Stage};
use crate::ComponentKind::{Application, Core, Cpu, Memory, Nic};
use crate::{Category, Unit};

/// Those that look at one part.
pub(super) const PARTS: [Benchmark; 7] = [
    Benchmark::host(
        "cpu-gemm",
        "matrix product on every core, fp32 and fp64",
        &[
            Metric::rate("fp32", Cpu, Unit::FlopPerSec, "fp32 GEMM, all cores"),
            Metric::rate("fp64", Cpu, Unit::FlopPerSec, "fp64 GEMM, all cores"),
            Metric::rate("fp32-{n}t", Cpu, Unit::FlopPerSec, "fp32 GEMM, one thread"),
            Metric::rate("fp64-{n}t", Cpu, Unit::FlopPerSec, "fp64 GEMM, one thread"),
        ],
    ),
    Benchmark::host(
        "cpu-stream",
        "memory bandwidth: copy, scale, add, triad",
        &[
            Metric::rate("copy", Memory, Unit::BytesPerSec, "STREAM copy"),
            Metric::rate("scale", Memory, Unit::BytesPerSec, "STREAM scale"),
            Metric::rate("add", Memory, Unit::BytesPerSec, "STREAM add"),
            Metric::rate("triad", Memory, Unit::BytesPerSec, "STREAM triad"),
            Metric::rate("copy-{n}t", Memory, Unit::BytesPerSec, "STREAM copy, one thread"),
            Metric::rate("scale-{n}t", Memory, Unit::BytesPerSec, "STREAM scale, one thread"),
            Metric::rate("add-{n}t", Memory, Unit::BytesPerSec, "STREAM add, one thread"),
            Metric::rate("triad-{n}t", Memory, Unit::BytesPerSec, "STREAM triad, one thread"),
        ],
    ),
    Benchmark::host(
        "cpu-latency",
        "pointer chase through L1, L2, last-level cache and DRAM",
        &[
            Metric::time("l1", Cpu, "L1 latency"),
            Metric::time("l2", Cpu, "L2 latency"),
            Metric::time("llc", Cpu, "last-level cache latency"),
            Metric::time("dram", Memory, "DRAM latency"),
        ],
    ),
    Benchmark::host(
        "cpu-dispatch",
        "system call, futex wake and thread hand-off latency",
        &[
            Metric::time("syscall", Cpu, "system call latency"),
            Metric::time("thread-handoff", Cpu, "thread hand-off latency"),
            Metric::time("futex-wake", Cpu, "futex wake latency"),
        ],
    ),
    Benchmark::host(
        "cpu-core",
        "speed and memory latency of every core by itself",
        &[
            Metric::rate("speed:core{core}", Core, Unit::FlopPerSec, "fp64 GEMM of the core alone"),
            Metric::time("latency:core{core}", Core, "DRAM latency from the core"),
        ],
    ),
    Benchmark::host(
        "cpu-burn",
        "all cores at full load; every core must compute the same bits",
        &[
            Metric::rate("flops", Cpu, Unit::FlopPerSec, "fp64 GEMM under full load, all cores"),
            Metric::rate("core_{core}_flops", Core, Unit::FlopPerSec, "fp64 GEMM under full load, one core"),
            Metric::rate("core_{core}_pass", Core, Unit::Ratio, "share of bit-identical products")
                .decimals(4)
                .limit(1.0),
        ],
    )
    .stage(Stage::Burn),
    Benchmark::host(
        "cpu-memory-bw-latency",
        "bandwidth and latency between all NUMA nodes, latency under load",
        &[
            Metric::rate("mem_bandwidth_matrix_numa_{n}_{n}_bw", Memory, Unit::BytesPerSec, "NUMA read bandwidth"),
            Metric::time("mem_bandwidth_matrix_numa_{n}_{n}_lat", Memory, "NUMA read latency"),
            Metric::time("mem_loaded_latency_{n}_lat", Memory, "DRAM latency under load"),
        ],
    ),
];

/// Those that compute and communicate at the same time.
pub(super) const TOGETHER: [Benchmark; 2] = [
    Benchmark::host(
        "overlap",
        "what computing and TCP over loopback cost each other",
        &[
            Metric::rate("compute_alone", Cpu, Unit::FlopPerSec, "GEMM alone"),
            Metric::rate("compute_together", Cpu, Unit::FlopPerSec, "GEMM beside TCP loopback"),
            Metric::rate("comm_alone", Nic, Unit::BytesPerSec, "TCP loopback alone"),
            Metric::rate("comm_together", Nic, Unit::BytesPerSec, "TCP loopback beside GEMM"),
            Metric::rate("overlap_efficiency", Application, Unit::Ratio, "overlap efficiency"),
            Metric::cost("compute_slowdown", Application, Unit::Ratio, "GEMM slowdown by TCP loopback"),
            Metric::cost("comm_slowdown", Application, Unit::Ratio, "TCP loopback slowdown by GEMM"),
        ],
    )
    .category(Category::Unknown),
    Benchmark::host(
        "sharding-matmul",
        "one matrix product split among cores that talk over loopback TCP",
        &[
            Metric::time("nosharding_time", Application, "matrix product, not sharded"),
            Metric::time("allreduce_time", Application, "matrix product, sharded with all-reduce"),
            Metric::time("allgather_time", Application, "matrix product, sharded with all-gather"),
        ],
    )
    .category(Category::Unknown),
];

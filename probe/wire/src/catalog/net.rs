//! Benchmarks of the network: of a node by itself, and of nodes with each other.

use super::entry::{Benchmark, Metric, MetricRole};
use crate::ComponentKind::{IbPort, Nic};
use crate::{Category, Unit};

/// Of a node by itself.
pub(super) const ALONE: [Benchmark; 2] = [
    Benchmark::host(
        "net-loopback",
        "TCP throughput and latency over loopback",
        &[
            Metric::rate("throughput", Nic, Unit::BytesPerSec, "TCP loopback throughput"),
            Metric::time("rtt", Nic, "TCP loopback round trip"),
            Metric::rate("throughput-{n}t", Nic, Unit::BytesPerSec, "TCP loopback throughput, one thread"),
            Metric::time("rtt-{n}t", Nic, "TCP loopback round trip, one thread"),
        ],
    )
    .category(Category::Network),
    Benchmark::host(
        "ib-loopback",
        "every InfiniBand and RoCE port: RDMA writes of the adapter to itself, every word checked",
        &[
            port("write-{size}:{port}", "RDMA write loopback, host memory"),
            port("write-gpu-{size}:{port}", "RDMA write loopback, GPU memory"),
            // One mean a run, of a program whose version the node chose.
            port("perftest-{size}:{port}", "RDMA write loopback by perftest").role(MetricRole::Informational),
        ],
    )
    .limit_s([120, 300, 900, 3600])
    .category(Category::Network),
];

const fn port(pattern: &'static str, title: &'static str) -> Metric {
    Metric::rate(pattern, IbPort, Unit::BytesPerSec, title)
}

const BUS_BANDWIDTH: &[Metric] = &[Metric::rate("busbw-{n}", Nic, Unit::BytesPerSec, "bus bandwidth")];

/// Of nodes with each other: ordered by the network scan, never by a plain `run`.
pub(super) const BETWEEN: [Benchmark; 5] = [
    Benchmark::host(
        "net-pair",
        "what two nodes exchange: throughput, round trip, two-node all-reduce",
        &[
            Metric::rate("throughput", Nic, Unit::BytesPerSec, "throughput between two nodes"),
            Metric::time("rtt-{n}", Nic, "round trip between two nodes"),
            Metric::rate("allreduce", Nic, Unit::BytesPerSec, "two-node all-reduce"),
            Metric::cost("retransmits", Nic, Unit::Ratio, "TCP retransmits"),
        ],
    )
    .category(Category::Network),
    Benchmark::host("net-allreduce", "all-reduce of all nodes over TCP", BUS_BANDWIDTH).category(Category::Network),
    Benchmark::host("net-allgather", "all-gather of all nodes over TCP", BUS_BANDWIDTH).category(Category::Network),
    Benchmark::host("net-alltoall", "all-to-all of all nodes over TCP", BUS_BANDWIDTH).category(Category::Network),
    super::train::DDP,
];

//! Benchmarks of storage.

use super::entry::{Benchmark, Metric, MetricRole};
use crate::ComponentKind::Disk;
use crate::{Category, Unit};

/// A load: what it delivers, then its latency by percentile.
macro_rules! load {
    ($name:literal, $own:ident($unit:expr), $title:literal) => {
        [
            Metric::$own($name, Disk, $unit, $title),
            Metric::time(concat!($name, "-p50"), Disk, concat!($title, ", median latency")),
            Metric::time(concat!($name, "-p95"), Disk, concat!($title, ", p95 latency")).role(MetricRole::Tail),
            Metric::time(concat!($name, "-p99"), Disk, concat!($title, ", p99 latency")).role(MetricRole::Tail),
            Metric::time(concat!($name, "-p99.9"), Disk, concat!($title, ", p99.9 latency")).role(MetricRole::Tail),
        ]
    };
}

const LOADS: [[Metric; 5]; 8] = [
    load!("seq-write", rate(Unit::BytesPerSec), "sequential write"),
    load!("seq-read", rate(Unit::BytesPerSec), "sequential read"),
    load!("seq-readwrite", rate(Unit::BytesPerSec), "sequential read and write"),
    load!("rand-write", rate(Unit::OpsPerSec), "random 4 KiB write"),
    load!("rand-read", rate(Unit::OpsPerSec), "random 4 KiB read"),
    load!("rand-readwrite", rate(Unit::OpsPerSec), "random 4 KiB read and write"),
    load!("rand-read-latency", cost(Unit::Nanos), "random 4 KiB read, one at a time"),
    load!("rand-write-latency", cost(Unit::Nanos), "random 4 KiB write, one at a time"),
];

pub(super) const ALL: [Benchmark; 1] = [Benchmark::host(
    "disk",
    "sequential and random read and write with direct I/O on a file of its own",
    LOADS.as_flattened(),
)
.limit_s([30, 90, 300, 900])
.category(Category::Disk)];

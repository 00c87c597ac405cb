//! What a metric's identity means. The only place that takes a name apart.

use std::borrow::Cow;

use super::entry::{Benchmark, Metric, MetricRole, decimals};
use super::pattern::{Named, matches};
use super::{BENCHMARKS, BETWEEN_NODES};
use crate::{Category, Component, ComponentKind, Direction, MetricId, Unit};

/// What is known of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// What it speaks of.
    pub component: Component,
    /// What it is used for.
    pub role: MetricRole,
    /// What is broken when it is bad.
    pub category: Category,
    /// Unit; `None` where nothing but the series says it.
    pub unit: Option<Unit>,
    /// Which way is better; `None` where nothing but the series says it.
    pub direction: Option<Direction>,
    /// Most digits behind the point once the value has its prefix.
    pub decimals: u8,
    /// What the field calls it, without the component.
    pub title: Cow<'static, str>,
    /// What is measured, whichever component it was measured on: equal for the same measurement of two GPUs.
    pub kind: Cow<'static, str>,
    /// Whether each value is already an average of many steps.
    pub aggregated: bool,
    /// Worst value that may pass on any node.
    pub limit: Option<f64>,
    /// The benchmark, where it is one of ours.
    pub benchmark: Option<&'static Benchmark>,
}

/// What `metric` means. What is not in the catalogue and was not declared is judged and belongs to
/// [`Component::Application`], or to the GPU or core that the end of its name says: `:3` and `:gpu3`, as SuperBench numbers
/// GPUs, and `:core3`.
#[must_use]
pub fn describe(metric: &MetricId) -> Described {
    match find(&metric.benchmark, &metric.name) {
        Some((benchmark, entry, named)) => known(benchmark, entry, named),
        None => foreign(metric),
    }
}

/// What `metric` is used for, by [`describe`]'s rules and without its words.
#[must_use]
pub fn role(metric: &MetricId) -> MetricRole {
    match find(&metric.benchmark, &metric.name) {
        Some((_, entry, _)) => entry.role,
        None if is_tail(foreign_parts(&metric.name).0) => MetricRole::Tail,
        None => MetricRole::Judged,
    }
}

/// The entry of a metric and the components in its name.
pub(super) fn find<'a>(benchmark: &str, name: &'a str) -> Option<(&'static Benchmark, &'static Metric, Named<'a>)> {
    let benchmark = BENCHMARKS.iter().chain(BETWEEN_NODES).find(|b| b.name == benchmark)?;
    benchmark.all_metrics().find_map(|metric| Some((benchmark, metric, matches(metric.pattern, name)?)))
}

fn known(benchmark: &'static Benchmark, entry: &'static Metric, named: Named<'_>) -> Described {
    let own = Category::of(entry.of);
    let usual = if own == Category::Unknown { benchmark.category } else { own };
    Described {
        component: component(entry.of, named),
        role: entry.role,
        category: entry.category.unwrap_or(usual),
        unit: Some(entry.unit),
        direction: Some(entry.direction),
        decimals: entry.decimals,
        title: Cow::Borrowed(entry.title),
        kind: Cow::Borrowed(entry.pattern),
        aggregated: false,
        limit: entry.limit,
        benchmark: Some(benchmark),
    }
}

/// The component of a kind; a part whose number a name should have and has not is the whole.
fn component(kind: ComponentKind, named: Named<'_>) -> Component {
    if let (ComponentKind::IbPort, Some((adapter, port))) = (kind, named.port) {
        return Component::IbPort(format!("{adapter}/{port}"));
    }
    match (kind, named.first, named.second) {
        (ComponentKind::Core, Some(core), _) => Component::Core(core),
        (ComponentKind::Gpu, Some(gpu), _) => Component::Gpu(gpu),
        (ComponentKind::GpuLink, Some(a), Some(b)) => Component::GpuLink(a.min(b), a.max(b)),
        (ComponentKind::Cpu | ComponentKind::Core, ..) => Component::Cpu,
        (ComponentKind::Memory, ..) => Component::Memory,
        (ComponentKind::Disk, ..) => Component::Disk(None),
        (ComponentKind::Nic | ComponentKind::IbPort, ..) => Component::Nic(None),
        (ComponentKind::Gpu | ComponentKind::Gpus | ComponentKind::GpuLink, ..) => Component::Gpus,
        (ComponentKind::Application, ..) => Component::Application,
        (ComponentKind::Node, ..) => Component::Node,
    }
}

fn foreign(metric: &MetricId) -> Described {
    let (kind, component) = foreign_parts(&metric.name);
    Described {
        category: Category::of(component.kind()),
        component,
        role: role(metric),
        unit: None,
        direction: None,
        decimals: decimals(Unit::Seconds),
        title: Cow::Owned(kind.to_owned()),
        kind: Cow::Owned(kind.to_owned()),
        aggregated: false,
        limit: None,
        benchmark: super::benchmark(&metric.benchmark),
    }
}

/// What is measured, and on which component.
fn foreign_parts(name: &str) -> (&str, Component) {
    let numbered = name.rsplit_once(':').and_then(|(kind, part)| Some((kind, named(part)?)));
    numbered.unwrap_or((name, Component::Application))
}

fn named(part: &str) -> Option<Component> {
    let number = |text: &str| text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    match part.strip_prefix("core") {
        Some(core) => number(core).map(Component::Core),
        None => number(part.strip_prefix("gpu").unwrap_or(part)).map(Component::Gpu),
    }
}

/// Whether a name ends in a percentile from the 90th on, `lat_p99.9` or `lat_ns_99`.
fn is_tail(kind: &str) -> bool {
    let last = kind.rsplit_once(['-', '_']).map_or("", |(_, last)| last.strip_prefix('p').unwrap_or(last));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (whole, part) = last.split_once('.').unwrap_or((last, "0"));
    whole.len() >= 2 && whole.starts_with('9') && digits(whole) && digits(part)
}

impl Described {
    /// `value` in the unit of `series`, with the prefix and the digits that say something.
    #[must_use]
    pub fn show(&self, unit: Unit, value: f64) -> String {
        self.benchmark.map_or_else(|| unit.show(value), |_| unit.show_with(value, self.decimals))
    }
}

/// A name of a pattern.
#[cfg(test)]
pub(super) fn example(pattern: &str) -> String {
    let (core, gpu) = (pattern.replace("{core}", "3"), "{gpu}");
    core.replacen(gpu, "1", 1)
        .replace(gpu, "0")
        .replace("{n}", "2")
        .replace("{size}", "16MiB")
        .replace("{port}", "mlx5_0:1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(benchmark: &str, name: &str) -> Described {
        describe(&MetricId::new(benchmark, name, "own"))
    }

    #[test]
    fn a_metric_speaks_of_its_component() {
        for (benchmark, name, component, category) in [
            ("cpu-core", "speed:core3", Component::Core(3), Category::CpuMemory),
            ("cpu-burn", "core_12_flops", Component::Core(12), Category::CpuMemory),
            ("cpu-burn", "flops", Component::Cpu, Category::CpuMemory),
            ("cpu-stream", "triad-1t", Component::Memory, Category::CpuMemory),
            ("disk", "rand-read-p99.9", Component::Disk(None), Category::Disk),
            ("net-loopback", "rtt", Component::Nic(None), Category::Network),
            ("ib-loopback", "write-8MiB:mlx5_3:1", Component::IbPort("mlx5_3/1".into()), Category::Network),
            ("ib-allreduce", "all-reduce-256MiB", Component::Nic(None), Category::Network),
            ("net-pair", "rtt-4096", Component::Nic(None), Category::Network),
            ("gpu-stream", "copy:3", Component::Gpu(3), Category::Gpu),
            ("gpu-copy-bw", "host-to-device:0", Component::Gpu(0), Category::Pcie),
            ("gpu-peer-bw", "gpu7-to-gpu2", Component::GpuLink(2, 7), Category::NvLink),
            ("gpu-peer-bw", "read:1", Component::Gpu(1), Category::NvLink),
            ("nccl-bw", "all-to-all-1GiB", Component::Gpus, Category::NvLink),
            ("train-lstm", "lstm_fp32_train_step_time", Component::Application, Category::Unknown),
        ] {
            let found = of(benchmark, name);
            assert_eq!((found.component, found.category), (component, category), "{benchmark}/{name}");
            assert!(found.benchmark.is_some() && found.unit.is_some() && found.direction.is_some());
        }
        assert_eq!(of("gpu-stream", "copy:3").kind, of("gpu-stream", "copy:0").kind);
        assert_ne!(of("gpu-stream", "copy:3").kind, of("gpu-stream", "read:3").kind);
    }

    #[test]
    fn sensors_are_informational_and_only_the_clock_under_full_load_is_judged() {
        let role = |benchmark, name| of(benchmark, name).role;
        for (benchmark, name) in [("gpu-burn", "power:3"), ("gemm-flops", "temperature:0"), ("gpu-copy-bw", "clock:1")]
        {
            assert_eq!(role(benchmark, name), MetricRole::Informational, "{benchmark}/{name}");
        }
        for (benchmark, name) in [("gpu-burn", "clock:3"), ("gemm-flops", "clock:0"), ("gpu-stream", "copy:0")] {
            assert_eq!(role(benchmark, name), MetricRole::Judged, "{benchmark}/{name}");
        }
        assert_eq!(role("disk", "rand-read-p99"), MetricRole::Tail);
        assert_eq!(role("disk", "rand-read-p50"), MetricRole::Judged);
    }

    #[test]
    fn a_foreign_name_says_its_gpu_or_core_and_whether_it_is_a_tail() {
        for (name, component, kind, tail) in [
            ("fp64_flops:3", Component::Gpu(3), "fp64_flops", false),
            ("speed:gpu3", Component::Gpu(3), "speed", false),
            ("speed:core3", Component::Core(3), "speed", false),
            ("seq_read_lat_ns_99.9:1", Component::Gpu(1), "seq_read_lat_ns_99.9", true),
            ("allreduce_0_3:8_busbw", Component::Application, "allreduce_0_3:8_busbw", false),
            ("rand-write-latency-p95", Component::Application, "rand-write-latency-p95", true),
            ("allreduce_8192_busbw", Component::Application, "allreduce_8192_busbw", false),
            ("x_9", Component::Application, "x_9", false),
        ] {
            let found = of("theirs", name);
            let role = if tail { MetricRole::Tail } else { MetricRole::Judged };
            assert_eq!((found.component, &*found.kind, found.role), (component, kind, role), "{name}");
            assert_eq!((found.benchmark, found.unit), (None, None));
            assert_eq!(super::role(&MetricId::new("theirs", name, "own")), role);
        }
    }

    #[test]
    fn a_tail_is_a_percentile_of_two_digits_or_more_that_begins_with_nine() {
        for name in ["lat_p90", "lat_99", "lat-p99.9", "lat_ns_999", "lat_95.25"] {
            assert!(is_tail(name), "{name}");
        }
        for name in
            ["lat_p9", "lat_85", "lat_9x", "lat_99.", "lat_99.x", "lat_p", "lat_", "p99", "99", "lat_pp99", "lat_.9"]
        {
            assert!(!is_tail(name), "{name}");
        }
    }

    #[test]
    fn only_digits_number_a_gpu_or_a_core() {
        for name in ["x:+3", "x:gpu-1", "x:core", "x:gpu", "x:", "x:core+3", "x:3a", "x:99999999999"] {
            assert_eq!(of("theirs", name).component, Component::Application, "{name}");
        }
        assert_eq!(
            (of("theirs", "x:07").component, of("theirs", ":core0").component),
            (Component::Gpu(7), Component::Core(0))
        );
    }

    #[test]
    fn values_are_shown_with_the_digits_of_their_metric() {
        assert_eq!(of("gpu-stream", "copy:3").show(Unit::BytesPerSec, 3.0512e12), "3.05 TB/s");
        assert_eq!(of("gpu-burn", "power:3").show(Unit::Watts, 612.4), "612 W");
        assert_eq!(of("theirs", "x").show(Unit::BytesPerSec, 41.23e9), "41.2 GB/s");
    }

    proptest! {
        #[test]
        fn no_name_is_too_strange(benchmark in "\\PC{0,12}", name in "[a-z0-9:_.{}p-]{0,24}") {
            let _ = of(&benchmark, &name);
            let _ = of("gpu-peer-bw", &name);
        }
    }
}

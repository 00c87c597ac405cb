//! What an entry of the catalogue says.

use serde::{Deserialize, Serialize};

use crate::{Category, ComponentKind, Direction, Unit};

/// What a number is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetricRole {
    /// Compared with peers; speaks for or against its component.
    Judged,
    /// Shown, never judged: power and temperature differ with card, slot and air, and have checks with limits.
    Informational,
    /// A percentile from the 90th on: it repeats nowhere and says nothing of how quiet the place was.
    Tail,
}

impl MetricRole {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Judged, Self::Informational, Self::Tail];

    /// The word in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Judged => "judged",
            Self::Informational => "informational",
            Self::Tail => "tail",
        }
    }
}

/// What a benchmark runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunsOn {
    /// CPUs, memory, disk or network, by the probe itself.
    Host,
    /// Every GPU at the same time, one GPU worker for each.
    EachGpu,
    /// One GPU after the other: copies share the way to the host.
    GpuByGpu,
    /// All GPUs together, one GPU worker for the node.
    AllGpus,
}

/// When a benchmark should run: what comes later heats the node up, or asks what the parts before it explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// One part at a time: bandwidth, latency.
    Part,
    /// Everything at once, which heats the node up.
    Burn,
    /// What an application does.
    EndToEnd,
}

/// A benchmark's entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Benchmark {
    /// Name used in playbooks, on the command line and in metric identities.
    pub name: &'static str,
    /// One sentence for lists.
    pub about: &'static str,
    /// Longest it may take per profile (smoke, quick, standard, full), seconds; past it the console gives up.
    pub limit_s: [u32; 4],
    /// What it runs on.
    pub runs_on: RunsOn,
    /// When it should run.
    pub stage: Stage,
    /// What is broken when the benchmark itself fails, and where a metric's component does not say.
    pub category: Category,
    /// The metrics of its own.
    pub metrics: &'static [Metric],
    /// What is recorded beside them, the same for many benchmarks.
    pub sensors: &'static [Metric],
}

impl Benchmark {
    /// A benchmark of the host, for parts of it.
    pub(super) const fn host(name: &'static str, about: &'static str, metrics: &'static [Metric]) -> Self {
        let (runs_on, stage, category) = (RunsOn::Host, Stage::Part, Category::CpuMemory);
        Self { name, about, limit_s: [20, 60, 180, 600], runs_on, stage, category, metrics, sensors: &[] }
    }

    /// A benchmark of every GPU, its sensors recorded meanwhile.
    pub(super) const fn gpu(
        name: &'static str,
        about: &'static str,
        metrics: &'static [Metric],
        sensors: &'static [Metric],
    ) -> Self {
        let (runs_on, stage, category) = (RunsOn::EachGpu, Stage::Part, Category::Gpu);
        Self { name, about, limit_s: [120, 120, 300, 900], runs_on, stage, category, metrics, sensors }
    }

    pub(super) const fn limit_s(self, limit_s: [u32; 4]) -> Self {
        Self { limit_s, ..self }
    }

    pub(super) const fn runs_on(self, runs_on: RunsOn) -> Self {
        Self { runs_on, ..self }
    }

    pub(super) const fn stage(self, stage: Stage) -> Self {
        Self { stage, ..self }
    }

    pub(super) const fn category(self, category: Category) -> Self {
        Self { category, ..self }
    }

    /// Its own metrics, then its sensors.
    pub fn all_metrics(&self) -> impl Iterator<Item = &'static Metric> {
        self.metrics.iter().chain(self.sensors)
    }

    /// Whether the GPU worker runs it.
    #[must_use]
    pub fn is_gpu(&self) -> bool {
        self.runs_on != RunsOn::Host
    }
}

/// A metric's entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Its name, with placeholders: `{core}` and `{gpu}` are the number of the component, `{n}` is any number, `{size}` a
    /// number with `KiB`, `MiB` or `GiB`, `{port}` at the end an RDMA port such as `mlx5_0:1`. `speed:core{core}` is the name `speed:core3`.
    pub pattern: &'static str,
    /// What it speaks of; which one of them, the placeholders say.
    pub of: ComponentKind,
    /// Unit of its values.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// Most digits behind the point once the value has its prefix: 2 for `2.11 TB/s`.
    pub decimals: u8,
    /// What it is used for.
    pub role: MetricRole,
    /// What is broken when it is bad; `None` leaves that to the component.
    pub category: Option<Category>,
    /// What the field calls it.
    pub title: &'static str,
    /// Worst value that may pass on any node, whatever the peers do.
    pub limit: Option<f64>,
}

impl Metric {
    const fn new(
        pattern: &'static str,
        of: ComponentKind,
        (unit, direction): (Unit, Direction),
        title: &'static str,
    ) -> Self {
        let (decimals, role) = (decimals(unit), MetricRole::Judged);
        Self { pattern, of, unit, direction, decimals, role, category: None, title, limit: None }
    }

    /// More is better.
    pub(super) const fn rate(pattern: &'static str, of: ComponentKind, unit: Unit, title: &'static str) -> Self {
        Self::new(pattern, of, (unit, Direction::HigherIsBetter), title)
    }

    /// Less is better.
    pub(super) const fn cost(pattern: &'static str, of: ComponentKind, unit: Unit, title: &'static str) -> Self {
        Self::new(pattern, of, (unit, Direction::LowerIsBetter), title)
    }

    /// Nanoseconds.
    pub(super) const fn time(pattern: &'static str, of: ComponentKind, title: &'static str) -> Self {
        Self::cost(pattern, of, Unit::Nanos, title)
    }

    pub(super) const fn role(self, role: MetricRole) -> Self {
        Self { role, ..self }
    }

    pub(super) const fn category(self, category: Category) -> Self {
        Self { category: Some(category), ..self }
    }

    pub(super) const fn decimals(self, decimals: u8) -> Self {
        Self { decimals, ..self }
    }

    pub(super) const fn limit(self, limit: f64) -> Self {
        Self { limit: Some(limit), ..self }
    }
}

/// Digits behind the point that say something, where an entry does not know better.
pub(super) const fn decimals(unit: Unit) -> u8 {
    match unit {
        Unit::BytesPerSec | Unit::FlopPerSec | Unit::OpsPerSec | Unit::Seconds | Unit::Hertz => 2,
        Unit::Nanos | Unit::Bytes | Unit::Ratio => 1,
        Unit::Celsius | Unit::Watts | Unit::Count => 0,
    }
}

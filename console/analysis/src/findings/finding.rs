//! What is wrong with a part of a node, from whichever source.

use muster_wire::{Component, Direction, MetricId, Unit};
use serde::{Deserialize, Deserializer, Serialize};

use crate::State;
use crate::checks::by_id;

/// One thing that is to be said of one component of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Node name.
    pub node: String,
    /// The part it is about.
    pub component: Component,
    /// Where it comes from.
    pub source: Source,
    /// What it makes of the component: fail, warn, unknown, not run; a pass or not applicable is a remark that changes
    /// nothing.
    pub state: State,
    /// How far off, where there is a number.
    pub effect: Option<Effect>,
    /// What it was compared with.
    pub compared: Option<Compared>,
    /// Milliseconds since 1970 UTC from which on it has been so, where that is known.
    pub since_ms: Option<u64>,
    /// Whether another visit may decide it: a stall passes, a slow node stays slow.
    pub again: bool,
    /// What was seen, against what; begins with the node's name. Empty where another finding says it already.
    pub sentence: String,
    /// What to do; empty where there is nothing to do.
    pub next: String,
}

/// Id of a check of this program.
pub type CheckId = &'static str;

/// What a finding was made from; also the way to its evidence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Source {
    /// One metric against its peers, or against a frozen criterion.
    Metric(MetricId),
    /// Several metrics of one component together.
    Metrics(Vec<MetricId>),
    /// A health or consistency check, by its id.
    Check(#[serde(deserialize_with = "known")] CheckId),
    /// How a benchmark ended, by its name.
    Benchmark(String),
    /// One core against the other cores of its node.
    Cores,
    /// Bits that differ where every node must compute the same.
    Digests(String),
    /// A GPU against its own past.
    GpuHistory,
    /// Measurements between pairs of nodes.
    Pairs,
    /// Foreign load while it was measured.
    Load,
    /// The connection to the node.
    Link,
    /// The name that the node gives itself.
    HostName,
    /// Results that the node was not asked for.
    OutOfTurn,
}

fn known<'de, D: Deserializer<'de>>(from: D) -> Result<CheckId, D::Error> {
    Ok(by_id::deserialize(from)?.id)
}

impl Source {
    /// The word used in reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Metric(_) | Self::Metrics(_) => "metric",
            Self::Check(_) => "check",
            Self::Benchmark(_) => "benchmark",
            Self::Cores => "cores",
            Self::Digests(_) => "digests",
            Self::GpuHistory => "gpu-history",
            Self::Pairs => "pairs",
            Self::Load => "load",
            Self::Link => "link",
            Self::HostName => "host-name",
            Self::OutOfTurn => "out-of-turn",
        }
    }

    /// Names of the benchmarks to run again to look a second time.
    #[must_use]
    pub fn benchmarks(&self) -> Vec<&str> {
        match self {
            Self::Metric(id) => vec![&id.benchmark],
            Self::Metrics(ids) => {
                let mut names: Vec<&str> = ids.iter().map(|id| id.benchmark.as_str()).collect();
                names.sort_unstable();
                names.dedup();
                names
            }
            Self::Benchmark(name) | Self::Digests(name) => vec![name],
            _ => Vec::new(),
        }
    }
}

/// How far off a component is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The metric that says it best.
    pub metric: MetricId,
    /// Unit of `value` and `usual`.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// The node's own median.
    pub value: f64,
    /// The peers' median, or the frozen criterion's.
    pub usual: f64,
    /// One standard deviation of what a healthy node may differ, as a share of `usual`.
    pub scale: f64,
}

impl Effect {
    /// Change of the metric itself against what is usual: -0.31 is 31 % below.
    #[must_use]
    pub fn change(&self) -> f64 {
        self.value / self.usual - 1.0
    }

    /// `2.11 TB/s, 31 % below`.
    #[must_use]
    pub fn words(&self) -> String {
        format!("{}, {}", self.unit.show(self.value), change(self.value, self.usual))
    }
}

/// The difference of a metric from what is usual as it is said everywhere: signed by its word, in percent of what is
/// usual, and more than twice of it as a factor: `31 % below`, `82 % above`, `5.1x that of`. Of nothing there is no percent.
#[must_use]
pub fn change(value: f64, usual: f64) -> String {
    let ratio = value / usual;
    if ratio == 0.0 {
        return "100 % below".to_owned();
    }
    if usual == 0.0 && value > 0.0 {
        return "above".to_owned();
    }
    if !ratio.is_finite() || ratio <= 0.0 {
        return "not comparable with".to_owned();
    }
    if ratio > 1e6 {
        return format!("{ratio:.1e}x that of");
    }
    if ratio > 2.0 {
        return format!("{ratio:.1}x that of");
    }
    let word = if ratio < 1.0 { "below" } else { "above" };
    let percent = (ratio - 1.0).abs() * 100.0;
    if !(9.95..99.5).contains(&percent) { format!("{percent:.1} % {word}") } else { format!("{percent:.0} % {word}") }
}

/// What a component was compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Which nodes, such as `profile=quick,sku=h100`; empty for all.
    pub group: String,
    /// How many others.
    pub peers: usize,
    /// Identity of the frozen criterion, where one was applied.
    pub criterion: Option<String>,
}

impl Finding {
    /// A finding with a sentence and nothing else.
    #[must_use]
    pub fn new(node: &str, component: Component, source: Source, state: State, sentence: String) -> Self {
        Self {
            node: node.to_owned(),
            component,
            source,
            state,
            effect: None,
            compared: None,
            since_ms: None,
            again: false,
            sentence,
            next: String::new(),
        }
    }

    /// The same, if `again` to be looked at once more.
    #[must_use]
    pub fn again(self, again: bool) -> Self {
        Self { again, ..self }
    }

    /// The same, with what to do.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = next.into();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_one_number_with_one_meaning() {
        for (value, usual, words) in [
            (69.0, 100.0, "31 % below"),
            (182.0, 100.0, "82 % above"),
            (510.0, 100.0, "5.1x that of"),
            (20.0, 100.0, "80 % below"),
            (95.0, 100.0, "5.0 % below"),
            (0.0, 100.0, "100 % below"),
            (5.0, 0.0, "above"),
            (0.0, 0.0, "not comparable with"),
            (f64::NAN, 1.0, "not comparable with"),
        ] {
            assert_eq!(change(value, usual), words);
        }
    }
}

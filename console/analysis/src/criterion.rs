//! What a fleet's criterion is made of: the medoid's sample, the parameters it was found with, and how far it
//! may be trusted.

use muster_wire::{Direction, MetricId, Unit};
use serde::{Deserialize, Serialize};

use crate::decide::Frozen;
use crate::{BadSample, Sample, Spread};

/// How criteria are found and applied. Stored with every criterion, so that a verdict can be repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Params {
    /// A node whose one-sided similarity is this or less is a defect (SuperBench's alpha).
    pub alpha: f64,
    /// Share of steps a regression must touch to count in full; 0 is the paper's formula, in which a single
    /// slow step of a thousand costs half the similarity.
    pub tau: f64,
    /// Fewer valid nodes than this give a provisional criterion, which accuses nobody.
    pub quorum: usize,
    /// Slowdown (ratio of cost, 1.3 = 30 % slower) a node needs to fail where a metric is not repeatable.
    pub wide_ratio: f64,
    /// Robust spreads of the fleet it must lie beyond as well.
    pub wide_spreads: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { alpha: 0.95, tau: 0.01, quorum: 5, wide_ratio: 1.3, wide_spreads: 8.0 }
    }
}

/// How far a criterion may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Enough nodes agree, and alpha lies outside what they scatter: a healthy node comes out as a defect with a chance
    /// of at most one in a thousand.
    Ok,
    /// Too few nodes for a quorum: a doubt is a warning at most.
    Provisional,
    /// Fewer than half of the nodes agree with any one of them: give a reference or a specification.
    NoConsensus,
    /// Two clusters, each in agreement with itself, the smaller one more than a third of the nodes: which of them is
    /// normal cannot be said from this metric. Smaller ones are listed ([`Criterion::clusters`]) and change nothing.
    Bimodal,
    /// Healthy nodes scatter too widely for alpha: by their repeatability, or because a healthy node would come out
    /// as a defect more often than once in a thousand.
    NotRepeatable,
}

impl Status {
    /// The word used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Provisional => "provisional",
            Self::NoConsensus => "no_consensus",
            Self::Bimodal => "bimodal",
            Self::NotRepeatable => "not_repeatable",
        }
    }
}

/// How finely the runs of two nodes are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grain {
    /// Step by step, as distributions: also sees a node that is slow now and then.
    #[default]
    Steps,
    /// By the mean step: what is left where steps do not repeat and whole runs do. SuperBench's micro-benchmarks
    /// are compared so throughout (ATC'24, section 3.2: one value per run).
    Mean,
    /// By the median step, where single stalls spoil even the mean.
    Median,
}

impl Grain {
    /// From the finest to the coarsest.
    pub(crate) const ALL: [Self; 3] = [Self::Steps, Self::Mean, Self::Median];

    /// The word used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Mean => "mean",
            Self::Median => "median",
        }
    }

    /// `sample` as it is compared.
    #[must_use]
    pub fn of(self, sample: &Sample) -> Sample {
        match self {
            Self::Steps => sample.clone(),
            Self::Mean => Sample::single(sample.mean()),
            Self::Median => Sample::single(sample.median()),
        }
    }
}

/// Nodes of a fleet that are alike, and unlike its other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// How many nodes.
    pub nodes: usize,
    /// Median of their medians, in the metric's unit.
    pub median: f64,
}

/// What good nodes look like for one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Criterion {
    /// Stable content identity: equal inputs give equal ids, on any machine.
    pub id: String,
    /// Metric it is for; never applied to another.
    pub metric: MetricId,
    /// Unit of the sample.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// Threshold of the one-sided similarity.
    pub alpha: f64,
    /// Tail floor of the distance.
    pub tau: f64,
    /// What of the samples is compared.
    #[serde(default)]
    pub grain: Grain,
    /// Nodes with a valid sample.
    pub n: usize,
    /// Of those, the ones counted healthy: above alpha; where the metric is not repeatable, those not far
    /// outside the fleet.
    pub healthy: usize,
    /// Trust.
    pub status: Status,
    /// Mean similarity over all pairs of healthy nodes; absent with fewer than two.
    pub repeatability: Option<f64>,
    /// The medoid's sample; absent when no node had a valid one.
    pub sample: Option<Sample>,
    /// The fleet's own spread; absent with fewer than two valid nodes.
    pub spread: Option<Spread>,
    /// Distance (0 to 1) from the criterion that a healthy node exceeds with a chance of one in a thousand, as the
    /// healthy nodes scatter; absent without a quorum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scatter: Option<f64>,
    /// The two clusters the fleet falls into, the larger one first; empty where it is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<Cluster>,
}

impl Criterion {
    /// A criterion of one value that is taken on trust, such as a published baseline: no fleet was asked.
    ///
    /// # Errors
    /// When the value cannot be measured.
    pub fn reference(metric: MetricId, unit: Unit, direction: Direction, value: f64) -> Result<Self, BadSample> {
        let Params { alpha, tau, .. } = Params::default();
        let criterion = Self {
            id: String::new(),
            metric,
            unit,
            direction,
            alpha,
            tau,
            grain: Grain::Median,
            n: 1,
            healthy: 1,
            status: Status::Ok,
            repeatability: None,
            sample: Some(Sample::new(&[value])?),
            spread: None,
            scatter: None,
            clusters: Vec::new(),
        };
        Ok(criterion.identified())
    }

    /// How far nodes may differ by a criterion of one run whose samples are not at hand: by the fleet's own spread, and between
    /// runs by an assumed percent. `None` where the criterion does not say how far its nodes differ.
    #[must_use]
    pub fn assumed_spread(&self) -> Option<Frozen> {
        let spread = self.spread.filter(|_| self.healthy >= 4)?;
        Some(Frozen::of_one_run(spread.centre, spread.scale, self.healthy))
    }

    /// Whether the id is that of the content: a criterion changed by hand keeps its name and loses this.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.clone().identified().id == self.id
    }

    /// Fills in [`Criterion::id`] from everything else that decides a verdict.
    #[must_use]
    pub(crate) fn identified(mut self) -> Self {
        let mut hash = Fnv::default();
        hash.text(&self.metric.to_string());
        hash.text(&format!("{:?} {:?} {} {}", self.unit, self.direction, self.status.name(), self.n));
        hash.text(self.grain.name());
        for number in [self.alpha, self.tau, self.healthy as f64] {
            hash.number(number);
        }
        if let Some(spread) = &self.spread {
            hash.number(spread.centre);
            hash.number(spread.scale);
        }
        if let Some(sample) = &self.sample {
            sample.values().iter().for_each(|&v| hash.number(v));
        }
        self.id = format!("{}#{:016x}", self.metric, hash.0);
        self
    }
}

/// FNV-1a, 64 bits: short and the same everywhere; identity, not security.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.bytes(&[0xff]);
    }

    fn number(&mut self, number: f64) {
        self.bytes(&number.to_bits().to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_criterion_changed_by_hand_is_no_longer_whole() {
        let id = MetricId::new("mem-bw", "h2d_bw", "superbench");
        let mut criterion = Criterion::reference(id, Unit::BytesPerSec, Direction::HigherIsBetter, 26e9).unwrap();
        assert!(criterion.is_whole());
        criterion.alpha = 0.5;
        assert!(!criterion.is_whole());
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        let mut hash = Fnv::default();
        hash.bytes(b"foobar");
        assert_eq!(hash.0, 0x8594_4171_f739_67e8);
    }
}

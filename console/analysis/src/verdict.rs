//! What is said about one node and one metric, and when a doubt becomes an accusation.

use std::sync::Arc;

use muster_wire::{Direction, MetricId, MetricRole, role};
use serde::{Deserialize, Serialize};

use crate::distance::{is_defect, one_sided};
use crate::why::{alike, how_much, scatter, two_clusters};
use crate::{BadSample, Criterion, Grain, Params, Sample, Status};

/// What is known of a node or of one of its metrics. Ordered by severity: the worst of several is their maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Cannot apply to this node.
    NotApplicable,
    /// As good as its fleet.
    Pass,
    /// Not run, by choice or because the node was not reached.
    NotRun,
    /// Measured, and not decidable.
    Unknown,
    /// Worse than its fleet, without enough evidence to accuse.
    Warn,
    /// Worse than its fleet, or the benchmark failed.
    Fail,
}

impl State {
    /// The word used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Unknown => "unknown",
            Self::NotRun => "not_run",
            Self::NotApplicable => "not_applicable",
        }
    }
}

/// What a node delivered for a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Observation {
    /// Measured.
    Sample(Sample),
    /// Tried and failed, with the reason; counts against the node.
    Failed(String),
    /// Not there, with the reason; counts neither way.
    Missing(String),
    /// Measured while the node was not itself, with the reason; counts neither way.
    Disturbed(Sample, String),
}

impl Observation {
    /// Observation from raw values: a series that cannot be a measurement is a failed run.
    #[must_use]
    pub fn from_values(values: &[f64]) -> Self {
        Sample::new(values).map_or_else(|why: BadSample| Self::Failed(why.to_string()), Self::Sample)
    }

    /// As [`Self::from_values`], of the single steps of one visit in the order measured.
    #[must_use]
    pub fn from_steps(steps: &[f64]) -> Self {
        Sample::in_steps(steps).map_or_else(|why: BadSample| Self::Failed(why.to_string()), Self::Sample)
    }

    /// What was measured, judged or not.
    #[must_use]
    pub fn sample(&self) -> Option<&Sample> {
        match self {
            Self::Sample(s) | Self::Disturbed(s, _) => Some(s),
            Self::Failed(_) | Self::Missing(_) => None,
        }
    }

    /// The same, measured while something else disturbed the node.
    #[must_use]
    pub fn disturbed(self, why: &str) -> Self {
        match self {
            Self::Sample(s) => Self::Disturbed(s, why.to_owned()),
            other => other,
        }
    }

    /// The sample, unless the run failed: a rate whose middle step is zero did no work.
    pub(crate) fn valid(&self, dir: Direction) -> Result<&Sample, (State, String)> {
        match self {
            Self::Sample(s) if dir == Direction::HigherIsBetter && s.median() <= 0.0 => {
                Err((State::Fail, "failed: it did no work, its median rate is zero".into()))
            }
            Self::Sample(s) => Ok(s),
            Self::Failed(why) => Err((State::Fail, format!("failed: {why}"))),
            Self::Missing(why) => Err((State::NotRun, format!("not measured: {why}"))),
            Self::Disturbed(_, why) => Err((State::Unknown, format!("not judged: {why}"))),
        }
    }
}

/// The judgement on one node and metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeVerdict {
    /// Node name.
    pub node: Arc<str>,
    /// Metric.
    pub metric: MetricId,
    /// Judgement.
    pub state: State,
    /// One-sided similarity to the criterion, when both exist.
    pub similarity: Option<f64>,
    /// Median of the node's sample.
    pub value: Option<f64>,
    /// One sentence for a person; empty where the node passes.
    pub reason: String,
}

/// Worst state among `verdicts`; [`State::NotRun`] when there are none.
#[must_use]
pub fn fleet_state(verdicts: &[NodeVerdict]) -> State {
    verdicts.iter().map(|v| v.state).max().unwrap_or(State::NotRun)
}

/// Judges one node against a criterion found before. A node without a comparable criterion is undecided.
#[must_use]
pub fn judge(node: impl Into<Arc<str>>, observed: &Observation, criterion: &Criterion) -> NodeVerdict {
    let margin = |sample: &Sample| {
        let spread = criterion.spread?;
        let (ratio, spreads) = spread.slowdown(sample.median(), criterion.direction);
        Some(Margin { ratio, spreads, peers: criterion.healthy })
    };
    let margin = observed.valid(criterion.direction).ok().and_then(margin);
    judge_with(&node.into(), observed, criterion, margin, (&Params::default(), role(&criterion.metric), true))
}

/// How far a node lies outside its peers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Margin {
    /// Cost over the peers' median cost.
    pub(crate) ratio: f64,
    /// The same in robust spreads of the peers.
    pub(crate) spreads: f64,
    /// How many peers.
    pub(crate) peers: usize,
}

pub(crate) fn judge_with(
    node: &Arc<str>,
    observed: &Observation,
    criterion: &Criterion,
    margin: Option<Margin>,
    (params, role, reasons): (&Params, MetricRole, bool),
) -> NodeVerdict {
    let verdict = |state, similarity, value, reason| NodeVerdict {
        node: node.clone(),
        metric: criterion.metric.clone(),
        state,
        similarity,
        value,
        reason,
    };
    let sample = match observed.valid(criterion.direction) {
        Ok(sample) => sample,
        Err((state, why)) => {
            let value = observed.sample().map(Sample::median);
            return verdict(state, None, value, format!("{node}: {} {why}", criterion.metric.path()));
        }
    };
    if role == MetricRole::Informational {
        let why = format!("{node}: {} is informational and not judged", criterion.metric.path());
        return verdict(State::NotApplicable, None, Some(sample.median()), why);
    }
    let Some(reference) = &criterion.sample else {
        let why = format!("{node}: nothing to compare {} with", criterion.metric.path());
        return verdict(State::Unknown, None, Some(sample.median()), why);
    };
    let similarity = match criterion.grain {
        Grain::Steps => one_sided(sample, reference, criterion.direction, criterion.tau),
        grain => one_sided(&grain.of(sample), &grain.of(reference), criterion.direction, criterion.tau),
    };
    let case = Case { node, sample, reference, criterion, similarity, margin, params };
    let (state, reason) = case.decide(reasons);
    verdict(state, Some(similarity), Some(sample.median()), reason)
}

struct Case<'a> {
    node: &'a str,
    sample: &'a Sample,
    reference: &'a Sample,
    criterion: &'a Criterion,
    similarity: f64,
    margin: Option<Margin>,
    params: &'a Params,
}

impl Case<'_> {
    /// The state and, where it is no pass and `reasons` are asked for, why.
    fn decide(&self, reasons: bool) -> (State, String) {
        let far = self.margin.filter(|margin| self.far_outside(*margin));
        let state = self.state(far.is_some());
        let reason = if reasons { self.reason(state, far) } else { String::new() };
        (state, reason)
    }

    fn state(&self, far: bool) -> State {
        let below = is_defect(self.similarity, self.criterion.alpha);
        match self.criterion.status {
            Status::Ok if below => State::Fail,
            Status::Provisional if self.criterion.n < 2 => State::Unknown,
            Status::Bimodal | Status::Provisional if below => State::Warn,
            Status::Ok | Status::Provisional => State::Pass,
            Status::NotRepeatable if far => State::Fail,
            Status::Bimodal | Status::NoConsensus | Status::NotRepeatable => State::Unknown,
        }
    }

    fn reason(&self, state: State, far: Option<Margin>) -> String {
        match (self.criterion.status, state) {
            (_, State::Pass) => String::new(),
            (Status::Ok, _) => self.sentence(&alike(self.criterion, self.sample)),
            (Status::Bimodal, State::Warn) => self.sentence(&format!("; {}", two_clusters(self.criterion))),
            (Status::Bimodal, _) => self.undecided(&two_clusters(self.criterion)),
            (Status::Provisional, State::Unknown) => {
                format!("{}: alone, nothing to compare {} with", self.node, self.path())
            }
            (Status::Provisional, _) => {
                let why = format!("; provisional, {} of {} nodes needed", self.criterion.n, self.params.quorum);
                self.sentence(&why)
            }
            (Status::NoConsensus, _) => self.undecided("the nodes do not agree on what is normal"),
            (Status::NotRepeatable, _) => match far {
                Some(margin) => self.sentence(&format!("; beyond {:.1} spreads", margin.spreads)),
                None => self.undecided(&format!("not repeatable here{}", scatter(self.criterion))),
            },
        }
    }

    /// Where a metric is not repeatable only a wide margin accuses: slow in the middle by ratio and by the
    /// fleet's own spread, and slow as a distribution, so that even its better steps are worse than usual.
    fn far_outside(&self, margin: Margin) -> bool {
        let (own, usual) = match self.criterion.direction {
            Direction::HigherIsBetter => (self.sample.quantile(0.75), self.reference.quantile(0.25)),
            Direction::LowerIsBetter => (-self.sample.quantile(0.25), -self.reference.quantile(0.75)),
        };
        self.criterion.n >= self.params.quorum
            && is_defect(self.similarity, self.criterion.alpha)
            && margin.ratio >= self.params.wide_ratio
            && margin.spreads >= self.params.wide_spreads
            && own < usual
    }

    fn level(&self, sample: &Sample) -> f64 {
        self.criterion.grain.of(sample).median()
    }

    fn path(&self) -> String {
        self.criterion.metric.path()
    }

    fn undecided(&self, why: &str) -> String {
        let alpha = self.criterion.alpha;
        let low = self.criterion.repeatability.filter(|r| *r < alpha);
        let low = low.map_or_else(String::new, |r| format!(", repeatability {r:.2} < {alpha:.2}"));
        format!("{}: {} similarity {:.2}, undecided: {why}{low}", self.node, self.path(), self.similarity)
    }

    /// `n3 is 48 % slower than 7 peers (cpu-gemm/fp32, similarity 0.51 < 0.95; beyond 9.2 spreads)`.
    fn sentence(&self, more: &str) -> String {
        let peers = self.margin.map_or(self.criterion.healthy, |m| m.peers);
        format!(
            "{} is {} than {peers} peers ({}, similarity {:.2} {} {:.2}{}{more})",
            self.node,
            how_much(self.level(self.sample), self.level(self.reference), self.criterion.direction),
            self.path(),
            self.similarity,
            if self.similarity < self.criterion.alpha { "<" } else { "<=" },
            self.criterion.alpha,
            self.by(),
        )
    }

    fn by(&self) -> &'static str {
        match self.criterion.grain {
            Grain::Steps => "",
            Grain::Mean => " by the mean of its steps",
            Grain::Median => " by its median step",
        }
    }
}

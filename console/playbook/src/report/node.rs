//! How components and findings of a node stand in the document.

use muster_analysis::State;
use muster_analysis::findings::{ComponentState, Finding, Source};
use muster_wire::{Unit, clean, limits};
use serde::{Deserialize, Serialize};

use super::rfc3339;

/// State of one component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComponentReport {
    /// Which part, such as `gpu:3`.
    pub component: String,
    /// The worst that is known of it.
    pub state: State,
    /// Something asked of it could not be decided, whatever the state.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
    /// Share of its speed that it could have lost and still pass, with probability 0.05; null where no measurement vouches
    /// for it.
    pub resolution: Option<f64>,
}

impl From<&ComponentState> for ComponentReport {
    fn from(known: &ComponentState) -> Self {
        Self {
            component: clean(&known.component.to_string(), limits::NAME_BYTES),
            state: known.state,
            undecided: known.undecided,
            // Nobody loses more than all.
            resolution: known.resolution.filter(|share| *share < 1.0),
        }
    }
}

/// One thing wrong with one component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FindingReport {
    /// Which part, such as `gpu:3`.
    pub component: String,
    /// Where it comes from: `metric`, `check`, `benchmark`, `cores`, `digests`, `gpu-history`, `pairs`, `load`, `link`,
    /// `host-name`, `out-of-turn`.
    pub source: String,
    /// The metrics (`benchmark/name`), the check or the benchmark behind it; empty for other sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
    /// What it makes of the component.
    pub state: State,
    /// Change of the metric itself against the peers' median, -0.31 for 31 % below; left out where there is no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<f64>,
    /// The node's own median; left out as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The peers' median; left out as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_median: Option<f64>,
    /// Unit of both; left out as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
    /// Standard deviation of what a healthy node may differ, as a share of the peers' median; left out as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// How many others it was compared with; left out where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<usize>,
    /// Which nodes they are, such as `cpu=EPYC 9654`; left out where it is all nodes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Identity of the frozen criterion; left out where none was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criterion: Option<String>,
    /// RFC 3339, UTC: since when; left out where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What was seen, against what; left out where another finding says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sentence: String,
    /// What to do; left out where there is nothing to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next: String,
}

impl From<&Finding> for FindingReport {
    fn from(finding: &Finding) -> Self {
        let text = |text: &str| clean(text, limits::TEXT_BYTES);
        let effect = finding.effect.as_ref();
        let number = |value: f64| Some(value).filter(|value| value.is_finite());
        let compared = finding.compared.as_ref();
        let of = match &finding.source {
            Source::Metric(id) => vec![id.path()],
            Source::Metrics(ids) => ids.iter().map(muster_wire::MetricId::path).collect(),
            Source::Check(id) => vec![(*id).to_owned()],
            Source::Benchmark(name) | Source::Digests(name) => vec![name.clone()],
            _ => Vec::new(),
        };
        Self {
            component: clean(&finding.component.to_string(), limits::NAME_BYTES),
            source: finding.source.name().to_owned(),
            of: of.iter().map(|name| text(name)).collect(),
            state: finding.state,
            change: effect.and_then(|effect| number(effect.change())),
            value: effect.and_then(|effect| number(effect.value)),
            peer_median: effect.and_then(|effect| number(effect.usual)),
            unit: effect.map(|effect| effect.unit),
            scale: effect.and_then(|effect| number(effect.scale)),
            peers: compared.map(|compared| compared.peers),
            group: compared.map_or_else(String::new, |compared| text(&compared.group)),
            criterion: compared.and_then(|compared| compared.criterion.as_deref().map(text)),
            since: finding.since_ms.map(rfc3339),
            sentence: text(&finding.sentence),
            next: text(&finding.next),
        }
    }
}

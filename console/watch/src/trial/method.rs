//! Which methods are there, and whom does each name in a recording?

use serde::Serialize;

use super::model::Model;
use super::recorded::Recorded;
use crate::minder::{Calls, Embedding, Look, USED, named};
use crate::{Settings, Watch};

/// A way to name machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Ours: [`crate::Watch`].
    Muster,
    /// Ours, with the first seven metrics of the learned order only.
    MusterPriority,
    /// Minder as printed.
    Minder,
    /// The same after two minutes instead of four.
    #[serde(rename = "minder_120s")]
    Minder120,
    /// The same without the network: distances of the windows themselves.
    MinderRaw,
    /// Without the network, after two minutes.
    #[serde(rename = "minder_raw_120s")]
    MinderRaw120,
    /// Distances of the windows' means, without continuity: every window names its candidate.
    Mean,
    /// The paper's baseline: moments, principal components, Mahalanobis distance.
    Mahalanobis,
}

/// What stands for a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    Raw,
    Mean,
    Network,
    Moments,
}

/// Continuity as printed, and half of it.
const PRINTED_S: f64 = 240.0;
const HALF_S: f64 = 120.0;

/// Somebody was named.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Told {
    /// Who.
    pub node: String,
    /// The metric that led; nothing where there is none.
    pub metric: Option<String>,
    /// When what was told began, epoch seconds.
    pub since_s: f64,
    /// When enough of it was there to name the machine.
    pub seen_s: f64,
    /// When it was told: later where the method is called every few minutes only.
    pub alerted_s: f64,
}

impl Method {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 8] = [
        Self::Muster,
        Self::MusterPriority,
        Self::Minder,
        Self::Minder120,
        Self::MinderRaw,
        Self::MinderRaw120,
        Self::Mean,
        Self::Mahalanobis,
    ];

    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Muster => "muster",
            Self::MusterPriority => "muster_priority",
            Self::Minder => "minder",
            Self::Minder120 => "minder_120s",
            Self::MinderRaw => "minder_raw",
            Self::MinderRaw120 => "minder_raw_120s",
            Self::Mean => "mean",
            Self::Mahalanobis => "mahalanobis",
        }
    }

    /// What it is, for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Muster => "muster",
            Self::MusterPriority => "muster, first 7 metrics only",
            Self::Minder => "Minder as printed",
            Self::Minder120 => "Minder, 120 s",
            Self::MinderRaw => "Minder without VAE",
            Self::MinderRaw120 => "Minder without VAE, 120 s",
            Self::Mean => "window means, no continuity",
            Self::Mahalanobis => "Mahalanobis and PCA",
        }
    }

    /// The method of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Whether it has to learn something from other recordings.
    #[must_use]
    pub const fn learns(self) -> bool {
        !matches!(self, Self::Muster)
    }

    /// What stands for a window and how long a machine must be the candidate, for methods of Minder's kind.
    pub(super) const fn form(self) -> Option<(Form, f64)> {
        match self {
            Self::Muster | Self::MusterPriority => None,
            Self::Minder => Some((Form::Network, PRINTED_S)),
            Self::Minder120 => Some((Form::Network, HALF_S)),
            Self::MinderRaw => Some((Form::Raw, PRINTED_S)),
            Self::MinderRaw120 => Some((Form::Raw, HALF_S)),
            Self::Mean => Some((Form::Mean, 0.0)),
            Self::Mahalanobis => Some((Form::Moments, PRINTED_S)),
        }
    }

    /// Whom it names; nothing where it has to know more than `model` holds.
    pub(super) fn told(self, recorded: &Recorded, model: Option<&Model>) -> Option<Vec<Told>> {
        let Some((form, continuity_s)) = self.form() else {
            let most = match self {
                Self::Muster => recorded.metrics.clone(),
                _ => model?.order.iter().map(|one| one.metric.clone()).take(USED).collect(),
            };
            return Some(ours(recorded, &most));
        };
        let model = model?;
        let threshold = *model.thresholds.get(self.name())?;
        let looks = looks(recorded, form, model);
        Some(of_looks(recorded, &looks, threshold, continuity_s))
    }
}

/// Whom our detector names by these metrics.
fn ours(recorded: &Recorded, metrics: &[String]) -> Vec<Told> {
    let mut watch = Watch::new(Settings::default());
    let nodes: Vec<_> = recorded.nodes.iter().map(|name| watch.node(name)).collect();
    let meant = |name: &String| if metrics.contains(name) { watch.metric(name) } else { None };
    let columns: Vec<_> = recorded.metrics.iter().map(meant).collect();
    for tick in &recorded.ticks {
        if let (Some(node), Some(metric)) = (nodes[usize::from(tick.node)], columns[usize::from(tick.metric)]) {
            watch.push(tick.time_s, node, metric, f64::from(tick.value));
        }
    }
    watch.finish();
    let one = |alert: &crate::Alert| Told {
        node: alert.node.clone(),
        metric: alert.metric.clone(),
        since_s: alert.since_s,
        seen_s: alert.alerted_s,
        alerted_s: alert.alerted_s,
    };
    watch.alerts().iter().filter(|alert| alert.group.is_none()).map(one).collect()
}

/// All calls over a recording, of the metrics that the model looks at first.
pub(super) fn looks(recorded: &Recorded, form: Form, model: &Model) -> Vec<Look> {
    let place = |name: &String| recorded.metrics.iter().position(|own| own == name);
    let mut order: Vec<usize> = model.order.iter().filter_map(|one| place(&one.metric)).collect();
    let embedding = match form {
        Form::Raw => Embedding::Raw,
        Form::Mean => Embedding::Mean,
        Form::Moments => Embedding::Moments,
        Form::Network => {
            let network = |name: &String| model.networks.get(name).map(|network| &network.weights);
            Embedding::Vae(recorded.metrics.iter().map(network).collect())
        }
    };
    // The baseline takes all metrics together.
    if form != Form::Moments {
        order.truncate(USED);
    }
    let calls = Calls { every_s: model.every_s, back_s: model.back_s, clip: model.clip };
    calls.looks(&recorded.grid, &order, &embedding)
}

/// Whom some calls name, in the words of the recording.
pub(super) fn of_looks(recorded: &Recorded, looks: &[Look], threshold: f64, continuity_s: f64) -> Vec<Told> {
    let start = recorded.grid.start_s();
    let one = |named: &crate::minder::Named| Told {
        node: recorded.nodes[named.node].clone(),
        metric: named.metric.map(|metric| recorded.metrics[metric].clone()),
        since_s: start + named.since_s,
        seen_s: start + named.seen_s,
        alerted_s: start + named.told_s,
    };
    named(looks, threshold, continuity_s).iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::truth::Truth;
    use super::*;
    use crate::minder::Tick;

    #[test]
    fn times_of_calls_are_those_of_the_recording() {
        // Node 2 of four is another from the 100th second on.
        let at = |second: u16| (0..4).map(move |node| (f64::from(second), node, node == 2 && second >= 100));
        let tick = |(second, node, odd)| Tick {
            time_s: 5_000.0 + second,
            value: if odd { 5.0 } else { 1.0 },
            node,
            metric: 0,
        };
        let names = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let ticks = (0..480).flat_map(at).map(tick).collect();
        let recorded = Recorded::new("r".into(), (names, vec!["m".into()]), ticks, Truth::default()).unwrap();
        let looks = Calls::default().looks(&recorded.grid, &[0], &Embedding::Raw);
        let told = of_looks(&recorded, &looks, 0.5, 240.0);
        let [told] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!((told.node.as_str(), told.metric.as_deref()), ("c", Some("m")));
        // The first window that holds such a second ends with it.
        assert_eq!((told.since_s, told.seen_s, told.alerted_s), (5_093.0, 5_340.0, 5_480.0));
    }

    #[test]
    fn methods_have_names_of_their_own_and_all_but_ours_learn() {
        let names: std::collections::BTreeSet<&str> = Method::ALL.iter().map(|method| method.name()).collect();
        let titles: std::collections::BTreeSet<&str> = Method::ALL.iter().map(|method| method.title()).collect();
        assert_eq!((names.len(), titles.len()), (8, 8));
        for method in Method::ALL {
            assert_eq!(Method::named(method.name()), Some(method));
            assert_eq!(method.learns(), method != Method::Muster);
            let written = serde_json::to_string(&method).unwrap();
            assert_eq!(written, format!("\"{}\"", method.name()), "the same word in documents");
        }
        assert_eq!(Method::named("maxder"), None);
        let seconds = Method::ALL.map(|method| method.form().map(|form| form.1));
        assert_eq!(seconds, [None, None, Some(240.0), Some(120.0), Some(240.0), Some(120.0), Some(0.0), Some(240.0)]);
    }
}

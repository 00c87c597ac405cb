//! What does a method learn from labelled recordings: the order of metrics, a network for each, and from which score on a machine is a candidate.

use std::collections::{BTreeMap, BTreeSet};

use super::method::{Form, Method, looks};
use super::model::{Model, Network, Source};
use super::recorded::{Recorded, fnv};
use super::threshold::threshold;
use crate::minder::{Calls, Grid, Look, Training, priority, train};
use muster_analysis::Chance;
use muster_analysis::assess::on_all_cores;

/// Metrics that get a network at most, the first in the order of priority.
const NETWORKS: usize = 32;

/// What a person may choose.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    /// When is looked.
    pub calls: Calls,
    /// How networks learn.
    pub training: Training,
    /// Of everything that is drawn.
    pub seed: u64,
}

/// What `methods` need, from `recordings`.
#[must_use]
pub fn learn(recordings: &[&Recorded], methods: &[Method], settings: &Settings) -> Model {
    let labelled: Vec<_> = recordings.iter().map(|recorded| recorded.labelled()).collect();
    let source = |recorded: &&Recorded| Source { name: recorded.name.clone(), fingerprint: recorded.fingerprint };
    let mut model = Model {
        every_s: settings.calls.every_s,
        back_s: settings.calls.back_s,
        clip: settings.calls.clip,
        order: priority(&labelled),
        networks: BTreeMap::new(),
        thresholds: BTreeMap::new(),
        trained_on: recordings.iter().map(source).collect(),
    };
    let forms: BTreeSet<Form> = methods.iter().filter_map(|method| method.form()).map(|(form, _)| form).collect();
    if forms.contains(&Form::Network) {
        let names: Vec<&String> = model.order.iter().map(|one| &one.metric).take(NETWORKS).collect();
        let trained = on_all_cores(&names, |name| network(recordings, name, settings));
        model.networks = names.into_iter().cloned().zip(trained).collect();
    }
    for form in forms {
        let all: Vec<Vec<Look>> = on_all_cores(recordings, |recorded| looks(recorded, form, &model));
        for method in methods {
            if let Some((_, continuity_s)) = method.form().filter(|(own, _)| *own == form) {
                model.thresholds.insert(method.name().to_owned(), threshold(recordings, &all, continuity_s));
            }
        }
    }
    // A method for which there was no window to learn from names nobody.
    model.thresholds.retain(|_, threshold| threshold.is_finite());
    model
}

/// The network of one metric; its chance depends on the seed and the metric alone.
fn network(recordings: &[&Recorded], name: &str, settings: &Settings) -> Network {
    let place = |recorded: &&Recorded| recorded.metrics.iter().position(|own| own == name);
    let of: Vec<(&Grid, usize)> =
        recordings.iter().filter_map(|recorded| Some((&recorded.grid, place(recorded)?))).collect();
    let tag = fnv([name]);
    let windows = settings.calls.windows(&of, settings.training.windows, &mut Chance::branch(settings.seed, tag));
    let (weights, error) = train(&windows, &settings.training, settings.seed ^ tag);
    Network { weights, error }
}

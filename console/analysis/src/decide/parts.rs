//! Which metrics are averaged together: those of one component, and those of all components of a kind, as far as the
//! same nodes have them.

use std::collections::BTreeMap;

use muster_wire::{Component, ComponentKind};

use super::Metric;
use super::measured::Measured;

/// What an average speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A component, by its position in [`Parts::components`].
    Component(usize),
    /// All of a kind, by position in [`Parts::kinds`].
    Kind(usize),
}

/// Metrics that the same nodes have, of one part: two or more.
pub(super) struct Family {
    pub(super) part: Part,
    pub(super) metrics: Vec<usize>,
}

/// The components and kinds of a fleet.
pub(super) struct Parts {
    /// Every component with its metrics, in order.
    pub(super) components: Vec<(Component, Vec<usize>)>,
    /// Every kind with several components, and their positions.
    pub(super) kinds: Vec<(ComponentKind, Vec<usize>)>,
    pub(super) families: Vec<Family>,
}

impl Parts {
    pub(super) fn of(metrics: &[Metric<'_>], measured: &[Measured]) -> Self {
        let mut components: BTreeMap<&Component, Vec<usize>> = BTreeMap::new();
        for (at, metric) in metrics.iter().enumerate() {
            components.entry(&metric.component).or_default().push(at);
        }
        let components: Vec<_> = components.into_iter().map(|(part, metrics)| (part.clone(), metrics)).collect();
        let mut kinds: BTreeMap<ComponentKind, Vec<usize>> = BTreeMap::new();
        for (at, (component, _)) in components.iter().enumerate() {
            kinds.entry(component.kind()).or_default().push(at);
        }
        let kinds: Vec<_> = kinds.into_iter().filter(|(_, instances)| instances.len() > 1).collect();
        let mut families = Vec::new();
        for (at, (_, metrics)) in components.iter().enumerate() {
            add(&mut families, Part::Component(at), metrics.iter().copied(), measured);
        }
        for (at, (_, instances)) in kinds.iter().enumerate() {
            let metrics = instances.iter().flat_map(|instance| components[*instance].1.iter().copied());
            add(&mut families, Part::Kind(at), metrics, measured);
        }
        Self { components, kinds, families }
    }
}

fn add(families: &mut Vec<Family>, part: Part, metrics: impl Iterator<Item = usize>, measured: &[Measured]) {
    let mut groups: BTreeMap<&[u32], Vec<usize>> = BTreeMap::new();
    for metric in metrics {
        let of = &measured[metric];
        if of.peers.len() >= 4 && of.peers.iter().all(|peer| !peer.scale.is_nan()) {
            groups.entry(&of.column.median.nodes).or_default().push(metric);
        }
    }
    let together = groups.into_values().filter(|metrics| metrics.len() > 1);
    families.extend(together.map(|metrics| Family { part, metrics }));
}

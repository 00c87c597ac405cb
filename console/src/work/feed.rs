//! What becomes of a tick? The detector takes it under its own numbers for the node and the metric.

use std::collections::HashMap;

use muster_watch::{MetricIndex, NodeIndex, Watch};
use muster_wire::CLOCK_ERROR;

use super::ticks::Member;

/// A detector, and what it calls the nodes and metrics of a watch.
#[derive(Debug)]
pub struct Feed {
    /// The detector.
    pub watch: Watch,
    nodes: Vec<Option<NodeIndex>>,
    metrics: HashMap<String, Option<MetricIndex>>,
}

impl Feed {
    /// Tells `watch` who is watched.
    #[must_use]
    pub fn new(members: &[Member], mut watch: Watch) -> Self {
        let mut nodes = Vec::with_capacity(members.len());
        for member in members {
            let node = watch.node(&member.name);
            if let Some(node) = node {
                member.labels.iter().for_each(|(key, value)| watch.label(node, key, value));
            }
            nodes.push(node);
        }
        Self { watch, nodes, metrics: HashMap::new() }
    }

    /// Takes a tick of the node in place `node`, epoch seconds. What the detector has no room for is left out.
    pub fn take(&mut self, node: usize, metric: &str, at_s: f64, value: f64) {
        if metric == CLOCK_ERROR {
            return self.clock(node, value);
        }
        let Some(node) = self.nodes.get(node).copied().flatten() else { return };
        if !self.metrics.contains_key(metric) {
            let known = self.watch.metric(metric);
            self.metrics.insert(metric.to_owned(), known);
        }
        if let Some(metric) = self.metrics.get(metric).copied().flatten() {
            self.watch.push(at_s, node, metric, value);
        }
    }

    /// The times of ticks of the node in place `node` may be off by so many seconds.
    pub fn clock(&mut self, node: usize, error_s: f64) {
        if let Some(node) = self.nodes.get(node).copied().flatten() {
            self.watch.clock(node, error_s);
        }
    }

    /// Metrics that some node told, by name.
    #[must_use]
    pub fn told(&self) -> Vec<String> {
        let known = self.metrics.iter().filter(|(_, place)| place.is_some());
        let mut names: Vec<String> = known.map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names
    }
}

#[cfg(test)]
mod tests {
    use muster_watch::Settings;

    use super::*;

    #[test]
    fn what_a_recording_kept_of_clocks_is_no_metric() {
        let member = |name: &str| Member { name: name.to_owned(), ..Member::default() };
        let mut feed = Feed::new(&[member("a"), member("b")], Watch::new(Settings::default()));
        feed.take(0, CLOCK_ERROR, 1.0, 0.002);
        feed.take(1, "cpu_util_pct", 1.0, 50.0);
        assert_eq!(feed.told(), ["cpu_util_pct"]);
    }
}

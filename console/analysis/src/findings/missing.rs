//! Metrics that a node should have and has not.

use muster_wire::{Component, MetricId};

use super::names::some;
use super::{Finding, Source};
use crate::State;

/// What is found where `node` has no value of `metrics` of one component, though their benchmarks are done and other nodes have
/// one. Nobody knows how fast it is there, so that it cannot pass.
#[must_use]
pub fn without_value(node: &str, component: &Component, metrics: &[&MetricId]) -> Finding {
    let paths: Vec<String> = metrics.iter().map(|metric| metric.path()).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let said = format!("{node}: {} not measured: no value, though other nodes have one", some(&paths));
    let source = match metrics {
        [one] => Source::Metric((*one).clone()),
        all => Source::Metrics(all.iter().map(|metric| (*metric).clone()).collect()),
    };
    Finding::new(node, component.clone(), source, State::Unknown, said)
        .next("run it again, and read what the benchmark itself wrote on this node")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_and_keeps_its_component_from_passing() {
        let ids = ["gemm:2", "hbm:2"].map(|name| MetricId::new("csv", name, "imported"));
        let one = without_value("n03", &Component::Gpu(2), &[&ids[0]]);
        assert_eq!(one.sentence, "n03: csv/gemm:2 not measured: no value, though other nodes have one");
        assert_eq!((one.state, one.source), (State::Unknown, Source::Metric(ids[0].clone())));
        let two = without_value("n03", &Component::Gpu(2), &[&ids[0], &ids[1]]);
        assert!(two.sentence.starts_with("n03: csv/gemm:2, csv/hbm:2 not measured: "), "{}", two.sentence);
    }
}

//! What the checks of a run say: which were asked for, and their answers, from the records alone.

use std::collections::BTreeMap;

use muster_run::Record;
use muster_wire::{Component, Datum, Fact, fact_of};

use super::Evidence;
use crate::checks::{self, CLOCK, CheckResult, NodeFacts, Policy, check};

/// Record of what is asked of a node: facts `checks`, `demand`, `limit.NAME`, `expect.NAME`, and the labels that checks are read by.
pub const ASKED: &str = "console/asked";
/// Record of how far a node's clock is from the console's.
pub const OFFSET: &str = "console/clock";

/// The answers of all checks that were asked for, per node; `groups` of the nodes are compared within.
#[must_use]
pub fn examine<'a>(
    nodes: &'a [String],
    groups: &'a [String],
    evidence: &Evidence<'a>,
) -> BTreeMap<&'a str, Vec<CheckResult>> {
    let (mut policy, mut ids) = (Policy::default(), Vec::new());
    let mut known = Vec::with_capacity(nodes.len());
    for (node, group) in nodes.iter().zip(groups) {
        let mut facts = NodeFacts::new(node, group);
        for record in evidence.every(node) {
            match record.work.as_str() {
                ASKED => read(record, &mut facts, &mut policy, &mut ids),
                OFFSET => facts.add(CLOCK, &record.outcome, &record.facts),
                work => {
                    if let Some(collector) = work.strip_prefix("collect/") {
                        facts.add(collector, &record.outcome, &record.facts);
                    } else if record.facts.iter().any(is_of_the_load) {
                        // However it ended: what was seen meanwhile may say why.
                        facts.add_meanwhile(record.benchmark(), &record.facts);
                    }
                }
            }
        }
        known.push(facts);
    }
    // A check that this version no longer has cannot be answered.
    let asked: Vec<_> = ids.iter().filter_map(|id| check(id)).collect();
    if asked.is_empty() {
        return BTreeMap::new();
    }
    let answers = checks::evaluate(&asked, &known, &policy);
    nodes.iter().map(String::as_str).zip(answers).collect()
}

/// Takes back what an [`ASKED`] record says.
fn read<'a>(record: &'a Record, node: &mut NodeFacts<'a>, policy: &mut Policy, ids: &mut Vec<&'a str>) {
    for Fact { key, reading, .. } in &record.facts {
        match (key.split_once('.'), reading.value()) {
            (None, Some(Datum::Text(checks))) if key == "checks" && ids.is_empty() => ids.extend(checks.split(' ')),
            (None, Some(Datum::Text(checks))) if key == "demand" => checks.split(' ').for_each(|id| policy.demand(id)),
            (Some(("limit", name)), Some(Datum::Number(value))) => policy.set_limit(name, *value),
            (Some(("expect", name)), Some(Datum::Number(value))) => policy.expect(name, *value),
            (Some(("label", name)), Some(Datum::Text(value))) => drop(node.labels.insert(name, value)),
            _ => {}
        }
    }
}

/// What a benchmark saw of a GPU or of an RDMA port while it ran.
fn is_of_the_load(fact: &Fact) -> bool {
    let of_a_port = fact.key.strip_prefix("port.").is_some_and(|rest| rest.ends_with(".errors"));
    of_a_port || matches!(fact_of(&fact.key), Some((Component::Gpu(_), "health")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_benchmarks_saw_of_gpus_and_ports_is_of_the_load_and_what_they_are_is_not() {
        let fact = |key: &str| Fact {
            key: key.to_owned(),
            reading: muster_wire::Reading::Value(Datum::Text(String::new())),
            unit: None,
        };
        for (key, of_the_load) in [
            ("gpu.3.health", true),
            ("port.mlx5_0/1.errors", true),
            ("port.mlx5_0/1.state", false),
            ("gpu.3.uuid", false),
            ("errors", false),
        ] {
            assert_eq!(is_of_the_load(&fact(key)), of_the_load, "{key}");
        }
    }

    #[test]
    fn a_run_without_checks_has_no_answers() {
        assert!(examine(&["n1".to_owned()], &[String::new()], &Evidence::new([])).is_empty());
    }
}

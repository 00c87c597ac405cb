//! Small fleets of made-up facts for the tests of checks, and what holds for every check.

use std::collections::BTreeMap;

use muster_wire::{Datum, Fact, Outcome, Reading};
use proptest::prelude::*;

use super::{Found, NodeFacts, Policy, check, checks, evaluate};
use crate::State;

/// Nodes with their facts by collector.
pub(super) struct Fleet {
    nodes: Vec<Node>,
}

#[derive(Clone, Default)]
struct Node {
    name: String,
    group: &'static str,
    labels: BTreeMap<&'static str, String>,
    facts: BTreeMap<&'static str, Vec<Fact>>,
}

pub(super) fn number(number: f64) -> Reading<Datum> {
    Reading::Value(Datum::Number(number))
}

pub(super) fn text(text: &str) -> Reading<Datum> {
    Reading::Value(Datum::Text(text.to_owned()))
}

pub(super) fn absent() -> Reading<Datum> {
    Reading::Absent
}

impl Fleet {
    /// `count` equal nodes.
    pub(super) fn new(count: usize, collector: &'static str, facts: &[(&str, Reading<Datum>)]) -> Self {
        let mut fleet = Self { nodes: Vec::new() };
        for place in 0..count {
            fleet.nodes.push(Node { name: format!("n{place}"), ..Node::default() });
            for (key, reading) in facts {
                fleet.set(place, collector, key, reading.clone());
            }
        }
        fleet
    }

    pub(super) fn set(&mut self, node: usize, collector: &'static str, key: &str, reading: Reading<Datum>) {
        let facts = self.nodes[node].facts.entry(collector).or_default();
        facts.retain(|fact| fact.key != key);
        facts.push(Fact { key: key.to_owned(), reading, unit: None });
    }

    pub(super) fn deny(&mut self, node: usize, collector: &'static str, key: &str) {
        self.set(node, collector, key, Reading::Denied);
    }

    pub(super) fn group(&mut self, node: usize, group: &'static str) {
        self.nodes[node].group = group;
    }

    pub(super) fn label(&mut self, node: usize, name: &'static str, value: &str) {
        self.nodes[node].labels.insert(name, value.to_owned());
    }

    pub(super) fn ask(&self, id: &str) -> Vec<Found> {
        self.ask_with(id, &Policy::default())
    }

    pub(super) fn ask_with(&self, id: &str, policy: &Policy) -> Vec<Found> {
        let done = Outcome::Done;
        let nodes: Vec<NodeFacts<'_>> = self
            .nodes
            .iter()
            .map(|node| {
                let mut facts = NodeFacts::new(&node.name, node.group);
                facts.labels = node.labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
                node.facts.iter().for_each(|(collector, list)| facts.add(collector, &done, list));
                facts
            })
            .collect();
        let asked = [check(id).unwrap_or_else(|| panic!("no check {id}"))];
        evaluate(&asked, &nodes, policy).into_iter().map(|mut results| results.remove(0).found).collect()
    }
}

#[test]
fn ids_are_unique_and_every_check_says_what_to_do_and_reads_a_collector() {
    let mut ids: Vec<&str> = checks().map(|check| check.id).collect();
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count);
    for check in checks() {
        assert!(!check.next.is_empty() && !check.source.is_empty() && !check.needs.is_empty(), "{}", check.id);
        assert!(super::AREAS.contains(&check.area) && !super::AREAS.contains(&check.id), "{}", check.id);
        let known = |name: &&str| muster_wire::collector(name).is_some() || *name == super::CLOCK;
        assert!(check.needs.iter().all(known), "{}: {:?}", check.id, check.needs);
    }
}

#[test]
fn a_node_that_nobody_looked_at_passes_no_check() {
    let nodes: Vec<NodeFacts<'_>> = ["a", "b", "c"].map(|name| NodeFacts::new(name, "")).to_vec();
    let all: Vec<_> = checks().collect();
    for result in evaluate(&all, &nodes, &Policy::default()).into_iter().flatten() {
        assert_eq!(result.found.state, State::NotRun, "{}: {}", result.check.id, result.found.said);
    }
}

#[test]
fn a_node_whose_collectors_failed_passes_no_check() {
    let broken = Outcome::Failed("crashed".to_owned());
    let mut nodes: Vec<NodeFacts<'_>> = ["a", "b", "c"].map(|name| NodeFacts::new(name, "")).to_vec();
    for node in &mut nodes {
        for collector in muster_wire::COLLECTORS.iter().map(|known| known.name).chain([super::CLOCK]) {
            node.add(collector, &broken, &[]);
        }
    }
    let all: Vec<_> = checks().collect();
    for result in evaluate(&all, &nodes, &Policy::default()).into_iter().flatten() {
        assert_eq!(result.found.state, State::Unknown, "{}: {}", result.check.id, result.found.said);
    }
}

fn datum() -> impl Strategy<Value = Reading<Datum>> {
    prop_oneof![
        any::<f64>().prop_map(number),
        ".{0,40}".prop_map(|any| text(&any)),
        any::<bool>().prop_map(|flag| Reading::Value(Datum::Flag(flag))),
        Just(Reading::Absent),
        Just(Reading::Denied),
        Just(Reading::Failed("no".to_owned())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever nodes say, every check answers for every node, never graver than its severity.
    #[test]
    fn hostile_facts_are_answered_within_the_severity(values in proptest::collection::vec(datum(), 40)) {
        const KEYS: [&str; 40] = [
            "uptime", "kernel.release", "sysctl.kernel.numa_balancing", "cmdline.x", "sockets", "cpus.online",
            "cpus.present", "governor", "freq.limit", "freq.max", "throttled.core", "cgroup.quota_cpus", "numa.nodes",
            "total", "edac.dimms", "edac.uncorrected", "edac.corrected", "corrupted", "swap.total", "free.huge_share",
            "eth0.mtu", "eth0.speed_mbit", "eth0.rx_packets", "eth0.rx_errors", "eth0.carrier_changes", "mount./.size",
            "mount./.free", "mount./.options", "fstab./.options", "device.sda.md.degraded", "offset", "uncertainty",
            "event.000.kind", "event.000.code", "event.000.age", "mlx5_0.1.state", "mlx5_0.1.link_downed",
            "0000:01:00.0.width", "gpus", "memlock.soft",
        ];
        let facts: Vec<Fact> = KEYS
            .iter()
            .zip(&values)
            .map(|(key, reading)| Fact { key: (*key).to_owned(), reading: reading.clone(), unit: None })
            .collect();
        let done = Outcome::Done;
        let mut nodes: Vec<NodeFacts<'_>> = ["a", "b", "c"].map(|name| NodeFacts::new(name, "")).to_vec();
        for (place, node) in nodes.iter_mut().enumerate() {
            for collector in muster_wire::COLLECTORS.iter().map(|known| known.name).chain([super::CLOCK]) {
                node.add(collector, &done, if place == 0 { &facts } else { &[] });
            }
        }
        let all: Vec<_> = checks().collect();
        let results = evaluate(&all, &nodes, &Policy::default());
        prop_assert!(results.iter().all(|of_node| of_node.len() == all.len()));
        for result in results.into_iter().flatten() {
            let grave = result.found.state == State::Fail;
            prop_assert!(!grave || result.check.severity == super::Severity::Critical, "{}", result.check.id);
        }
    }
}

//! From what GPUs of a run computed to sentences about those that the rest of the fleet contradicts.

use std::collections::BTreeMap;

use crate::State;
use crate::findings::{Finding, Source};
use crate::gpu::{self, Finding as Seen, Golden, NODES, Odd};
use muster_run::Record;
use muster_wire::{Component, Datum};

/// What golden digests say of each node.
pub fn findings<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<Finding> {
    let (mut said, mut works, mut known) = (Vec::new(), BTreeMap::new(), Vec::new());
    for record in records {
        let texts: Vec<(&str, &str)> = record.facts.iter().filter_map(text).collect();
        let golden: Vec<Golden> = texts.iter().filter_map(|(key, text)| Golden::parse(key, text)).collect();
        if golden.is_empty() {
            continue;
        }
        works.insert(record.node.as_str(), record.benchmark());
        let own = gpu::findings(texts).into_iter().filter(|found| matches!(found, Seen::WrongGpu { .. }));
        known.extend(own.map(|found| (record.node.as_str(), found.gpu())));
        said.extend(golden.into_iter().map(|golden| (record.node.as_str(), golden)));
    }
    let mut found = Vec::new();
    for (node, odd) in gpu::golden(&said) {
        let work = works[node];
        let (component, state, why) = match odd {
            // Its own node has said so.
            Odd::Wrong(wrong) if known.contains(&(node, wrong.gpu())) => continue,
            Odd::Wrong(wrong) => (Component::Gpu(wrong.gpu()), State::Fail, wrong.to_string()),
            Odd::Undecided { unit, nodes } => {
                let why = format!(
                    "{nodes} nodes disagree on the bits of {unit}, more than half of {NODES} or more must agree"
                );
                (Component::Gpus, State::Unknown, why)
            }
        };
        let sentence = format!("{node}: {work}: {why}");
        found.push(Finding::new(node, component, Source::Digests(work.to_owned()), state, sentence));
    }
    found
}

fn text(fact: &muster_wire::Fact) -> Option<(&str, &str)> {
    match fact.reading.value()? {
        Datum::Text(text) => Some((&fact.key, text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_run::noted;
    use muster_wire::{Fact, Reading};

    fn record(node: &str, digests: &[&str]) -> Record {
        let fact = |(gpu, digest): (usize, &&str)| Fact {
            key: format!("gpu.{gpu}.golden.bf16-mma"),
            reading: Reading::Value(Datum::Text(format!(
                "own burn 1 sm_90, bf16-mma x 512, 64 rounds of 7210: {digest}*132"
            ))),
            unit: None,
        };
        noted("r", node, "sm-sdc", digests.iter().enumerate().map(fact).collect(), 1)
    }

    #[test]
    fn a_gpu_that_its_fleet_contradicts_fails_its_node_and_two_nodes_are_undecided() {
        let records = [record("n1", &["a", "a"]), record("n2", &["b", "a"]), record("n3", &["a", "a"])];
        let found = findings(&records);
        let why =
            "n2: sm-sdc: GPU 0: all its multiprocessors compute other bits than 5 other GPUs on 2 nodes (bf16-mma)";
        let [wrong] = &found[..] else { panic!("{found:?}") };
        assert_eq!((wrong.node.as_str(), wrong.state, wrong.sentence.as_str()), ("n2", State::Fail, why));
        assert_eq!(wrong.component, Component::Gpu(0));
        let two = findings(&[record("n1", &["a"]), record("n2", &["b"])]);
        assert!(two.iter().all(|found| found.state == State::Unknown));
        assert_eq!(
            two[1].sentence,
            "n2: sm-sdc: 2 nodes disagree on the bits of bf16-mma, more than half of 3 or more must agree"
        );
    }
}

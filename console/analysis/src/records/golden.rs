//! From what GPUs of a run computed to sentences about those that the rest of the fleet contradicts.

use std::collections::BTreeMap;

use crate::State;
use crate::findings::{Finding, Source};
use crate::gpu::{self, Finding as Seen, Golden, NODES, Odd};
use muster_run::Record;
use muster_wire::{Component, Datum};

/// What golden digests say of each node, each benchmark by itself.
pub fn findings<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<Finding> {
    let mut works: BTreeMap<&str, Work<'a>> = BTreeMap::new();
    for record in records {
        let texts: Vec<(&str, &str)> = record.facts.iter().filter_map(text).collect();
        let golden: Vec<Golden> = texts.iter().filter_map(|(key, text)| Golden::parse(key, text)).collect();
        if golden.is_empty() {
            continue;
        }
        let work = works.entry(record.benchmark()).or_default();
        let own = gpu::findings(texts).into_iter().filter(|found| matches!(found, Seen::WrongGpu { .. }));
        work.known.extend(own.map(|found| (record.node.as_str(), found.gpu())));
        work.said.extend(golden.into_iter().map(|golden| (record.node.as_str(), golden)));
    }
    works.iter().flat_map(|(name, work)| work.findings(name)).collect()
}

/// One benchmark on all nodes.
#[derive(Default)]
struct Work<'a> {
    said: Vec<(&'a str, Golden)>,
    /// GPUs that their own nodes have found to be wrong.
    known: Vec<(&'a str, u32)>,
}

impl Work<'_> {
    fn findings(&self, name: &str) -> Vec<Finding> {
        let unknown = |(node, odd): &(&str, Odd)| match odd {
            Odd::Wrong(wrong) => !self.known.contains(&(*node, wrong.gpu())),
            Odd::Undecided { .. } => true,
        };
        gpu::golden(&self.said).into_iter().filter(unknown).map(|(node, odd)| finding(name, node, odd)).collect()
    }
}

fn finding(work: &str, node: &str, odd: Odd) -> Finding {
    let (component, state, why) = match odd {
        Odd::Wrong(wrong) => (Component::Gpu(wrong.gpu()), State::Fail, wrong.to_string()),
        Odd::Undecided { unit, nodes: 1 } => {
            let why = format!("its GPUs disagree on the bits of {unit}, and no more than half of them agree");
            (Component::Gpus, State::Unknown, why)
        }
        Odd::Undecided { unit, nodes } => {
            let why =
                format!("{nodes} nodes disagree on the bits of {unit}, more than half of {NODES} or more must agree");
            (Component::Gpus, State::Unknown, why)
        }
    };
    let sentence = format!("{node}: {work}: {why}");
    Finding::new(node, component, Source::Digests(work.to_owned()), state, sentence)
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
    fn each_benchmark_is_told_by_its_own_name() {
        let training = |node: &str, digest: &str| {
            let text = format!("own tape 1 sm_90, gpt2-small bf16 of 8 x 1024, 16 steps: {digest}*1");
            let reading = Reading::Value(Datum::Text(text));
            let fact = Fact { key: "gpu.0.golden.gpt2-small-bf16".to_owned(), reading, unit: None };
            noted("r", node, "gpu-train-gpt2", vec![fact], 1)
        };
        let nodes = [("n1", "a"), ("n2", "b"), ("n3", "a")];
        let records: Vec<Record> =
            nodes.iter().flat_map(|(node, digest)| [training(node, digest), record(node, &["a"])]).collect();
        let found = findings(&records);
        let [wrong] = &found[..] else { panic!("{found:?}") };
        let why = "n2: gpu-train-gpt2: GPU 0: it computes other bits than 2 other GPUs on 2 nodes (gpt2-small-bf16)";
        assert_eq!(wrong.sentence, why);
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

//! From digests in a run's records to sentences about nodes that compute something else than their peers.

use std::collections::{BTreeMap, BTreeSet};

use muster_analysis::State;
use muster_analysis::digests::{Agreement, Odd, agreement};
use muster_store::Record;
use muster_wire::{DIGEST, Datum};

/// Most steps of one digest that are looked at.
const MOST_STEPS: usize = 4_096;

/// Step digests of one node.
type OfNode = (String, Vec<String>);

/// What digests say of each node. `groups` names each node's group: only its nodes are compared with one another.
pub(super) fn findings<'a>(
    records: impl IntoIterator<Item = &'a Record>,
    groups: &BTreeMap<&str, &str>,
) -> BTreeMap<String, Vec<(State, String)>> {
    let mut compared: BTreeMap<(&str, &str, &str), Vec<OfNode>> = BTreeMap::new();
    let mut said: BTreeMap<String, Vec<(State, String)>> = BTreeMap::new();
    for record in records {
        let Some(group) = groups.get(record.node.as_str()) else { continue };
        let mut of_key: BTreeMap<&str, BTreeSet<Vec<String>>> = BTreeMap::new();
        for (key, steps) in record.facts.iter().filter_map(digest) {
            of_key.entry(key).or_default().insert(steps);
        }
        for (key, mut variants) in of_key {
            if variants.len() > 1 {
                let why =
                    format!("{}: {} does not repeat: {} gives other bits each time", record.node, record.work, key);
                said.entry(record.node.clone()).or_default().push((State::Fail, why));
            } else if let Some(steps) = variants.pop_first() {
                compared.entry((record.work.as_str(), key, group)).or_default().push((record.node.clone(), steps));
            }
        }
    }
    for ((work, key, _), digests) in compared {
        for (node, sentence) in sentences(work, key, &digests) {
            said.entry(node).or_default().push(sentence);
        }
    }
    said
}

/// A digest's name and its steps, if `fact` is one and well formed.
fn digest(fact: &muster_wire::Fact) -> Option<(&str, Vec<String>)> {
    let key = fact.key.strip_prefix(DIGEST)?;
    let Some(Datum::Text(text)) = fact.reading.value() else { return None };
    let steps: Vec<String> = text.split_ascii_whitespace().take(MOST_STEPS).map(str::to_owned).collect();
    let sound = |step: &String| step.len() <= 32 && step.bytes().all(|b| b.is_ascii_hexdigit());
    (!steps.is_empty() && steps.iter().all(sound)).then_some((key, steps))
}

fn sentences(work: &str, key: &str, digests: &[OfNode]) -> Vec<(String, (State, String))> {
    match agreement(digests) {
        Agreement::Same { .. } => Vec::new(),
        Agreement::Odd(odd) => odd
            .into_iter()
            .map(|Odd { node, step, majority, n }| {
                let why = format!(
                    "{node}: {work} computes wrongly: {key} differs from {majority} of {n} nodes from step {step} on"
                );
                (node, (State::Fail, why))
            })
            .collect(),
        Agreement::Undecided { n, step } => {
            let why = |node: &str| {
                format!(
                    "{node}: {work}: {key} differs between {n} nodes from step {step} on, and no majority says who is wrong"
                )
            };
            digests.iter().map(|(node, _)| (node.clone(), (State::Unknown, why(node)))).collect()
        }
    }
}

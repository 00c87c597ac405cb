//! From digests in a run's records to sentences about nodes that compute something else than their peers.

use std::collections::BTreeMap;

use crate::State;
use crate::digests::{Agreement, Odd, agreement, repeated};
use crate::findings::{Finding, Source};
use muster_run::Record;
use muster_wire::{DIGEST, Datum};

use super::works;

/// Most steps of one digest that are looked at.
const MOST_STEPS: usize = 4_096;

/// Step digests of one node.
type OfNode = (String, Vec<String>);

/// What digests say of each node. `groups` names each node's group: only its nodes are compared with one another.
pub fn findings<'a>(records: impl IntoIterator<Item = &'a Record>, groups: &BTreeMap<&str, &str>) -> Vec<Finding> {
    let mut compared: BTreeMap<(&str, &str, &str), Vec<OfNode>> = BTreeMap::new();
    let mut said = Vec::new();
    let mut of_key: BTreeMap<(&str, &str, &str), Vec<Vec<String>>> = BTreeMap::new();
    for record in records {
        for (key, steps) in record.facts.iter().filter_map(steps) {
            of_key.entry((record.node.as_str(), record.benchmark(), key)).or_default().push(steps);
        }
    }
    for ((node, work, key), times) in of_key {
        let Some(group) = groups.get(node) else { continue };
        if let Some(steps) = repeated(&times) {
            compared.entry((work, key, group)).or_default().push((node.to_owned(), steps.to_vec()));
        } else {
            let why = format!("{node}: {work} does not repeat: {key} gives other bits each time");
            said.push(finding(node, work, State::Fail, why));
        }
    }
    for ((work, key, _), digests) in compared {
        said.extend(compare(work, key, &digests));
    }
    said
}

fn finding(node: &str, work: &str, state: State, why: String) -> Finding {
    Finding::new(node, works::component(work), Source::Digests(work.to_owned()), state, why)
}

/// The digest that a record of one computation tells, where it tells one.
#[must_use]
pub fn digest(record: &Record) -> Option<&str> {
    record.facts.iter().find(|fact| fact.key.starts_with(DIGEST)).and_then(|fact| match fact.reading.value()? {
        Datum::Text(digest) => Some(digest.as_str()),
        _ => None,
    })
}

/// A digest's name and its steps, if `fact` is one and well formed.
fn steps(fact: &muster_wire::Fact) -> Option<(&str, Vec<String>)> {
    let key = fact.key.strip_prefix(DIGEST)?;
    let Some(Datum::Text(text)) = fact.reading.value() else { return None };
    let steps: Vec<String> = text.split_ascii_whitespace().take(MOST_STEPS).map(str::to_owned).collect();
    let sound = |step: &String| step.len() <= 32 && step.bytes().all(|b| b.is_ascii_hexdigit());
    (!steps.is_empty() && steps.iter().all(sound)).then_some((key, steps))
}

fn compare(work: &str, key: &str, digests: &[OfNode]) -> Vec<Finding> {
    match agreement(digests) {
        Agreement::Same { .. } => Vec::new(),
        Agreement::Odd(odd) => odd
            .into_iter()
            .map(|Odd { node, step, majority, n }| {
                let why = format!(
                    "{node}: {work} computes wrongly: {key} differs from {majority} of {n} nodes from step {step} on"
                );
                finding(&node, work, State::Fail, why)
            })
            .collect(),
        Agreement::Undecided { n, step } => {
            let why = |node: &str| {
                format!(
                    "{node}: {work}: {key} differs between {n} nodes from step {step} on, and no majority says who is wrong"
                )
            };
            // A node that did not come to this step agrees with all before it.
            let came = digests.iter().filter(|(_, steps)| steps.len() >= step);
            came.map(|(node, _)| finding(node, work, State::Unknown, why(node))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_wire::{Fact, Reading};

    use super::*;
    use muster_run::noted;

    fn record(node: &str, losses: &[&str]) -> Record {
        let fact = |losses: &&str| Fact {
            key: format!("{DIGEST}m_loss"),
            reading: Reading::Value(Datum::Text((*losses).to_owned())),
            unit: None,
        };
        noted("r", node, "train-gpt2", losses.iter().map(fact).collect(), 1)
    }

    fn found(records: &[Record]) -> Vec<Finding> {
        let groups = records.iter().map(|record| (record.node.as_str(), "all")).collect();
        findings(records, &groups)
    }

    #[test]
    fn losses_that_were_cut_off_contradict_neither_their_node_nor_another() {
        let cut = [record("n1", &["a b c", "a b"]), record("n2", &["a"]), record("n3", &[]), record("n4", &["a b c"])];
        assert_eq!(found(&cut), []);
        let torn = [record("n1", &["a b c", "a d"]), record("n2", &["a b c"]), record("n3", &["a b c"])];
        let why = "n1: train-gpt2 does not repeat: m_loss gives other bits each time";
        let found = found(&torn);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].node.as_str(), found[0].state, found[0].sentence.as_str()), ("n1", State::Fail, why));
    }

    #[test]
    fn a_node_that_did_not_come_to_the_step_in_question_is_in_no_doubt() {
        let records = [record("n1", &["a b c"]), record("n2", &["a b d"]), record("n3", &["a b"])];
        let found = found(&records);
        assert_eq!(found.iter().map(|found| found.node.as_str()).collect::<Vec<_>>(), ["n1", "n2"]);
        assert_eq!(found[0].state, State::Unknown);
    }
}

//! Which nodes left a run, and why?

use muster_run::{LINK, Record};
use muster_wire::limits::TEXT_BYTES;
use muster_wire::{Datum, Outcome, clean};
use serde::{Deserialize, Serialize};

use super::Latest;

/// Record of a node that was left out of later steps: facts `step` and `reason`.
pub const DROPPED: &str = "console/dropped";

/// A node that was left out of later steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Node name.
    pub node: String,
    /// The step after which it left.
    pub step: String,
    /// Why, in one sentence.
    pub reason: String,
}

/// Whether a record says that its node takes no further part.
#[must_use]
pub fn leaves(record: &Record) -> bool {
    record.work == DROPPED || (record.work == LINK && matches!(record.outcome, Outcome::Failed(_)))
}

/// Nodes that left, in the order they did.
pub fn left(latest: &Latest<'_>) -> Vec<Dropped> {
    let mut records: Vec<&&Record> = latest.values().filter(|record| record.work == DROPPED).collect();
    records.sort_by_key(|record| record.at_ms);
    let text = |record: &Record, key: &str| {
        let found = record.facts.iter().find(|fact| fact.key == key).and_then(|fact| fact.reading.value());
        if let Some(Datum::Text(text)) = found { clean(text, TEXT_BYTES) } else { "?".to_owned() }
    };
    let report = |record: &&&Record| Dropped {
        node: record.node.clone(),
        step: text(record, "step"),
        reason: text(record, "reason"),
    };
    records.iter().map(report).collect()
}

#[cfg(test)]
mod tests {
    use muster_run::noted;
    use muster_wire::{Fact, Reading};

    use super::*;

    #[test]
    fn nodes_that_left_are_told_in_the_order_they_left() {
        let dropped = |node: &str, step: &str, reason: &str, at_ms| {
            let fact = |key: &str, text: &str| Fact {
                key: key.to_owned(),
                reading: Reading::Value(Datum::Text(text.to_owned())),
                unit: None,
            };
            noted("r", node, DROPPED, vec![fact("step", step), fact("reason", reason)], at_ms)
        };
        let records = [dropped("a", "burn", "a: broken", 9), dropped("b", "look", "b: \u{1b}[2Jodd", 3)];
        let latest: Latest<'_> = records.iter().map(|r| ((r.node.as_str(), r.work.as_str()), r)).collect();
        let told: Vec<(String, String, String)> =
            left(&latest).into_iter().map(|left| (left.node, left.step, left.reason)).collect();
        let expected = [("b", "look", "b: odd"), ("a", "burn", "a: broken")];
        assert_eq!(told, expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())));
    }
}

//! What nodes computed together, as the `muster.collective` document (assets/schemas/muster.collective.json), and in words.

use muster_wire::{Collective, Unit};
use serde::{Deserialize, Serialize};

use super::LeftOut;

/// Name of the document.
pub const COLLECTIVE_SCHEMA: &str = "muster.collective";

/// The `muster.collective` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectiveReport {
    /// [`COLLECTIVE_SCHEMA`].
    pub schema: String,
    /// Version of the document; 1.
    pub version: u32,
    /// Run id.
    pub run: String,
    /// One per operation, in alphabetic order.
    pub collectives: Vec<CollectiveResult>,
}

/// One operation over all its sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectiveResult {
    /// Which.
    pub collective: Collective,
    /// What carried it, such as `tcp-4`.
    pub engine: String,
    /// Nodes in the order of the ring.
    pub ranks: Vec<String>,
    /// Sizes that were measured to their end, in the order measured.
    pub sizes: Vec<SizeResult>,
    /// Bytes of data that were compared with what they must be, over all nodes; all were right unless `failure` says otherwise.
    pub checked_bytes: f64,
    /// Why it ended early; names node and step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<CollectiveFailure>,
    /// Nodes that took no part.
    pub left_out: Vec<LeftOut>,
}

/// Operations of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeResult {
    /// Size as nccl-tests counts it: what was asked for, down to as many whole elements for every node.
    pub bytes: u64,
    /// How many operations counted.
    pub operations: usize,
    /// Median time of an operation on the node that took longest, nanoseconds.
    pub time_ns: f64,
    /// Size over time, bytes per second.
    pub algbw: f64,
    /// What every node's link carried each way, bytes per second.
    pub busbw: f64,
    /// 95 % interval of the median `busbw`, lower end first.
    pub interval: [f64; 2],
}

/// Why a collective ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectiveFailure {
    /// Whether wrong data arrived, rather than none.
    pub wrong_data: bool,
    /// Nodes it is put down to.
    pub nodes: Vec<String>,
    /// What happened, on which node, in which operation and step.
    pub reason: String,
}

impl CollectiveReport {
    /// A report of `run`.
    #[must_use]
    pub fn new(run: &str, collectives: Vec<CollectiveResult>) -> Self {
        Self { schema: COLLECTIVE_SCHEMA.to_owned(), version: 1, run: run.to_owned(), collectives }
    }

    /// Exit code: 2 where wrong data arrived, 3 where an operation did not end or a node took no part, else 0.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        let all = || self.collectives.iter();
        if all().filter_map(|c| c.failure.as_ref()).any(|failure| failure.wrong_data) {
            2
        } else if all().any(|c| c.failure.is_some() || !c.left_out.is_empty()) || self.collectives.is_empty() {
            3
        } else {
            0
        }
    }

    /// Tables for people; `fold` writes node names briefly.
    #[must_use]
    pub fn lines(&self, fold: &dyn Fn(&[&str]) -> String) -> Vec<String> {
        let mut lines = Vec::new();
        for one in &self.collectives {
            let names: Vec<&str> = one.ranks.iter().map(String::as_str).collect();
            let (what, count, engine) = (one.collective, names.len(), &one.engine);
            lines.push(format!("{what} over {count} nodes by {engine}: {}", fold(&names)));
            if !one.sizes.is_empty() {
                let [size, count, time] = ["size", "operations", "time"];
                lines.push(format!(
                    "{size:>12} {count:>10} {time:>11} {:>11} {:>11}  95 % of the median",
                    "algbw", "busbw"
                ));
            }
            lines.extend(one.sizes.iter().map(SizeResult::line));
            match &one.failure {
                Some(failure) => lines.push(format!("not to its end: {}", failure.reason)),
                None => lines.push(format!("data right: {} compared", Unit::Bytes.show(one.checked_bytes))),
            }
            lines.extend(one.left_out.iter().map(|left| format!("left out: {}: {}", left.node, left.reason)));
        }
        lines.push(format!("run {}", self.run));
        lines
    }
}

impl SizeResult {
    fn line(&self) -> String {
        let rate = |value| Unit::BytesPerSec.show(value);
        format!(
            "{:>12} {:>10} {:>11} {:>11} {:>11}  {} to {}",
            self.bytes,
            self.operations,
            Unit::Nanos.show(self.time_ns),
            rate(self.algbw),
            rate(self.busbw),
            rate(self.interval[0]),
            rate(self.interval[1])
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_data_fails_and_a_missing_node_is_undecided() {
        let one = |failure: Option<bool>, left: usize| CollectiveResult {
            collective: Collective::AllReduce,
            engine: "tcp-4".to_owned(),
            ranks: vec!["n1".to_owned(), "n2".to_owned()],
            sizes: Vec::new(),
            checked_bytes: 0.0,
            failure: failure.map(|wrong_data| CollectiveFailure {
                wrong_data,
                nodes: Vec::new(),
                reason: "n2: step 3".to_owned(),
            }),
            left_out: vec![LeftOut { node: "n3".to_owned(), reason: "gone".to_owned() }; left],
        };
        let code = |all: Vec<CollectiveResult>| CollectiveReport::new("r", all).exit_code();
        assert_eq!([code(vec![one(None, 0)]), code(vec![one(None, 1)]), code(vec![])], [0, 3, 3]);
        assert_eq!([code(vec![one(Some(false), 0)]), code(vec![one(Some(true), 0), one(None, 0)])], [3, 2]);
        let lines = CollectiveReport::new("r", vec![one(Some(true), 1)]).lines(&|names| names.join(","));
        assert_eq!(lines[1..], ["not to its end: n2: step 3", "left out: n3: gone", "run r"].map(str::to_owned));
    }
}

//! All methods side by side on one fleet: whom each flags, by what margin, and where they disagree.

use serde::{Deserialize, Serialize};

use super::{Fleet, Method, NotComparable, margin_ratio, split};
use crate::Params;

/// One method's line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Which method.
    pub method: Method,
    /// Indices of the nodes it flags, ascending.
    pub flagged: Vec<usize>,
    /// See [`margin_ratio`].
    pub margin: Option<f64>,
    /// Why it could not be asked; then nothing is flagged.
    pub refused: Option<String>,
}

/// A node on which the methods that could be asked are not of one mind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disagreement {
    /// Index of the node.
    pub node: usize,
    /// Methods that flag it, in the order of [`Method::ALL`].
    pub flagged_by: Vec<Method>,
    /// Methods that do not.
    pub passed_by: Vec<Method>,
}

/// All methods on one fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// One per method of [`Method::ALL`].
    pub rows: Vec<Row>,
    /// Nodes on which they differ, ascending.
    pub disagreements: Vec<Disagreement>,
}

/// Runs every method on `fleet`, with margins at the tail floor of `params`; `seed` names the restarts of k-means.
#[must_use]
pub fn compare(fleet: &Fleet, params: &Params, seed: u64) -> Comparison {
    let rows: Vec<Row> = Method::ALL.into_iter().map(|method| row(fleet, method, params, seed)).collect();
    let asked: Vec<&Row> = rows.iter().filter(|r| r.refused.is_none()).collect();
    let disagreements = (0..fleet.samples().len())
        .filter_map(|node| {
            let (flagged, passed): (Vec<&Row>, Vec<&Row>) = asked.iter().partition(|r| r.flagged.contains(&node));
            let names = |rows: Vec<&Row>| rows.into_iter().map(|r| r.method).collect();
            let differ = !flagged.is_empty() && !passed.is_empty();
            differ.then(|| Disagreement { node, flagged_by: names(flagged), passed_by: names(passed) })
        })
        .collect();
    Comparison { rows, disagreements }
}

fn row(fleet: &Fleet, method: Method, params: &Params, seed: u64) -> Row {
    let refuse = |why: NotComparable| Row { method, flagged: Vec::new(), margin: None, refused: Some(why.to_string()) };
    let found = split(fleet, method, params, seed).map(|found| {
        let margin = margin_ratio(fleet, &found, params.tau);
        Row { method, flagged: found.defects, margin, refused: None }
    });
    found.unwrap_or_else(refuse)
}

/// How right a set of flags is, where the truth is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Defects flagged.
    pub hits: usize,
    /// Healthy nodes flagged.
    pub false_alarms: usize,
    /// Defects not flagged.
    pub misses: usize,
}

impl Score {
    /// Share of the flagged nodes that are defective; `None` when nothing was flagged.
    #[must_use]
    pub fn precision(self) -> Option<f64> {
        ratio(self.hits, self.hits + self.false_alarms)
    }

    /// Share of the defective nodes that were flagged; `None` when none is defective.
    #[must_use]
    pub fn recall(self) -> Option<f64> {
        ratio(self.hits, self.hits + self.misses)
    }
}

fn ratio(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Counts `flagged` against the known defects of a fleet, both as node indices without repetition.
#[must_use]
pub fn score(flagged: &[usize], defects: &[usize]) -> Score {
    let hits = flagged.iter().filter(|i| defects.contains(i)).count();
    Score { hits, false_alarms: flagged.len() - hits, misses: defects.len() - hits }
}

//! What one version of a criterion says otherwise than another: in its terms, in its centre, and in whom it accuses.

use serde::{Deserialize, Serialize};

use crate::{Criterion, Observation, Params, Sample, State, judge, parts, similarity};

/// One thing that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// They are of different metrics, units or directions, and nothing else can be compared.
    Incomparable(String),
    /// Threshold: old, new.
    Alpha(f64, f64),
    /// Tail floor: old, new.
    Tau(f64, f64),
    /// Trust, as words: old, new.
    Status(String, String),
    /// Nodes it was learned from: old, new.
    Nodes(usize, usize),
    /// Repeatability: old, new.
    Repeatability(Option<f64>, Option<f64>),
    /// The centre moved.
    Centre(Moved),
}

/// How a centre moved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// Median of the old one, in the metric's unit; `None` where it had no centre.
    pub from: Option<f64>,
    /// Median of the new one.
    pub to: Option<f64>,
    /// Two-sided similarity of the two, 0 to 1; `None` where one has no centre.
    pub similarity: Option<f64>,
    /// Share of the distance by which the new one is the worse: 1 when it is worse throughout, 0 when better.
    pub worse: Option<f64>,
}

/// What differs between two versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// In the order of [`Change`]; empty when both would always say the same.
    pub changes: Vec<Change>,
    /// Nodes that the two judge otherwise: name, old state, new state, in the order given.
    pub flips: Vec<(String, State, State)>,
}

/// Compares version `old` with version `new` of a criterion, and what they say of `nodes` (raw observations of any
/// run; none if only the versions are asked for). Costs one distance per node and version.
#[must_use]
pub fn diff(old: &Criterion, new: &Criterion, nodes: &[(String, Observation)]) -> Difference {
    let identity = |c: &Criterion| (c.metric.clone(), c.unit, c.direction);
    if identity(old) != identity(new) {
        let why = format!(
            "{} in {:?}, {:?}, against {} in {:?}, {:?}",
            old.metric, old.unit, old.direction, new.metric, new.unit, new.direction
        );
        return Difference { changes: vec![Change::Incomparable(why)], flips: Vec::new() };
    }
    let flip = |(node, observed): &(String, Observation)| {
        let (before, after) = (judge(&**node, observed, old).state, judge(&**node, observed, new).state);
        (before != after).then(|| (node.clone(), before, after))
    };
    Difference { changes: changes(old, new), flips: nodes.iter().filter_map(flip).collect() }
}

fn changes(old: &Criterion, new: &Criterion) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut note = |differs: bool, change: Change| {
        if differs {
            changes.push(change);
        }
    };
    note(old.alpha != new.alpha, Change::Alpha(old.alpha, new.alpha));
    note(old.tau != new.tau, Change::Tau(old.tau, new.tau));
    note(old.status != new.status, Change::Status(old.status.name().to_owned(), new.status.name().to_owned()));
    note(old.n != new.n, Change::Nodes(old.n, new.n));
    note(old.repeatability != new.repeatability, Change::Repeatability(old.repeatability, new.repeatability));
    note(old.sample != new.sample, Change::Centre(moved(old, new)));
    changes
}

fn moved(old: &Criterion, new: &Criterion) -> Moved {
    let median = |c: &Criterion| c.sample.as_ref().map(Sample::median);
    let both = old.sample.as_ref().zip(new.sample.as_ref());
    // Both under one tail floor, or a change of it would look like a change of the fleet.
    let tau = Params { tau: new.tau, ..Params::default() }.tau;
    let worse = both.map(|(a, b)| parts(b, a, new.direction, tau)).filter(|p| p.raw() > 0.0);
    Moved {
        from: median(old),
        to: median(new),
        similarity: both.map(|(a, b)| similarity(a, b, new.direction, tau)),
        worse: worse.map(|p| p.first_worse / p.raw()),
    }
}

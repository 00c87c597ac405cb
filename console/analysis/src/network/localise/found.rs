//! What localisation answers with.

use serde::{Deserialize, Serialize};

use super::{Kind, Tier};

/// Confidence from which on a suspect fails what it names; below it the matter is undecided.
pub const SURE: f64 = 0.9;

/// An element that is accused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suspect {
    /// What it is.
    pub kind: Kind,
    /// Its name; `src-dst` for a pair.
    pub element: String,
    /// Value of its pairs over the usual value at their distance: 0.31 is 31 % of the usual throughput, or 31 % of the
    /// usual latency; 0 if they failed.
    pub effect: f64,
    /// 95 % interval of the effect, lower end first.
    pub interval: [f64; 2],
    /// Visits that cross it.
    pub pairs: usize,
    /// Of those, the ones clearly worse than usual.
    pub slow: usize,
    /// Probability that it is this element and not the best other explanation, 0 to 1.
    pub confidence: f64,
}

/// Slow pairs with more than one good explanation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Undecided {
    /// Elements between which the pairs do not decide, likeliest first.
    pub candidates: Vec<Candidate>,
    /// Why not, and what would help.
    pub reason: String,
    /// Visits concerned.
    pub pairs: usize,
    /// Of those, the ones clearly worse than usual.
    pub slow: usize,
}

/// A possible culprit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Candidate {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub element: String,
}

/// An element that is certainly slower than its peers, by too little to be accused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub element: String,
    /// Value of its pairs over the usual value at their distance, as [`Suspect::effect`].
    pub effect: f64,
    /// Standard error of the effect, from the noise of single pairs.
    pub error: f64,
    /// Visits that cross it.
    pub pairs: usize,
}

/// Nodes that are slow towards everyone else and fine among themselves, under a leaf that nothing names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Its nodes.
    pub nodes: Vec<String>,
    /// How many nodes are not in it.
    pub others: usize,
    /// Value of the pairs between the group and the others over the usual value.
    pub effect: f64,
}

/// A node that the topology has under a leaf to which its paths or its pairs do not fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Misfit {
    /// The node, or its NIC.
    pub node: String,
    /// Its leaf by the topology.
    pub said: String,
    /// The leaf to which it fits; absent if to none that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fits: Option<String>,
    /// The node that it seems to be swapped with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swapped_with: Option<String>,
    /// What says so: `paths` (the uplinks in the matrix) or `pairs` (what was measured).
    pub by: String,
}

/// Two parts of the fabric that differ, neither of which is surely the sound one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contested {
    /// What the parts consist of.
    pub kind: Kind,
    /// The slower ones.
    pub slow: Vec<String>,
    /// The faster ones.
    pub fast: Vec<String>,
    /// Value of the slower over that of the faster.
    pub effect: f64,
}

/// Answer to "what is wrong in this network".
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Localisation {
    /// Nodes that do not hang where the topology says. Everything else is judged without that part of it.
    pub misfits: Vec<Misfit>,
    /// Accused, most certain first.
    pub suspects: Vec<Suspect>,
    /// Slow pairs that several explanations fit; groups and contested parts are among them.
    pub undecided: Vec<Undecided>,
    /// Certainly slow, but by little; most certain first.
    pub warnings: Vec<Warning>,
    /// Groups of nodes that are slow together, where no topology names what they share.
    pub groups: Vec<Group>,
    /// Parts of the fabric of which either may be the sound one.
    pub contested: Vec<Contested>,
    /// Pairs `[src, dst]` whose measurement would decide, most useful first; endpoints by name. Those that chance explains are among
    /// them.
    pub next_pairs: Vec<[String; 2]>,
    /// Usual value at each hop distance that was measured.
    pub tiers: Vec<Tier>,
    /// Nodes that the matrix has.
    #[serde(skip)]
    pub nodes: usize,
}

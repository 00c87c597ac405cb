//! What is asked of the Selector?

use serde::{Deserialize, Serialize};

use super::Coverage;

/// A benchmark that may be picked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Benchmark {
    /// Name.
    pub id: String,
    /// Minutes it takes in nine of ten runs, see [`super::p90`].
    pub minutes: f64,
    /// Hours since it last ran in the fleet; none when it never did.
    pub idle_h: Option<f64>,
}

/// How a benchmark that is never picked still gets to show what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exploration {
    /// A benchmark idle for longer than this many hours is overdue.
    pub every_h: f64,
    /// Overdue benchmarks added to one selection, the longest idle first.
    pub at_most: usize,
}

impl Default for Exploration {
    fn default() -> Self {
        Self { every_h: 14.0 * 24.0, at_most: 1 }
    }
}

/// What to optimise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// SuperBench's Algorithm 1 as printed, its loop closed.
    Paper,
    /// Algorithm 1, then superfluous benchmarks taken out, then branch and bound for up to 30 benchmarks.
    Cheapest,
    /// The best coverage within so many minutes.
    Budget {
        /// Minutes.
        minutes: f64,
    },
}

/// One question to the Selector.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Benchmarks, in the positions that [`super::Defect::found_by`] means; at most [`super::MAX_BENCHMARKS`].
    pub benchmarks: &'a [Benchmark],
    /// What they find.
    pub coverage: &'a Coverage,
    /// Joint risk of the nodes over the job, 0 to 1, see [`super::joint_risk`].
    pub risk: f64,
    /// Risk that may remain, 0 to 1.
    pub p0: f64,
    /// What to optimise.
    pub mode: Mode,
    /// Floor under the use of each benchmark; none switches it off.
    pub exploration: Option<Exploration>,
}

//! Criteria, similarity and verdicts: which nodes of a fleet are slow, by SuperBench's method (ATC'24) with its
//! open ends closed; and which nodes will fail, and what to run on them. Pure: no clock, no files, no chance
//! without a seed; the same input gives the same verdict.

mod absurd;
mod algorithm2;
pub mod alternatives;
pub mod assess;
mod cdf;
mod chance;
pub mod checks;
mod criterion;
pub mod decide;
pub mod digests;
mod distance;
pub mod findings;
pub mod gpu;
pub mod groups;
pub mod history;
mod learn;
pub mod medoid;
pub mod network;
pub mod records;
mod repeatability;
mod repeats;
pub mod risk;
mod rounds;
pub mod rules;
mod sample;
mod scatter;
pub mod selector;
pub mod service;
pub mod simulate;
mod spread;
mod table;
pub mod tune;
mod verdict;
mod visits;
pub mod what_if;
mod why;
pub mod within;

pub use absurd::{ABSURD, absurd};
pub use cdf::{cdf_band, cdf_points};
pub use chance::Chance;
pub use criterion::{Cluster, Criterion, Grain, Params, Status};
pub use distance::{Parts, is_defect, one_sided, parts, similarity};
pub use learn::{Learned, compare, criterion_of, learn, learn_below, learn_silently};
pub use repeatability::repeatability;
pub use rounds::{Rounds, TOGETHER, Visited, VisitedMetric, decide_rounds};
pub use sample::{BadSample, Sample};
pub use spread::{Offset, Spread};
pub use table::Table;
pub use verdict::{NodeVerdict, Observation, State, fleet_state, judge};
pub use visits::join_visits;

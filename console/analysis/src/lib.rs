//! Criteria, similarity and verdicts: which nodes of a fleet are slow, by SuperBench's method (ATC'24) with its
//! open ends closed. Pure: no clock, no files, no randomness; the same input gives the same verdict.

mod algorithm2;
pub mod alternatives;
mod cdf;
mod convict;
mod criterion;
mod distance;
pub mod history;
mod learn;
pub mod medoid;
mod repeatability;
pub mod rules;
mod sample;
mod seeded;
mod spread;
mod table;
pub mod tune;
mod verdict;
pub mod what_if;

pub use cdf::cdf_points;
pub use convict::{NodeState, convict, resource_class};
pub use criterion::{Criterion, Params, Status};
pub use distance::{Parts, one_sided, parts, similarity};
pub use learn::{Evidence, Learned, compare, criterion_of, learn};
pub use repeatability::repeatability;
pub use sample::{BadSample, Sample};
pub use spread::Spread;
pub use table::Table;
pub use verdict::{NodeVerdict, Observation, State, fleet_state, judge};

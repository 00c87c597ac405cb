//! Criteria, similarity and verdicts: which nodes of a fleet are slow, by SuperBench's method (ATC'24) with its
//! open ends closed; and which nodes will fail, and what to run on them. Pure: no clock, no files, no chance
//! without a seed; the same input gives the same verdict.

mod algorithm2;
mod cdf;
mod convict;
mod criterion;
mod distance;
mod learn;
pub mod medoid;
mod repeatability;
pub mod risk;
mod sample;
pub mod selector;
pub mod simulate;
mod spread;
mod verdict;

pub use cdf::cdf_points;
pub use convict::{NodeState, convict, resource_class};
pub use criterion::{Criterion, Params, Status};
pub use distance::{Parts, one_sided, parts, similarity};
pub use learn::{Evidence, Learned, compare, criterion_of, learn};
pub use repeatability::repeatability;
pub use sample::{BadSample, Sample};
pub use spread::Spread;
pub use verdict::{NodeVerdict, Observation, State, fleet_state, judge};

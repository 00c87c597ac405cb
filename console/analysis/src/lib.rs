//! Criteria, similarity and verdicts: which nodes of a fleet are slow, by SuperBench's method (ATC'24) with its
//! open ends closed; and which nodes will fail, and what to run on them. Pure: no clock, no files, no chance
//! without a seed; the same input gives the same verdict.

mod algorithm2;
pub mod alternatives;
mod cdf;
mod chance;
pub mod checks;
mod class;
mod convict;
mod criterion;
pub mod digests;
mod distance;
pub mod gpu;
pub mod history;
mod learn;
pub mod medoid;
pub mod network;
mod repeatability;
pub mod risk;
pub mod rules;
mod sample;
pub mod selector;
pub mod simulate;
mod spread;
mod table;
pub mod tune;
mod verdict;
pub mod what_if;
pub mod within;

pub use cdf::cdf_points;
pub use chance::Chance;
pub use class::resource_class;
pub use convict::{NodeState, convict};
pub use criterion::{Criterion, Grain, Params, Status};
pub use distance::{Parts, one_sided, parts, similarity};
pub use learn::{Evidence, Learned, compare, criterion_of, learn, learn_below};
pub use repeatability::repeatability;
pub use sample::{BadSample, Sample};
pub use spread::{Offset, Spread};
pub use table::Table;
pub use verdict::{NodeVerdict, Observation, State, fleet_state, judge};

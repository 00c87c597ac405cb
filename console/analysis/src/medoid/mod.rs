//! Exact centroids in nearly linear time: the sum of distances of every node to all others, without pairs.

mod choose;
mod chunks;
mod fenwick;
mod levels;
mod scalar;
mod series;

pub(crate) use choose::better;
pub use choose::{Medoid, medoid};
pub use scalar::similarity_sums;
pub use series::raw_sums;

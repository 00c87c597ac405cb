//! What is said of the pairs of a run, and of its collectives, from their records alone.

mod all;
mod collected;

pub use all::Pairs;
pub use collected::collectives;
pub use muster_analysis::records::pairs::{Found, cause, is_pair, kept, network, visits};

//! From the records of a run to what is found of its nodes beside the metrics, and to the values that metrics are judged by.

pub mod cards;
pub mod cores;
pub mod digests;
mod evidence;
pub mod golden;
pub mod hardware;
pub mod names;
pub mod works;

pub use evidence::{Evidence, Latest, Measured, OfNode, Turn, company, observations, of_metric};

//! From the records of a run to what is found of its nodes beside the metrics, and to the values that metrics are judged by.

pub mod cards;
pub mod checks;
pub mod cores;
pub mod digests;
mod evidence;
pub mod golden;
pub mod hardware;
mod left;
pub mod names;
pub mod pairs;
pub mod works;

pub use evidence::{
    Evidence, Latest, Measured, NOT_REACHED, OfNode, Turn, by_another_engine, company, is_done, observations, of_metric,
};
pub use left::{DROPPED, Dropped, leaves, left};

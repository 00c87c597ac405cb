//! Before a job: which nodes are risky, and which benchmarks are worth their minutes?

mod chart;
mod coverage;
mod draw;
mod keys;
mod picks;
mod state;

pub(crate) use draw::draw;
pub(crate) use keys::{act, ask};
pub(crate) use state::{State, settle};

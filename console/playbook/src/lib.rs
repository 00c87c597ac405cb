//! Parses, checks and plans playbooks, and reports what came of a run. Pure: no I/O, no clock.

mod builtin;
mod error;
mod order;
mod parse;
mod plan;
mod playbook;
pub mod report;
mod train;

pub use builtin::{builtin, find_builtin};
pub use error::{PlaybookError, Problem};
pub use muster_run::PAIRS;
pub use plan::{Phase, Plan, collector_work, plan};
pub use playbook::{Pairs, Playbook, Step};
pub use train::{Length, Train};

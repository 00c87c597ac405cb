//! What a run is: plain data that store, analysis and console share.
//!
//! A run is one execution of a playbook on some nodes; a record is what one piece of work gave on one of them. Records are what is
//! true: everything said of a node is computed from them anew.

mod names;
mod record;
mod run;

pub use names::{CONSOLE, LINK, OUT_OF_TURN, PAIRS, WARNED, is_host, is_work, visit_name, visit_of};
pub use record::{Record, Summary, joined, noted};
pub use run::{Run, RunState};

//! What does Slurm know of its nodes, who may be drained or resumed, and how is a probe started by it rather than over SSH?

mod allocation;
mod ask;
mod explain;
mod host_list;
mod inventory;
mod launcher;
mod leaf;
mod listed;
mod reason;
mod seed;
mod spelling;
mod step;

pub use crate::slurm_options::Options;
pub use ask::{Said, ask, listed, scan};
pub use host_list::host_list;
pub use leaf::leaves;
pub use listed::{Listed, Malformed, from_json, from_text};
pub use reason::{Drain, Left, Resume, drain, left_over, ours, reason, resume};

pub(crate) use explain::explained;
pub use launcher::Launcher;
pub(crate) use launcher::Seats;
pub(crate) use seed::Starting;
pub(crate) use step::Step;

//! What subcommands share: choosing nodes, beginning or resuming a run, judging it.

mod basis;
mod carry;
mod finish;
mod groups;
mod job;
mod judged;
mod nodes;
mod ways;

pub use basis::stored_basis;
pub use carry::{Done, Heard, carried, headless};
pub use finish::{exit_code, exit_code_of, finish, word};
pub use groups::{groups, groups_in_force};
pub use job::{Job, REGULAR, VISITS, begin, named, playbook};
pub use judged::{ended, keep_end, nodes_of, params, report_of, run_of, weighed};
pub use nodes::{in_partition, nodes, nodes_for_work};
pub use ways::{settings, settings_for, ways};

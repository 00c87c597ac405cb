//! What is said of the pairs of a run, and of its collectives, from their records alone.

mod all;
pub mod cause;
mod collected;
mod found;
mod judge;
pub mod kept;

pub use all::Pairs;
pub use collected::collectives;
pub use found::{Found, network, visits};
pub use judge::judge_pairs;

use muster_playbook::PAIRS;
use muster_run::Record;

/// Whether a record belongs to a pair phase: it is judged by the whole matrix and not by its node.
#[must_use]
pub fn is_pair(record: &Record) -> bool {
    record.work == PAIRS || kept::receiver(record).is_some()
}

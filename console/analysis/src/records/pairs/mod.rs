//! What is said of the pairs of a run, and why a collective ended, from their records alone.

pub mod cause;
mod found;
mod judge;
pub mod kept;

pub use found::{Found, network, visits};
pub use judge::judge_pairs;

use muster_run::{PAIRS, Record};

/// Whether a record belongs to a pair phase: it is judged by the whole matrix and not by its node.
#[must_use]
pub fn is_pair(record: &Record) -> bool {
    record.work == PAIRS || kept::receiver(record).is_some()
}

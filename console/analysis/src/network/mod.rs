//! Which pairs of nodes to measure, and which node, NIC, leaf or uplink the measured pairs point at.
//!
//! Flow: a [`Topology`] from text or measured latency → rounds of [`schedule`] → a [`Matrix`] of what the pairs
//! delivered → [`localise()`], whose open questions feed the next rounds ([`schedule::Bisection`]).

mod beside;
mod change;
pub mod localise;
mod matrix;
mod measured;
mod names;
mod otsu;
mod read;
mod report;
mod rows;
mod said;
pub mod schedule;
pub mod topology;

pub use beside::localise_beside;
pub use localise::{Localisation, localise};
pub use matrix::{Cell, Matrix};
pub use measured::{LOSS, LOSS_FLOOR, guess, health, judged};
pub use read::{direction_of, read_matrix};
pub use report::{Alternatives, LeftOut, Of, PAIRS_SCHEMA, PairsReport, PairsRun};
pub use said::{accusation, source_word, warning};
pub use topology::Topology;

/// Text that does not say what it should, with the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Malformed {
    /// Line of the text, from 1.
    pub line: usize,
    /// What is wrong with it, and what was expected.
    pub what: String,
}

impl Malformed {
    fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

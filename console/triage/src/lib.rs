//! Why a job failed, hangs or is slow: the root cause in what its nodes wrote and counted.
//!
//! [`case`] is what was read, [`diagnose`] the procedure over it, [`report`] the answer. [`muster_logs`] says what lines mean.

pub mod account;
mod action;
mod alerts;
pub mod case;
pub mod clock;
pub mod confidence;
pub mod counters;
mod events;
mod facts;
mod grown;
pub mod halving;
pub mod health;
pub mod layout;
#[cfg(test)]
mod made;
pub mod marks;
pub mod matrix;
pub mod mismatch;
mod missing;
mod missing_live;
mod names;
pub mod offline;
pub mod overview;
mod procedure;
pub mod processes;
pub mod report;
pub mod rootdiag;
pub mod slow;
mod steps;
mod tested;
pub mod views;
pub mod waits;

pub use confidence::SURE;
pub use procedure::diagnose;

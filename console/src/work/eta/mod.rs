//! How long will the run still take? Estimated from the times of the same work in earlier runs, the work that is left, and the
//! number of nodes that work at a time.
//!
//! [`Durations`] holds times from the database, [`Course`] follows a run and estimates the time left; `window` has the arithmetic,
//! and `steady` keeps the displayed time from jumping. None of them reads a clock.

mod course;
mod durations;
mod expected;
#[cfg(test)]
mod simulated;
mod steady;
mod window;

pub use course::Course;
pub use durations::Durations;

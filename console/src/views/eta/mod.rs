//! How long will the run still take? From how long the same work took before, from what is left of it, and from how many
//! nodes are worked on at a time.
//!
//! [`Durations`] is what the store knows, [`Course`] follows a run by its updates and says what is left; `window` has the one
//! sum behind it, and `steady` keeps what is shown from jumping about. None of them looks at a clock.

mod course;
mod durations;
mod expected;
#[cfg(test)]
mod simulated;
mod steady;
mod window;

pub use course::Course;
pub use durations::Durations;

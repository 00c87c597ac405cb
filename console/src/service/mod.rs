//! In whose hands each machine is, and what may be done with it: what people said, what runs found, and which parts fail again.

mod back;
mod failures;
mod fleet;
mod marks;
#[cfg(test)]
mod month;

pub use back::{Refusal, refusals};
pub use failures::{failures, keep_failures};
pub use fleet::{Standing, standings};
pub use marks::{Mark, mark, marks};

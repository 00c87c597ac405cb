//! In whose hands each machine is, and what may be done with it: what people said, what runs found, and which parts fail again.

mod back;
mod counterpart;
mod failures;
mod fleet;
mod hands;
mod list;
mod marks;
#[cfg(test)]
mod month;
mod shell;

#[cfg(test)]
pub use back::{Refusal, refusals};
pub use counterpart::{Counterpart, day};
pub use failures::{failures, keep_failures};
pub use fleet::{AHEAD_MS, Standing, services, standings};
pub use hands::{Replaced, give_back, needs, put, replace, replace_listed};
pub use list::{Counted, again, commands, history, replaced, spares};
#[cfg(test)]
pub use marks::mark;
pub use marks::{Mark, marks};
pub use shell::argument;

//! How few steps a benchmark needs: its period, and the warm-up and measured steps that keep its repeatability
//! (SuperBench, ATC'24, section 5.2 and table 5).

mod decompose;
mod held_out;
mod levels;
mod period;
mod search;

pub use decompose::{Parts as Decomposition, decompose};
pub use period::{period, seasonal_strength};
pub use search::{Outcome, Settings, Tuned, search};

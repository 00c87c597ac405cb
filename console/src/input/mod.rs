//! What files say: any known format becomes one fleet of metrics and nodes.

mod csv;
mod file;
mod fleet;

pub use file::{Reading, content, fleet, open, sha256};
pub use fleet::{Fleet, Metric, some};

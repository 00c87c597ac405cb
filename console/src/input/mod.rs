//! What files say: any known format becomes one fleet of metrics and nodes.

mod by_name;
mod checks;
mod csv;
mod file;
mod fleet;
mod text;

pub use file::{Reading, content, fleet, open, sha256};
pub use fleet::{Fleet, Metric, some};
pub use text::text;

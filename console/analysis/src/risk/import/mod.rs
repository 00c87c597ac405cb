//! What do files from elsewhere say? Incident logs as CSV, JSON and `sacctmgr` output, and plain survival data;
//! from text in memory, bounded, with the line of each error.

mod category;
mod csv_log;
mod json_log;
mod line;
mod sacctmgr;
mod stamp;
mod survival_file;

pub use category::guess_category;
pub use csv_log::csv_incidents;
pub use json_log::json_incidents;
pub use line::{Limits, LineError, Parsed};
pub use sacctmgr::sacctmgr_events;
pub use stamp::hours;
pub use survival_file::{Columns, SurvivalFile, survival_file};

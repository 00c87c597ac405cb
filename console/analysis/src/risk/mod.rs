//! How likely is each node to have an incident in the hours to come? Incident history, what a node's past says
//! about it, models of the time to the next incident, and how good they are.
//!
//! ```text
//! import ─► Incident ─► History ─► features ─► Table ─► fit ─► Survival ─► evaluate, choose, explain, save
//! ```

mod choose;
mod cox_time;
pub mod evaluate;
mod explain;
mod features;
mod fit;
mod history;
pub mod import;
mod incident;
mod linear;
mod models;
mod saved;
mod scale;
#[cfg(test)]
pub(crate) mod sets;
mod survival;
mod table;

pub use choose::{Candidate, Choice, choose, refit, trained};
pub use cox_time::{CoxTime, Settings as CoxTimeSettings};
pub use explain::{Effect, effects, reasons, usual};
pub use features::{Samples, Sampling, feature_names, samples, status};
pub use fit::{FitError, Fitted, Kind, Settings, fit};
pub use history::{Check, History, Outage, Past, Window};
pub use incident::{BadIncident, Incident};
pub use models::{Cox, Exponential, Grouped, Grouping, KaplanMeier, Ties, Weibull};
pub use muster_wire::Category;
pub use saved::{LoadError, SCHEMA, Saved, VERSION};
pub use scale::Scale;
pub use survival::{Curves, Survival};
pub use table::{BadTable, Table};
